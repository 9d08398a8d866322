// The state of a model between calls while it generates: plain arrays by name. A program takes the
// state as inputs and returns it as outputs, so you can keep, copy, save and feed it again. The
// state starts as zeros.
//   const tg::StateSpec state = model.state(1, 256);
//   auto next = train.attach({.inputs = tg::with_state(state, {{"tokens", {1, 1}, tg::i32}})},
//       [](const tg::Mamba& m, const tg::Inputs& in) -> tg::Outputs {
//         return m.step(in["tokens"], in);
//       });
//   tg::NamedArrays memory = tg::zero_state(state);
//   const tg::Result result = next.run(tg::feed_state(memory, {{"tokens", ids}}));
//   memory = tg::state_after(result, state);  // and result["logits"] is [1, 1, V]
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tensorgrad/array.h"
#include "tensorgrad/compile.h"
#include "tensorgrad/tensor.h"

namespace tensorgrad {

// The inputs that hold the state of a model.
using StateSpec = std::vector<InputSpec>;

// Returns the inputs of a program that steps: its own inputs and those of the state.
std::vector<InputSpec> with_state(const StateSpec& state, std::vector<InputSpec> inputs);
// Returns the state before the first token.
NamedArrays zero_state(const StateSpec& state);
// Returns the feed of one run: the state and the other inputs. It views `memory`, which must
// outlive the run.
Feed feed_state(const NamedArrays& memory, Feed feed);
// Returns the state after a run.
NamedArrays state_after(const Result& result, const StateSpec& state);

// The result of a model's step() while tracing: the logits of its tokens, and the state after them.
struct Step {
  Tensor logits;  // [B, T, V]
  std::vector<std::pair<std::string, Tensor>> state;

  // Converts to outputs: "logits", and the state under its own names.
  operator Outputs() const;
};

}  // namespace tensorgrad
