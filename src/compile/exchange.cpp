// Parameters and optimizer state, in and out.
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
  for (const ParamRecord& p : params_) out.push_back({p.name, p.shape, p.decay, p.frozen});
  return out;
}

NamedArrays Session::download(Space space) const {
  std::lock_guard lock(*mutex_);
  NamedArrays out;
  for (const ParamRecord& p : params_) {
    if (space == Space::gradients && p.frozen) continue;
    const runtime::Buffer& buffer = space == Space::gradients ? *gradient_buffer_ : *param_buffer_;
    out.emplace(p.name, read_array(buffer, param_layout_.find(p.name)->offset, {DType::f32, p.shape}));
  }
  return out;
}

void Session::upload(const NamedArrays& values, Upload mode) {
  std::lock_guard lock(*mutex_);
  std::vector<std::string> names;
  for (const ParamRecord& p : params_) names.push_back(p.name);
  for (const auto& [name, array] : values) {
    const auto* entry = param_layout_.find(name);
    if (!entry) {
      const auto alias = aliases_.find(name);
      const std::string hint = alias != aliases_.end() ? fmt::format("it is tied to '{}'", alias->second) : name_hint(name, names);
      throw UserError(user_message("upload", fmt::format("there is no parameter '{}'", name), hint, "", "", 0));
    }
    if (array.dtype() != DType::f32 || array.shape() != entry->type.shape)
      user_error("upload: '{}' is {}, the array is {}{}", name, entry->type.text(), tensorgrad::name(array.dtype()),
                 array.shape().text());
  }
  if (mode == Upload::strict) {
    std::vector<std::string> missing;
    for (const std::string& name : names)
      if (!values.count(name)) missing.push_back(name);
    if (!missing.empty())
      user_error("upload: missing: {}\n  hint: Upload::partial takes some of the parameters", join(missing, ", "));
  }
  for (const auto& [name, array] : values)
    device_->upload(*param_buffer_, param_layout_.find(name)->offset, std::as_bytes(array.floats()));
}

namespace {

constexpr const char* kStepEntry = "step";  // of the optimizer's state: steps made so far

}  // namespace

// State of all parameters in one tensor, "m:*"; outside it goes by parameter, "m:l1.W".
bool Session::is_flat(const schedule::Layout::Entry& entry) const { return entry.name.back() == ir::kFlat[0]; }

static bool is_of_the_guard(const schedule::Layout::Entry& entry) {
  return entry.name == optim::kFailedState || entry.name == optim::kStepsState;
}

static std::string state_name(const schedule::Layout::Entry& entry, const ParamRecord& p) {
  return entry.name.substr(0, entry.name.size() - 1) + p.name;
}

NamedArrays Session::optimizer_state() {
  std::lock_guard lock(*mutex_);
  notice();
  NamedArrays out;
  for (const auto& entry : state_layout_.entries()) {
    if (is_of_the_guard(entry)) continue;
    if (!is_flat(entry)) {
      out.emplace(entry.name, read_array(*state_buffer_, entry.offset, entry.type));
      continue;
    }
    for (const ParamRecord& p : params_)
      if (!p.frozen)
        out.emplace(state_name(entry, p),
                    read_array(*state_buffer_, entry.offset + param_layout_.find(p.name)->offset, {DType::f32, p.shape}));
  }
  out.emplace(kStepEntry, Array({}, std::vector<std::int32_t>{static_cast<std::int32_t>(steps_)}));
  return out;
}

void Session::upload_optimizer_state(const NamedArrays& state) {
  std::lock_guard lock(*mutex_);
  const NamedArrays now = optimizer_state();
  for (const auto& [name, array] : now) {
    const auto given = state.find(name);
    if (given == state.end()) user_error("upload_optimizer_state: missing: {}", name);
    if (given->second.dtype() != array.dtype() || given->second.shape() != array.shape())
      user_error("upload_optimizer_state: '{}' is {}{}, the array is {}{}", name, tensorgrad::name(array.dtype()),
                 array.shape().text(), tensorgrad::name(given->second.dtype()), given->second.shape().text());
  }
  for (const auto& [name, array] : state)
    if (!now.count(name)) user_error("upload_optimizer_state: there is no state '{}'", name);
  if (const std::int32_t step = state.at(kStepEntry).ints()[0]; step < 0)
    user_error("upload_optimizer_state: '{}' counts steps and is not negative: {}", kStepEntry, step);
  const auto put = [&](std::int64_t offset, const std::string& name) {
    const Array& array = state.at(name);
    device_->upload(*state_buffer_, offset,
                    array.dtype() == DType::f32 ? std::as_bytes(array.floats()) : std::as_bytes(array.ints()));
  };
  for (const auto& entry : state_layout_.entries()) {
    if (is_of_the_guard(entry)) continue;
    if (!is_flat(entry)) put(entry.offset, entry.name);
    else
      for (const ParamRecord& p : params_)
        if (!p.frozen) put(entry.offset + param_layout_.find(p.name)->offset, state_name(entry, p));
  }
  steps_ = state.at(kStepEntry).ints()[0];
  write_counter(optim::kStepsState, steps_);
}

std::string Session::fingerprint() const {
  std::lock_guard lock(*mutex_);
  Sha256 sha;
  const NamedArrays values = download(Space::parameters);
  for (const ParamRecord& p : params_) {
    sha.update(std::as_bytes(std::span(p.name.c_str(), p.name.size() + 1)));
    sha.update(std::as_bytes(values.at(p.name).floats()));
  }
  return sha.finish();
}

void Session::reset(Program& program, std::optional<std::uint32_t> seed) {
  std::lock_guard lock(*mutex_);
  device_->clear(*program.faults);
  device_->clear(*gradient_buffer_);
  device_->clear(*state_buffer_);
  program.runs = 0;
  if (seed) seed_ = *seed;
  pending_.clear();
  steps_ = 0;
  initialise();
}

void Session::set_lr(Schedule lr) {
  std::lock_guard lock(*mutex_);
  lr_ = std::move(lr);
}

double Session::next_lr() const {
  std::lock_guard lock(*mutex_);
  return lr_.at(next_update());
}

std::int64_t Session::steps() const {
  std::lock_guard lock(*mutex_);
  return steps_;
}

}  // namespace tensorgrad::detail
