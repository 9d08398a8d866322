// Inputs: checked against the declarations of the program, then uploaded.
#include <algorithm>
#include <cstring>

#include "compile/session.h"
#include "support/fail.h"
#include "support/text.h"

namespace tensorgrad::detail {

namespace {

std::span<const std::byte> bytes_of(const FeedValue& value) {
  return value.dtype() == DType::f32 ? std::as_bytes(value.floats()) : std::as_bytes(value.ints());
}

}  // namespace

void Session::check_feed(const Program& program, const Feed& feed) const {
  std::vector<std::string> names;
  for (const InputSpec& spec : program.specs) names.push_back(spec.name);
  const auto& items = feed.items();
  for (std::size_t i = 0; i < items.size(); ++i) {
    const auto& [name, value] = items[i];
    const auto spec = std::find_if(program.specs.begin(), program.specs.end(),
                                   [&, &own = name](const InputSpec& s) { return s.name == own; });
    if (spec == program.specs.end()) {
      const std::string near = nearest_name(name, names);
      user_error("input: there is no input '{}': the inputs are {}{}", name,
                 names.empty() ? "none" : join(names, ", "),
                 near.empty() ? "" : fmt::format("\n  hint: '{}'?", near));
    }
    for (std::size_t j = 0; j < i; ++j)
      if (items[j].first == name) user_error("input: '{}' is fed twice", name);
    const bool wants_real = spec->dtype == DType::f32, is_real = value.dtype() == DType::f32;
    if (wants_real != is_real)
      user_error("input: '{}' is {}{}, {} values were fed", name, tensorgrad::name(spec->dtype),
                 spec->shape.text(), tensorgrad::name(value.dtype()));
    const std::size_t count = is_real ? value.floats().size() : value.ints().size();
    if (static_cast<std::int64_t>(count) != spec->shape.count())
      user_error("input: '{}' is {}{} and needs {} values, {} were fed", name,
                 tensorgrad::name(spec->dtype), spec->shape.text(), spec->shape.count(), count);
    if (value.shape() && *value.shape() != spec->shape)
      user_error("input: '{}' is {}{}, an array of shape {} was fed", name,
                 tensorgrad::name(spec->dtype), spec->shape.text(), value.shape()->text());
    if (spec->dtype == DType::boolean)
      for (const std::int32_t v : value.ints())
        if (v != 0 && v != 1)
          user_error("input: '{}' is bool and must be 0 or 1: {} was fed", name, v);
  }
  for (const InputSpec& spec : program.specs) {
    const bool fed = std::any_of(items.begin(), items.end(),
                                 [&](const auto& item) { return item.first == spec.name; });
    if (!fed && !program.held.count(spec.name))
      user_error("input: '{}' is missing: it is {}{}\n  hint: feed it, or set_input() once",
                 spec.name, tensorgrad::name(spec.dtype), spec.shape.text());
  }
}

void Session::feed_inputs(Program& program, const Feed& feed) {
  for (const auto& [name, value] : feed.items()) {
    if (const auto held = program.held.find(name); held != program.held.end())
      held->second.current = false;
    device_->upload(*program.input_buffer, program.inputs.find(name)->offset, bytes_of(value));
  }
  for (auto& [name, held] : program.held) {
    const bool fed = std::any_of(feed.items().begin(), feed.items().end(),
                                 [&, &own = name](const auto& item) { return item.first == own; });
    if (fed || held.current) continue;
    device_->upload(*program.input_buffer, program.inputs.find(name)->offset, held.bytes);
    held.current = true;
  }
}

void Session::feed_scalar(Program& program, const char* name, float value) {
  const auto* entry = program.inputs.find(name);
  if (!entry) return;
  std::int32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  const auto last = program.scalars.try_emplace(name, ~bits).first;
  if (last->second == bits) return;  // already uploaded
  device_->upload(*program.input_buffer, entry->offset, std::as_bytes(std::span(&bits, 1)));
  last->second = bits;
}

void Session::set_input(Program& program, const std::string& name, const FeedValue& value) {
  std::lock_guard lock(*mutex_);
  Program only;
  only.specs = program.specs;
  std::erase_if(only.specs, [&](const InputSpec& spec) { return spec.name != name; });
  if (only.specs.empty()) only.specs = program.specs;
  check_feed(only, {{name, value}});
  const auto bytes = bytes_of(value);
  program.held[name] = {{bytes.begin(), bytes.end()}, false};
}

}  // namespace tensorgrad::detail
