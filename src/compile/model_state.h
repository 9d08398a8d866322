// ModelState: the parameters of a model on a device, with their gradients, their optimizer state
// and the number of steps. The programs of a model share it. Its owner locks.
//
// There are three counters, all integers. `steps` on the host: the steps enqueued. On the device,
// `guard:steps`: the steps that had effect, which a bad id stops; and one per optimizer, such as
// `adam:updates`: the updates applied. Everything else is derived from them: the step's random
// numbers, its place in the round, its learning rate.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compile/parameters.h"
#include "runtime/device.h"
#include "schedule/layout.h"
#include "schedule/plan.h"
#include "tensorgrad/completion.h"

namespace tensorgrad::detail {

class ModelState {
 public:
  // Lays the parameters out.
  ModelState(Parameters parameters, std::uint32_t seed);

  const Parameters& parameters() const { return parameters_; }
  const ParameterLayout& layout() const { return *layout_; }
  // Where optimizer state lies. Plans add what they need.
  schedule::Layout& optimizer_layout() { return optimizer_layout_; }
  const schedule::Layout& optimizer_layout() const { return optimizer_layout_; }
  std::uint32_t seed() const { return seed_; }

  // Allocates memory for the parameters.
  Completion<Done> place(std::shared_ptr<runtime::Device> device);
  // Allocates gradients and optimizer state, which start as zeros. Errors name the plan's total.
  Completion<Done> place_training(const std::shared_ptr<const schedule::Plan>& plan);
  // Adds the buffers to the memory of a run.
  void bind(runtime::Spaces& spaces) const;

  // Draws the initial values of parameters that were not written. A model whose weights come from a
  // file never pays for them.
  void initialise();
  // Throws a UserError for what write() cannot take, before anything is written.
  void check(const NamedArrays& values, Upload mode) const;
  void write(const NamedArrays& values);
  // `space` is parameters or gradients.
  Completion<NamedArrays> read(ir::Space space);

  // The same for the optimizer state, which includes the counters below.
  void check_optimizer_state(const NamedArrays& state) const;
  void write_optimizer_state(const NamedArrays& state);
  static std::int64_t steps_in(const NamedArrays& state);  // of a state that was checked
  Completion<NamedArrays> read_optimizer_state();

  // Sets the optimizer state to zero.
  void reset_optimizer();
  // Also the gradients. Initial values are drawn again, from this seed if there is one.
  void reset(std::optional<std::uint32_t> seed);
  // Sets the sums of gradients of a round to zero.
  void clear_sums();

  // What the device counts, if the step has such counters.
  struct Guard {
    std::optional<std::int64_t> steps;   // made; not counted at a bad id
    std::optional<std::int64_t> failed;  // 0, or the steps since the last finite one
  };
  Completion<Guard> read_guard() const;
  void write_guard(std::int64_t steps, std::optional<std::int64_t> failed);

  std::int64_t steps = 0;           // enqueued
  std::int64_t schedule_start = 0;  // updates made before the learning rate was set

 private:
  struct Memory {
    std::shared_ptr<runtime::Buffer> values, gradients, optimizer;
  };

  std::map<std::string, ir::Type> optimizer_types() const;
  void write_counter(const char* name, std::int64_t value);

  std::shared_ptr<runtime::Device> device_;
  Parameters parameters_;
  std::vector<bool> has_values_;  // by parameter; false: initial values are drawn at the first use
  std::shared_ptr<const ParameterLayout> layout_;
  schedule::Layout optimizer_layout_;
  // Shared with allocations that are under way, which may outlive the model.
  std::shared_ptr<Memory> memory_ = std::make_shared<Memory>();
  std::uint32_t seed_ = 0;
};

}  // namespace tensorgrad::detail
