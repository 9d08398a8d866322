// Upload and download of parameters and optimizer state.
#include <algorithm>

#include "compile/session.h"
#include "ir/primitive.h"
#include "support/fail.h"
#include "support/sha256.h"
#include "support/text.h"

namespace tensorgrad::detail {

using ir::Space;

std::vector<ParamInfo> Session::parameters() const {
  std::vector<ParamInfo> out;
  for (const Parameter& p : params_.list) out.push_back({p.name, p.shape, p.decay, p.frozen});
  return out;
}

NamedArrays Session::download(Space space) {
  std::lock_guard lock(*mutex_);
  initialise();
  NamedArrays out;
  for (const Parameter& p : params_.list) {
    if (space == Space::gradients && p.frozen) continue;
    const runtime::Buffer& buffer = space == Space::gradients ? *gradient_buffer_ : *param_buffer_;
    const char* what = space == Space::gradients ? "the gradient of" : "parameter";
    out.emplace(p.name, read_array(buffer, layout_.layout.find(p.name)->offset,
                                   {DType::f32, p.shape}, fmt::format("{} {}", what, p.name)));
  }
  return out;
}

void Session::upload(const NamedArrays& values, Upload mode) {
  std::lock_guard lock(*mutex_);
  check_parameters(values, mode);
  write_parameters(values);
}

void Session::check_parameters(const NamedArrays& values, Upload mode) const {
  const std::vector<std::string> names = params_.names();
  for (const auto& [name, array] : values) {
    const auto* entry = layout_.layout.find(name);
    if (!entry) {
      const auto alias = params_.aliases.find(name);
      const std::string hint = alias != params_.aliases.end()
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

void Session::write_parameters(const NamedArrays& values) {
  for (std::size_t i = 0; i < params_.list.size(); ++i) {
    const Parameter& p = params_.list[i];
    const auto given = values.find(p.name);
    if (given == values.end()) continue;
    device_->upload(*param_buffer_, layout_.layout.find(p.name)->offset,
                    std::as_bytes(given->second.floats()));
    has_values_[i] = true;
  }
}

namespace {

// Entries of the optimizer state. The second exists if a schedule was set after the first update.
constexpr const char* kStepEntry = "step";       // steps made so far
constexpr const char* kStartEntry = "lr_start";  // updates made before the schedule was set

}  // namespace

static bool is_of_the_guard(const schedule::Layout::Entry& entry) {
  return entry.name == optim::kFailedState || entry.name == optim::kStepsState;
}

// Flat state is one tensor, "m". Users see it by parameter, "m:l1.W".
static std::string state_name(const schedule::Layout::Entry& entry, const Parameter& p) {
  return entry.name + ":" + p.name;
}

NamedArrays Session::optimizer_state() {
  std::lock_guard lock(*mutex_);
  notice();
  NamedArrays out;
  for (const auto& entry : state_layout_.entries()) {
    if (is_of_the_guard(entry)) continue;
    if (!entry.flat) {
      out.emplace(entry.name,
                  read_array(*state_buffer_, entry.offset, entry.type, "state " + entry.name));
      continue;
    }
    for (const Parameter& p : params_.list) {
      if (p.frozen) continue;
      const std::string name = state_name(entry, p);
      const std::int64_t offset = entry.offset + layout_.layout.find(p.name)->offset;
      out.emplace(name, read_array(*state_buffer_, offset, {DType::f32, p.shape}, "state " + name));
    }
  }
  const auto number = [](std::int64_t value) {
    return Array({}, std::vector<std::int32_t>{static_cast<std::int32_t>(value)});
  };
  out.emplace(kStepEntry, number(steps_));
  if (lr_start_ > 0) out.emplace(kStartEntry, number(lr_start_));
  return out;
}

void Session::upload_optimizer_state(const NamedArrays& state) {
  std::lock_guard lock(*mutex_);
  notice();
  check_optimizer_state(state);
  write_optimizer_state(state);
}

void Session::restore(const NamedArrays& parameters, const NamedArrays& state) {
  std::lock_guard lock(*mutex_);
  notice();
  check_parameters(parameters, Upload::strict);
  check_optimizer_state(state);
  write_parameters(parameters);
  write_optimizer_state(state);
}

std::map<std::string, ir::Type> Session::state_types() const {
  std::map<std::string, ir::Type> types = {{kStepEntry, {DType::i32, {}}}};
  for (const auto& entry : state_layout_.entries()) {
    if (is_of_the_guard(entry)) continue;
    if (!entry.flat)
      types.emplace(entry.name, entry.type);
    else
      for (const Parameter& p : params_.list)
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

}  // namespace

void Session::check_optimizer_state(const NamedArrays& state) const {
  std::map<std::string, ir::Type> types = state_types();
  if (state.count(kStartEntry)) types.emplace(kStartEntry, types.at(kStepEntry));
  for (const auto& [name, type] : types) {
    const auto given = state.find(name);
    if (given == state.end()) user_error("upload_optimizer_state: missing: {}", name);
    const Array& array = given->second;
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

void Session::write_optimizer_state(const NamedArrays& state) {
  const auto put = [&](std::int64_t offset, const std::string& name) {
    const Array& array = state.at(name);
    device_->upload(
        *state_buffer_, offset,
        array.dtype() == DType::f32 ? std::as_bytes(array.floats()) : std::as_bytes(array.ints()));
  };
  for (const auto& entry : state_layout_.entries()) {
    if (is_of_the_guard(entry)) continue;
    if (!entry.flat)
      put(entry.offset, entry.name);
    else
      for (const Parameter& p : params_.list)
        if (!p.frozen)
          put(entry.offset + layout_.layout.find(p.name)->offset, state_name(entry, p));
  }
  steps_ = count_in(state, kStepEntry);
  stale_sums_ = true;
  lr_start_ = count_in(state, kStartEntry);
  write_counter(optim::kStepsState, steps_);
}

std::string Session::fingerprint() {
  std::lock_guard lock(*mutex_);
  Sha256 sha;
  const NamedArrays values = download(Space::parameters);
  for (const Parameter& p : params_.list) {
    sha.update(std::as_bytes(std::span(p.name.c_str(), p.name.size() + 1)));
    sha.update(std::as_bytes(values.at(p.name).floats()));
  }
  return sha.finish();
}

void Session::reset(Program& program, std::optional<std::uint32_t> seed) {
  std::lock_guard lock(*mutex_);
  reset_optimizer(program);
  device_->clear(*gradient_buffer_);
  if (seed) seed_ = *seed;
  has_values_.assign(params_.list.size(), false);
}

void Session::reset_optimizer(Program& program) {
  std::lock_guard lock(*mutex_);
  device_->clear(*program.faults);
  device_->clear(*state_buffer_);
  program.runs = 0;
  pending_.clear();
  steps_ = 0;
  lr_start_ = 0;
}

void Session::set_lr(Schedule lr) {
  std::lock_guard lock(*mutex_);
  if (!updates_) user_error("set_lr: this program has no optimizer: NoOptimizer updates nothing");
  lr_start_ = lr.constant() ? 0 : next_update() - 1;
  lr_ = std::move(lr);
}

double Session::next_lr() const {
  std::lock_guard lock(*mutex_);
  return next_rate();
}

std::int64_t Session::steps() const {
  std::lock_guard lock(*mutex_);
  return steps_;
}

}  // namespace tensorgrad::detail
