#include "task.h"

#include <algorithm>

namespace tensorgrad::tool {

namespace {

Schedule rise_and_fall(double peak, std::int64_t steps) {
  const std::int64_t rise = std::clamp<std::int64_t>(steps / 10, 1, 100);
  return warmup(rise, cosine(peak, 0, std::max<std::int64_t>(steps - rise, 1)));
}

}  // namespace

TrainingOptions sequence_options(const TaskOptions& options, std::int64_t T) {
  const Shape shape{options.batch, T};
  return {.inputs = {{"tokens", shape, i32}, {"targets", shape, i32}, {"mask", shape}},
          .optimizer = AdamW{.lr = rise_and_fall(options.lr, options.steps)},
          .clip_grad_norm = 1,
          .seed = options.seed,
          .device = options.where.device,
          .threads = options.where.threads,
          .without = options.where.without,
          .progress = options.where.progress};
}

}  // namespace tensorgrad::tool
