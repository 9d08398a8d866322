// Optimizers and learning-rate schedules. They are plain data. compile() builds them into the
// program, so that one step is forward, backward and update.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <variant>
#include <vector>

namespace tensorgrad {

// The learning rate of each update; updates count from 1. A schedule is a constant or any function
// of the update's number.
class Schedule {
 public:
  using Function = std::function<double(std::int64_t update)>;

  template <class T>
  requires std::is_arithmetic_v<T> Schedule(T rate)
      : rate_([rate](std::int64_t) { return static_cast<double>(rate); }), constant_(true) {}
  template <class F>
  requires std::is_invocable_r_v<double, F, std::int64_t> Schedule(F function)
      : rate_(std::move(function)) {}

  double at(std::int64_t update) const { return rate_(update); }
  bool constant() const { return constant_; }  // true for a constant

 private:
  Function rate_;
  bool constant_ = false;
};

// Linear: peak + (last - peak) * min(1, (t-1)/steps) at update t. The first update uses the peak.
Schedule linear(double peak, double last, std::int64_t steps);
// Goes from peak to last along half a cosine over `steps` updates, then stays at last.
Schedule cosine(double peak, double last, std::int64_t steps);
// Rises linearly to the first rate of `after` over `steps` updates, then continues with `after`.
Schedule warmup(std::int64_t steps, Schedule after);
// Multiplies the rate by `factor` every `every` updates.
Schedule staircase(double rate, double factor, std::int64_t every);
// Multiplies the rate by `factor` after each of the given updates.
Schedule multi_step(double rate, double factor, std::vector<std::int64_t> milestones);

// p -= lr * (g + weight_decay * p), with momentum as in PyTorch. Only parameters that decay have
// weight decay.
struct Sgd {
  Schedule lr = 0.01;
  float momentum = 0;
  bool nesterov = false;
  float weight_decay = 0;
};

// p -= lr * mhat / (sqrt(vhat) + eps)
struct Adam {
  Schedule lr = 0.001;
  float beta1 = 0.9f, beta2 = 0.999f;
  float eps = 1e-8f;
};

// p -= lr * weight_decay * p for the parameters that decay, then Adam.
struct AdamW {
  Schedule lr = 0.001;
  float beta1 = 0.9f, beta2 = 0.999f;
  float eps = 1e-8f;
  float weight_decay = 0.01f;
};

// Updates nothing and has no state. Use it for steps that only compute gradients().
struct NoOptimizer {};

using Optimizer = std::variant<Sgd, Adam, AdamW, NoOptimizer>;

// What to do when the loss or a gradient is NaN or infinite, or when the update would make a
// parameter or the optimizer state so. `fail` throws a NonFiniteError, `skip` skips the step,
// `ignore` does not check. `fail` and `skip` change neither parameters nor optimizer state. They
// only drop the gradient sums of `accumulate` if the last step of a round is not finite: `skip` in
// the step itself, `fail` when the next round starts.
enum class NonFinite : std::uint8_t { fail, skip, ignore };

}  // namespace tensorgrad
