// Stage `trace`: records the ops that the user calls on symbolic tensors. Either it runs the user's
// function, or the user calls the ops between the start of a Tracer and its finish().
#pragma once

#include <functional>

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

class Tracer {
 public:
  explicit Tracer(const TraceOptions& options);
  const Inputs& inputs() const { return inputs_; }
  // What the ops append to: open a BuildScope of it, then call them.
  ops::Builder& builder() { return traced_.builder; }
  // Ends the trace. Throws if an output is wrong, or if the loss is missing.
  Traced finish(const Outputs& outputs) &&;

 private:
  TraceOptions options_;
  Traced traced_;
  Inputs inputs_;
};

// Runs the function.
Traced trace(const TraceOptions& options, const detail::Trace& function);

// What the stage calls: it returns a trace with these options.
using Source = std::function<Traced(const TraceOptions& options)>;

// Name of a single unnamed output.
inline constexpr const char* kOnlyOutput = "out";
inline constexpr const char* kLossOutput = "loss";

}  // namespace tensorgrad::trace
