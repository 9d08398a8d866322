// A task of `tg train`: data, a model and a measure of success.
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

// Options for sequence models: tokens, targets and a mask [B, T]; the learning rate rises, then
// falls.
TrainingOptions sequence_options(const TaskOptions& options, std::int64_t T);

class Task {
 public:
  virtual ~Task() = default;
  virtual TrainingHandle& training() = 0;
  // Enqueues one step on the next batch.
  virtual Result step() = 0;

  enum class Extent { some, all };
  // The fraction of held-out examples, 0 to 1, that the model gets right; `some` is quick.
  virtual double accuracy(Extent extent) = 0;
  // Describes a right answer: "points within 0.05 of the sine".
  virtual std::string right() const = 0;
  // A few held-out examples with the model's answers, one per line.
  virtual std::vector<std::string> samples() = 0;
};

std::unique_ptr<Task> make_addition(const TaskOptions& options);
std::unique_ptr<Task> make_copy(const TaskOptions& options);
std::unique_ptr<Task> make_sin(const TaskOptions& options);

}  // namespace tensorgrad::tool
