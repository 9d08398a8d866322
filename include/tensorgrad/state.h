// What a model remembers from one call to the next while it generates: plain numbers by name. A program takes them as
// inputs and gives them back as outputs, so that they can be kept, copied, saved, and fed again. Zeros are the start.
//   const tg::StateSpec state = model.state(1, 256);
//   auto next = train.attach({.inputs = tg::with_state(state, {{"tokens", {1, 1}, tg::i32}})},
//       [](const tg::Mamba& m, const tg::Inputs& in) -> tg::Outputs { return m.step(in["tokens"], in); });
//   tg::NamedArrays memory = tg::zero_state(state);
//   const tg::Result result = next.run(tg::feed_state(memory, {{"tokens", ids}}));   // result["logits"] is [1, 1, V]
//   memory = tg::state_after(result, state);
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tensorgrad/array.h"
#include "tensorgrad/compile.h"
#include "tensorgrad/tensor.h"

namespace tensorgrad {

// The inputs that a model's state is made of.
using StateSpec = std::vector<InputSpec>;

// The inputs of a program that steps: its own and those of the state.
std::vector<InputSpec> with_state(const StateSpec& state, std::vector<InputSpec> inputs);
// The state before the first token.
NamedArrays zero_state(const StateSpec& state);
// Numbers for one run: the state and the rest. Looks at `memory` only, which must live until the run.
Feed feed_state(const NamedArrays& memory, Feed feed);
// The state after a run.
NamedArrays state_after(const Result& result, const StateSpec& state);

// While tracing: what the model says about the tokens it was given, and what it remembers afterwards.
struct Step {
  Tensor logits;  // [B, T, V]
  std::vector<std::pair<std::string, Tensor>> state;

  // "logits", and the state under its own names.
  operator Outputs() const;
};

}  // namespace tensorgrad
