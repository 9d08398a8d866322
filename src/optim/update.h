// Stage `update`: appends clipping, the optimizer and the non-finite guard to a differentiated
// graph. Its state lives in `state` leaves, written in place at the end of the step.
#pragma once

#include <string>
#include <vector>

#include "ops/builder.h"
#include "tensorgrad/optim.h"

namespace tensorgrad::optim {

// One parameter. All of them lie side by side in one flat tensor, those that decay first.
struct Trained {
  std::string name;
  std::int64_t offset = 0;  // in the flat tensor
  Tensor gradient;          // of the loss
  bool decay = false;
  bool normalize = false;   // scale its gradient to norm 1
};

struct UpdateOptions {
  Optimizer optimizer = Adam{};
  float clip_grad_norm = 0;  // 0: off
  NonFinite non_finite = NonFinite::fail;
  int accumulate = 1;    // gradients of this many steps are averaged
  bool applies = true;   // false for the steps that only accumulate
};

// Names of results and state that the runtime looks at. State is named kind:what ("m:*" for all
// parameters), because a colon never stands in the name of a parameter: a field called `m` must not
// meet Adam's m.
inline constexpr const char* kFailedOutput = "$failed";  // i32: 0, or the last finite step was so many steps ago
inline constexpr const char* kNormOutput = "$grad_norm";
inline constexpr const char* kFailedState = "guard:failed";  // kFailedOutput of the last step
inline constexpr const char* kStepsState = "guard:steps";    // i32: steps made; stops at a bad id, as all state does
inline constexpr const char* kUpdatesState = "adam:updates";

// A UserError when a number of the optimizer makes no sense. The rate is a schedule and is checked
// at each step.
void check_optimizer(const Optimizer& optimizer);

// `elements` is the size of the flat tensor; gaps between parameters stay zero.
void append_update(ops::Builder& builder, const Tensor& loss, const std::vector<Trained>& trained,
                   std::int64_t elements, const UpdateOptions& options);

}  // namespace tensorgrad::optim
