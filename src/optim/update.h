// Stage `update`: appends clipping, the optimizer and the non-finite guard to a differentiated
// graph. Its state lives in `state` leaves, written in place at the end of the step.
#pragma once

#include <string>
#include <vector>

#include "ops/builder.h"
#include "tensorgrad/optim.h"

namespace tensorgrad::optim {

// One parameter. All parameters lie side by side in one flat tensor; those that decay come first.
struct Trained {
  std::string name;
  std::int64_t offset = 0;  // in the flat tensor
  Tensor gradient;          // of the loss
  bool decay = false;
  bool normalize = false;  // scale its gradient to norm 1
};

// The purpose of the appended nodes.
enum class Purpose : std::uint8_t {
  apply,       // a step that updates
  accumulate,  // a step that only adds its gradients to those of the round
  candidate,   // the parameters that an update would make; nothing is written
};

struct UpdateOptions {
  Optimizer optimizer = Adam{};
  float clip_grad_norm = 0;  // 0: off
  NonFinite non_finite = NonFinite::fail;
  int accumulate = 1;  // gradients of this many steps are averaged
  Purpose purpose = Purpose::apply;
};

// Names of results and state that the runtime reads. Names of state contain a colon, which names of
// a user's state do not. Flat state has names of its own ("m", "v").
inline constexpr const char* kFailedOutput =
    "$failed";  // i32: 0, or the number of steps since the last finite step
inline constexpr const char* kNormOutput = "$grad_norm";
inline constexpr const char* kCandidateOutput = "$candidate";  // flat, of Purpose::candidate
inline constexpr const char* kFailedState = "guard:failed";    // kFailedOutput of the last step
inline constexpr const char* kStepsState =
    "guard:steps";  // i32: number of steps; not written at a bad id, like all state
inline constexpr const char* kUpdatesState = "adam:updates";  // i32: updates made so far
inline constexpr const char* kSumsState =
    "accumulated";  // flat: of the gradients of a round, each divided by its number of steps

// Throws a UserError if a setting of the optimizer is invalid. The learning rate is a schedule and
// is checked at each step.
void check_optimizer(const Optimizer& optimizer);

// `elements` is the size of the flat tensor. The gaps between parameters stay zero.
void append_update(ops::Builder& builder, const Tensor& loss, const std::vector<Trained>& trained,
                   std::int64_t elements, const UpdateOptions& options);

}  // namespace tensorgrad::optim
