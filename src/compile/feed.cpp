// Inputs: checked against the declarations of the program, then uploaded.
#include <algorithm>
#include <cstring>

#include "compile/program.h"
#include "support/fail.h"
#include "support/text.h"

namespace tensorgrad::detail {

namespace {

std::span<const std::byte> bytes_of(const FeedValue& value) {
  return value.dtype() == DType::f32 ? std::as_bytes(value.floats()) : std::as_bytes(value.ints());
}

using Item = std::pair<std::string, FeedValue>;

const InputSpec& spec_of(const std::string& name, const std::vector<InputSpec>& specs) {
  const auto spec = std::find_if(specs.begin(), specs.end(),
                                 [&](const InputSpec& each) { return each.name == name; });
  if (spec != specs.end()) return *spec;
  std::vector<std::string> names;
  for (const InputSpec& each : specs) names.push_back(each.name);
  const std::string near = nearest_name(name, names);
  user_error("input: there is no input '{}': the inputs are {}{}", name,
             names.empty() ? "none" : join(names, ", "),
             near.empty() ? "" : fmt::format("\n  hint: '{}'?", near));
}

void check_value(const InputSpec& spec, const FeedValue& value) {
  const char* type = tensorgrad::name(spec.dtype);
  const bool wants_real = spec.dtype == DType::f32, is_real = value.dtype() == DType::f32;
  if (wants_real != is_real)
    user_error("input: '{}' is {}{}, {} values were fed", spec.name, type, spec.shape.text(),
               tensorgrad::name(value.dtype()));
  const std::size_t count = is_real ? value.floats().size() : value.ints().size();
  if (static_cast<std::int64_t>(count) != spec.shape.count())
    user_error("input: '{}' is {}{} and needs {} values, {} were fed", spec.name, type,
               spec.shape.text(), spec.shape.count(), count);
  if (value.shape() && *value.shape() != spec.shape)
    user_error("input: '{}' is {}{}, an array of shape {} was fed", spec.name, type,
               spec.shape.text(), value.shape()->text());
  if (spec.dtype == DType::boolean)
    for (const std::int32_t v : value.ints())
      if (v != 0 && v != 1)
        user_error("input: '{}' is bool and must be 0 or 1: {} was fed", spec.name, v);
}

}  // namespace

// The values of a run, by the order of the inputs.
std::vector<Program::Fed> Program::values_of(const Feed& feed) const {
  check_feed(feed);
  std::vector<Fed> out;
  const std::vector<Item>& items = feed.items();
  for (const InputSpec& spec : inputs()) {
    const std::int64_t offset = layout_.find(spec.name)->offset;
    const auto item = std::find_if(items.begin(), items.end(),
                                   [&](const Item& each) { return each.first == spec.name; });
    if (item != items.end()) {
      out.push_back({spec.name, offset, bytes_of(item->second), nullptr, false});
    } else {
      const Bytes& held = held_.at(spec.name);
      out.push_back({spec.name, offset, *held, held, true});
    }
  }
  return out;
}

void Program::check_feed(const Feed& feed) const {
  const std::vector<Item>& items = feed.items();
  for (std::size_t i = 0; i < items.size(); ++i) {
    const auto& [name, value] = items[i];
    const InputSpec& spec = spec_of(name, inputs());
    for (std::size_t j = 0; j < i; ++j)
      if (items[j].first == name) user_error("input: '{}' is fed twice", name);
    check_value(spec, value);
  }
  for (const InputSpec& spec : inputs()) {
    const bool fed = std::any_of(items.begin(), items.end(),
                                 [&](const Item& item) { return item.first == spec.name; });
    if (!fed && !held_.count(spec.name))
      user_error("input: '{}' is missing: it is {}{}\n  hint: feed it, or set_input() once",
                 spec.name, tensorgrad::name(spec.dtype), spec.shape.text());
  }
}

void Program::set_input(const std::string& name, const FeedValue& value) {
  check_value(spec_of(name, inputs()), value);
  const auto bytes = bytes_of(value);
  const std::lock_guard lock(driver_.turn());
  held_[name] = std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end());
}

// What the buffer holds of set_input() is not uploaded again.
void Program::upload(const std::vector<Fed>& inputs) {
  for (const Fed& fed : inputs) {
    const auto known = fed.held || !uploaded_.empty() ? uploaded_.find(fed.name) : uploaded_.end();
    if (fed.held && known != uploaded_.end() && known->second == fed.owner) continue;
    driver_.device().upload(*inputs_, fed.offset, fed.bytes);
    if (fed.held)
      uploaded_.insert_or_assign(std::string(fed.name), fed.owner);
    else if (known != uploaded_.end())
      uploaded_.erase(known);
  }
}

void Program::feed_scalar(const char* name, float value) {
  const auto* entry = layout_.find(name);
  if (!entry) return;
  std::int32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  const auto last = scalars_.try_emplace(name, ~bits).first;
  if (last->second == bits) return;  // already uploaded
  driver_.device().upload(*inputs_, entry->offset, std::as_bytes(std::span(&bits, 1)));
  last->second = bits;
}

}  // namespace tensorgrad::detail
