// Optimizers and learning-rate schedules. They are plain data; compile() writes them into the
// program, so that a step is forward, backward and update in one.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <variant>
#include <vector>

namespace tensorgrad {

// The learning rate at each update, counted from 1. A number is a constant schedule, and any
// function of the update's number is one too.
class Schedule {
 public:
  using Function = std::function<double(std::int64_t update)>;

  template <class T>
    requires std::is_arithmetic_v<T>
  Schedule(T rate) : rate_([rate](std::int64_t) { return static_cast<double>(rate); }) {}
  template <class F>
    requires std::is_invocable_r_v<double, F, std::int64_t>
  Schedule(F function) : rate_(std::move(function)) {}

  double at(std::int64_t update) const { return rate_(update); }

 private:
  Function rate_;
};

// peak + (last - peak) * min(1, (t-1)/steps): the first update is at the peak.
Schedule linear(double peak, double last, std::int64_t steps);
// From peak to last along half a cosine over `steps` updates, then last.
Schedule cosine(double peak, double last, std::int64_t steps);
// Rises to the first rate of `after` over `steps` updates, then goes on with it.
Schedule warmup(std::int64_t steps, Schedule after);
// Multiplied by `factor` every `every` updates.
Schedule staircase(double rate, double factor, std::int64_t every);
// Multiplied by `factor` after each of the given updates.
Schedule multi_step(double rate, double factor, std::vector<std::int64_t> milestones);

// p -= lr * (g + weight_decay * p), with momentum as in PyTorch.
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

// Adam, after p -= lr * weight_decay * p for the parameters that decay.
struct AdamW {
  Schedule lr = 0.001;
  float beta1 = 0.9f, beta2 = 0.999f;
  float eps = 1e-8f;
  float weight_decay = 0.01f;
};

using Optimizer = std::variant<Sgd, Adam, AdamW>;

// What to do when the loss or a gradient is NaN or infinite. `fail` and `skip` leave parameters and
// optimizer state as they were.
enum class NonFinite : std::uint8_t { fail, skip, ignore };

}  // namespace tensorgrad
