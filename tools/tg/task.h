// A task that `tg train` knows: data, a model and a measure of how well it does.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "command.h"
#include "tensorgrad/compile.h"

namespace tensorgrad::tool {

struct TaskOptions {
  DeviceOptions where;
  std::uint32_t seed = 0;
  std::int64_t steps = 0, batch = 0;
  double lr = 0;
};

// For models of sequences: tokens, targets and a mask [B, T]; the learning rate rises, then falls.
TrainingOptions sequence_options(const TaskOptions& options, std::int64_t T);

class Task {
 public:
  virtual ~Task() = default;
  virtual TrainingHandle& training() = 0;
  // One step on the next batch, enqueued.
  virtual Result step() = 0;

  enum class Extent { some, all };
  // The share of held-out examples, 0 to 1, that the model gets right; `some` is quick.
  virtual double accuracy(Extent extent) = 0;
  // A few held-out examples with the model's answers, a line each.
  virtual std::vector<std::string> samples() = 0;
};

std::unique_ptr<Task> make_addition(const TaskOptions& options);
std::unique_ptr<Task> make_copy(const TaskOptions& options);
std::unique_ptr<Task> make_sin(const TaskOptions& options);

}  // namespace tensorgrad::tool
