// Stage `update`: appends clipping, the optimizer and the non-finite guard to a differentiated
// graph. Its state lives in `state` leaves, written in place at the end of the step.
#pragma once

#include <string>
#include <vector>

#include "ops/builder.h"
#include "tensorgrad/optim.h"

namespace tensorgrad::optim {

struct Trained {
  std::string name;
  Tensor value;     // the parameter
  Tensor gradient;  // of the loss
  bool decay = false;
  bool normalize = false;  // scale its gradient to norm 1
};

struct UpdateOptions {
  Optimizer optimizer = Adam{};
  float clip_grad_norm = 0;  // 0: off
  NonFinite non_finite = NonFinite::fail;
  int accumulate = 1;    // gradients of this many steps are averaged
  bool applies = true;   // false for the steps that only accumulate
};

// Names of results and state that the runtime looks at.
inline constexpr const char* kFiniteOutput = "$finite";
inline constexpr const char* kNormOutput = "$grad_norm";
inline constexpr const char* kFailedState = "failed";
inline constexpr const char* kUpdatesState = "updates";

void append_update(ops::Builder& builder, const Tensor& loss, std::vector<Trained> trained,
                   const UpdateOptions& options);

}  // namespace tensorgrad::optim
