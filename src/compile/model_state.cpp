#include "compile/model_state.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "compile/initialise.h"
#include "compile/memory.h"
#include "compile/read_arrays.h"
#include "optim/update.h"
#include "support/fail.h"
#include "support/integers.h"
#include "support/text.h"

namespace tensorgrad::detail {

using ir::Space;

ModelState::ModelState(Parameters parameters, std::uint32_t seed)
    : parameters_(std::move(parameters)),
      has_values_(parameters_.list.size(), false),
      layout_(std::make_shared<const ParameterLayout>(lay_out(parameters_))),
      seed_(seed) {}

Completion<Done> ModelState::place(std::shared_ptr<runtime::Device> device) {
  device_ = std::move(device);
  return allocate(*device_, Space::parameters, layout_->layout.elements(), nullptr,
                  [layout = layout_] { return tenants(layout->layout); })
      .map([memory = memory_](const std::shared_ptr<runtime::Buffer>& buffer) {
        memory->values = buffer;
        return Done{};
      });
}

Completion<Done> ModelState::place_training(const std::shared_ptr<const schedule::Plan>& plan) {
  const auto placed = [&](Space space, std::int64_t elements,
                          std::shared_ptr<runtime::Buffer> Memory::*where) {
    return allocate(*device_, space, elements, plan.get(),
                    [layout = layout_, plan] { return tenants(layout->layout); })
        .map([memory = memory_, where](const std::shared_ptr<runtime::Buffer>& buffer) {
          (*memory).*where = buffer;
          return Done{};
        });
  };
  return all<Done>({placed(Space::gradients, layout_->layout.elements(), &Memory::gradients),
                    placed(Space::state, optimizer_layout_.elements(), &Memory::optimizer)});
}

void ModelState::bind(runtime::Spaces& spaces) const {
  spaces[usize(Space::parameters)] = memory_->values;
  spaces[usize(Space::gradients)] = memory_->gradients;
  spaces[usize(Space::state)] = memory_->optimizer;
}

void ModelState::initialise() {
  for (std::size_t i = 0; i < parameters_.list.size(); ++i) {
    if (has_values_[i]) continue;
    const Parameter& p = parameters_.list[i];
    const std::vector<float> values = compile_stage::initial_values(p.init, p.shape, p.name, seed_);
    device_->upload(*memory_->values, layout_->layout.find(p.name)->offset,
                    std::as_bytes(std::span(values)));
    has_values_[i] = true;
  }
}

Completion<NamedArrays> ModelState::read(Space space) {
  initialise();
  const bool gradients = space == Space::gradients;
  std::vector<ArrayPlace> places;
  for (const Parameter& p : parameters_.list) {
    if (gradients && p.frozen) continue;
    places.push_back({.name = p.name,
                      .what = (gradients ? "the gradient of " : "parameter ") + p.name,
                      .buffer = gradients ? memory_->gradients : memory_->values,
                      .offset = layout_->layout.find(p.name)->offset,
                      .type = {DType::f32, p.shape}});
  }
  return read_arrays(*device_, std::move(places));
}

void ModelState::check(const NamedArrays& values, Upload mode) const {
  const std::vector<std::string> names = parameters_.names();
  for (const auto& [name, array] : values) {
    const auto* entry = layout_->layout.find(name);
    if (!entry) {
      const auto alias = parameters_.aliases.find(name);
      const std::string hint = alias != parameters_.aliases.end()
                                   ? fmt::format("it is tied to '{}'", alias->second)
                                   : name_hint(name, names);
      throw UserError(
          user_message("upload", fmt::format("there is no parameter '{}'", name), hint, "", "", 0));
    }
    if (array.dtype() != DType::f32 || array.shape() != entry->type.shape)
      user_error("upload: '{}' is {}, the array is {}{}", name, entry->type.text(),
                 tensorgrad::name(array.dtype()), array.shape().text());
  }
  if (mode == Upload::strict) {
    std::vector<std::string> missing;
    for (const std::string& name : names)
      if (!values.count(name)) missing.push_back(name);
    if (!missing.empty())
      user_error("upload: missing: {}\n  hint: Upload::partial takes some of the parameters",
                 join(missing, ", "));
  }
}

void ModelState::write(const NamedArrays& values) {
  for (std::size_t i = 0; i < parameters_.list.size(); ++i) {
    const Parameter& p = parameters_.list[i];
    const auto given = values.find(p.name);
    if (given == values.end()) continue;
    device_->upload(*memory_->values, layout_->layout.find(p.name)->offset,
                    std::as_bytes(given->second.floats()));
    has_values_[i] = true;
  }
}

namespace {

// Entries of the optimizer state. The second exists if a schedule was set after the first update.
constexpr const char* kStepEntry = "step";       // steps made so far
constexpr const char* kStartEntry = "lr_start";  // updates made before the schedule was set

bool is_of_the_guard(const schedule::Layout::Entry& entry) {
  return entry.name == optim::kFailedState || entry.name == optim::kStepsState;
}

// Flat state is one tensor, "m". Users see it by parameter, "m:l1.W".
std::string state_name(const schedule::Layout::Entry& entry, const Parameter& p) {
  return entry.name + ":" + p.name;
}

}  // namespace

Completion<NamedArrays> ModelState::read_optimizer_state() {
  std::vector<ArrayPlace> places;
  const auto add = [&](const std::string& name, std::int64_t offset, const ir::Type& type) {
    places.push_back({.name = name,
                      .what = "state " + name,
                      .buffer = memory_->optimizer,
                      .offset = offset,
                      .type = type});
  };
  for (const auto& entry : optimizer_layout_.entries()) {
    if (is_of_the_guard(entry)) continue;
    if (!entry.flat) {
      add(entry.name, entry.offset, entry.type);
      continue;
    }
    for (const Parameter& p : parameters_.list)
      if (!p.frozen)
        add(state_name(entry, p), entry.offset + layout_->layout.find(p.name)->offset,
            {DType::f32, p.shape});
  }
  const auto number = [](std::int64_t value) {
    return Array({}, std::vector<std::int32_t>{static_cast<std::int32_t>(value)});
  };
  return read_arrays(*device_, std::move(places))
      .map([number, made = steps, start = schedule_start](NamedArrays& arrays) {
        arrays.emplace(kStepEntry, number(made));
        if (start > 0) arrays.emplace(kStartEntry, number(start));
        return std::move(arrays);
      });
}

std::map<std::string, ir::Type> ModelState::optimizer_types() const {
  std::map<std::string, ir::Type> types = {{kStepEntry, {DType::i32, {}}}};
  for (const auto& entry : optimizer_layout_.entries()) {
    if (is_of_the_guard(entry)) continue;
    if (!entry.flat)
      types.emplace(entry.name, entry.type);
    else
      for (const Parameter& p : parameters_.list)
        if (!p.frozen) types.emplace(state_name(entry, p), ir::Type{DType::f32, p.shape});
  }
  return types;
}

namespace {

// Reads an integer of the state; 0 if it is missing.
std::int64_t count_in(const NamedArrays& state, const char* name) {
  const auto given = state.find(name);
  return given == state.end() ? 0 : given->second.ints()[0];
}

// Checkpoints of version 0.1 count Adam's updates in an f32.
bool is_old_counter(const std::string& name, const Array& array) {
  return name == optim::kUpdatesState && array.dtype() == DType::f32 && array.shape().rank() == 0;
}
constexpr float kLargestOldCount = 1 << 24;

}  // namespace

void ModelState::check_optimizer_state(const NamedArrays& state) const {
  std::map<std::string, ir::Type> types = optimizer_types();
  if (state.count(kStartEntry)) types.emplace(kStartEntry, types.at(kStepEntry));
  for (const auto& [name, type] : types) {
    const auto given = state.find(name);
    if (given == state.end()) user_error("upload_optimizer_state: missing: {}", name);
    const Array& array = given->second;
    if (is_old_counter(name, array)) {
      const float count = array.floats()[0];
      if (!(count >= 0 && count <= kLargestOldCount && count == std::floor(count)))
        user_error("upload_optimizer_state: '{}' counts updates: {}", name, count);
      continue;
    }
    if (array.dtype() != type.dtype || array.shape() != type.shape)
      user_error("upload_optimizer_state: '{}' is {}, the array is {}{}", name, type.text(),
                 tensorgrad::name(array.dtype()), array.shape().text());
  }
  for (const auto& [name, array] : state)
    if (!types.count(name)) user_error("upload_optimizer_state: there is no state '{}'", name);
  const std::int64_t step = count_in(state, kStepEntry), start = count_in(state, kStartEntry);
  if (step < 0)
    user_error("upload_optimizer_state: '{}' counts steps and is not negative: {}", kStepEntry,
               step);
  if (start < 0 || start > step)
    user_error("upload_optimizer_state: '{}' counts updates, of which there were at most {}: {}",
               kStartEntry, step, start);
}

void ModelState::write_optimizer_state(const NamedArrays& state) {
  const auto put = [&](std::int64_t offset, const std::string& name) {
    const Array& array = state.at(name);
    if (is_old_counter(name, array)) {
      const auto count = static_cast<std::int32_t>(array.floats()[0]);
      return device_->upload(*memory_->optimizer, offset, std::as_bytes(std::span(&count, 1)));
    }
    device_->upload(
        *memory_->optimizer, offset,
        array.dtype() == DType::f32 ? std::as_bytes(array.floats()) : std::as_bytes(array.ints()));
  };
  for (const auto& entry : optimizer_layout_.entries()) {
    if (is_of_the_guard(entry)) continue;
    if (!entry.flat)
      put(entry.offset, entry.name);
    else
      for (const Parameter& p : parameters_.list)
        if (!p.frozen)
          put(entry.offset + layout_->layout.find(p.name)->offset, state_name(entry, p));
  }
  steps = count_in(state, kStepEntry);
  schedule_start = count_in(state, kStartEntry);
  write_counter(optim::kStepsState, steps);
}

std::int64_t ModelState::steps_in(const NamedArrays& state) { return count_in(state, kStepEntry); }

void ModelState::reset_optimizer() {
  device_->clear(*memory_->optimizer);
  steps = 0;
  schedule_start = 0;
}

void ModelState::reset(std::optional<std::uint32_t> seed) {
  reset_optimizer();
  device_->clear(*memory_->gradients);
  if (seed) seed_ = *seed;
  has_values_.assign(parameters_.list.size(), false);
}

void ModelState::clear_sums() {
  const auto* entry = optimizer_layout_.find_flat(optim::kSumsState);
  if (!entry) return;
  const std::vector<float> zeros(usize(entry->type.shape.count()));
  device_->upload(*memory_->optimizer, entry->offset, std::as_bytes(std::span(zeros)));
}

Completion<ModelState::Guard> ModelState::read_guard() const {
  std::vector<ArrayPlace> places;
  for (const char* name : {optim::kStepsState, optim::kFailedState})
    if (const auto* entry = optimizer_layout_.find(name))
      places.push_back({.name = name,
                        .what = "the guard",
                        .buffer = memory_->optimizer,
                        .offset = entry->offset,
                        .type = entry->type});
  return read_arrays(*device_, std::move(places)).map([](const NamedArrays& arrays) {
    const auto count = [&](const char* name) -> std::optional<std::int64_t> {
      const auto found = arrays.find(name);
      if (found == arrays.end()) return {};
      return found->second.ints()[0];
    };
    return Guard{count(optim::kStepsState), count(optim::kFailedState)};
  });
}

void ModelState::write_guard(std::int64_t made, std::optional<std::int64_t> failed) {
  if (failed) write_counter(optim::kFailedState, *failed);
  write_counter(optim::kStepsState, made);
}

void ModelState::write_counter(const char* name, std::int64_t value) {
  const auto number = static_cast<std::int32_t>(value);
  if (const auto* entry = optimizer_layout_.find(name))
    device_->upload(*memory_->optimizer, entry->offset, std::as_bytes(std::span(&number, 1)));
}

}  // namespace tensorgrad::detail
