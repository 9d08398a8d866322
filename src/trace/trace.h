// Stage `trace`: runs the user's function on symbolic tensors and records the ops it calls.
#pragma once

#include "ops/builder.h"
#include "tensorgrad/compile.h"

namespace tensorgrad::trace {

struct Traced {
  ops::Builder builder;  // holds the graph; its results are outputs and captures
  Tensor loss;           // only for training
};

struct TraceOptions {
  std::vector<InputSpec> inputs;
  bool training = false;    // dropout is active
  bool wants_loss = false;  // the only output, or the one named "loss", is a scalar to minimise
  std::uint64_t model = 0;  // whose parameters the function may use
};

Traced trace(const TraceOptions& options, const detail::Trace& function);

// Name of a single unnamed output.
inline constexpr const char* kOnlyOutput = "out";
inline constexpr const char* kLossOutput = "loss";

}  // namespace tensorgrad::trace
