#include "codegen/wgsl/source.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace tensorgrad::wgsl {

const char* name(Region region) {
  switch (region) {
    case Region::scratch:
      return "scratch";
    case Region::faults:
      return "faults";
    default:
      return ir::name(static_cast<ir::Space>(region));
  }
}

std::string type_name(DType dtype, int width) {
  const char* const one = dtype == DType::f32 ? "f32" : dtype == DType::i32 ? "i32" : "bool";
  return width == 1 ? one : fmt::format("vec4<{}>", one);
}

std::string u32_text(std::int64_t value) { return fmt::format("{}u", value); }

std::string moved(const std::string& at, std::int64_t offset) {
  return offset ? fmt::format("{} + {}u", at, offset) : at;
}

std::string number(double value, DType dtype, int width) {
  std::string text;
  if (dtype == DType::f32) {
    const auto f = static_cast<float>(value);
    if (std::isfinite(f)) {
      text = fmt::format("{:.9g}", f);
      if (text.find_first_of(".e") == std::string::npos) text += ".0";
      text += "f";
      if (f < 0 || std::signbit(f)) text = "(" + text + ")";
    } else {  // WGSL has no literals for these and rejects them at compile time
      std::uint32_t bits;
      std::memcpy(&bits, &f, sizeof bits);
      text = fmt::format("bits_to_f32({:#x}u)", bits);
    }
  } else if (dtype == DType::boolean) {
    text = value != 0 ? "true" : "false";
  } else {
    const auto i = static_cast<std::int32_t>(value);
    text = i == INT32_MIN ? "i32(-2147483647 - 1)" : fmt::format("i32({})", i);
  }
  return width == 1 ? text : fmt::format("{}({})", type_name(dtype, width), text);
}

void add(Memories& to, const Memories& more) {
  for (const auto& [region, memory] : more) {
    to[region].writable = to[region].writable || memory.writable;
    to[region].dtypes.insert(memory.dtypes.begin(), memory.dtypes.end());
  }
}

void Source::note(Region region, DType dtype, bool writes) {
  Memory& memory = memory_[region];
  memory.dtypes.insert(dtype == DType::boolean ? DType::i32 : dtype);
  memory.writable = memory.writable || writes;
}

bool Source::typed(Region region) const { return memory_.at(region).dtypes.size() == 1; }

namespace {

// Decodes a value from memory. Bools are stored as 0 or 1.
std::string decoded(const std::string& text, DType dtype, bool typed, int width) {
  if (dtype == DType::boolean)
    return fmt::format("({} != {}({}))", text,
                       width == 1 ? (typed ? "i32" : "u32") : (typed ? "vec4<i32>" : "vec4<u32>"),
                       0);
  return typed ? text : fmt::format("bitcast<{}>({})", type_name(dtype, width), text);
}

std::string encoded(const std::string& text, DType dtype, bool typed, int width) {
  if (dtype == DType::boolean) {
    const char* one = typed ? "i32" : "u32";
    return width == 1 ? fmt::format("select({0}(0), {0}(1), {1})", one, text)
                      : fmt::format("select(vec4<{0}>(0), vec4<{0}>(1), {1})", one, text);
  }
  return typed ? text : fmt::format("bitcast<{}>({})", width == 1 ? "u32" : "vec4<u32>", text);
}

}  // namespace

// Relocates an address to the piece's part of the region.
std::string Source::placed(Region region, const std::string& address, int width) const {
  return region == Region::scratch ? moved(address, scratch_at_ / width) : address;
}

std::string Source::element(Region region, const std::string& address, DType dtype) const {
  const std::string at = placed(region, address, 1);
  const std::string place =
      quads_ && region != Region::faults
          ? fmt::format("{0}[({1}) >> 2u][({1}) & 3u]", wgsl::name(region), at)
          : fmt::format("{}[{}]", wgsl::name(region), at);
  return decoded(place, dtype, typed(region), 1);
}

std::string Source::quad(Region region, const std::string& quad, DType dtype) const {
  return decoded(fmt::format("{}[{}]", wgsl::name(region), placed(region, quad, 4)), dtype,
                 typed(region), 4);
}

void Source::store_element(Region region, const std::string& address, DType dtype,
                           const std::string& value) {
  const std::string what = encoded(value, dtype, typed(region), 1), at = placed(region, address, 1);
  if (quads_ && region != Region::faults)
    line("{0}[({1}) >> 2u][({1}) & 3u] = {2};", wgsl::name(region), at, what);
  else
    line("{}[{}] = {};", wgsl::name(region), at, what);
}

void Source::store_quad(Region region, const std::string& quad, DType dtype,
                        const std::string& value) {
  line("{}[{}] = {};", wgsl::name(region), placed(region, quad, 4),
       encoded(value, dtype, typed(region), 4));
}

void Source::add_line(const std::string& text) {
  body_.append(2 * known_.size(), ' ');
  body_ += text;
  body_ += '\n';
}

void Source::open(const std::string& head) {
  add_line(head);
  known_.emplace_back();
}

void Source::close(const std::string& tail) {
  known_.pop_back();
  add_line("}" + tail);
}

std::string Source::let(const std::string& expression, const char* hint) {
  for (const auto& block : known_)
    if (const auto found = block.find(expression); found != block.end()) return found->second;
  std::string name = fresh(hint);
  line("let {} = {};", name, expression);
  known_.back().emplace(expression, name);
  return name;
}

void Source::declare(const std::string& text) {
  if (std::find(common_.begin(), common_.end(), text) == common_.end()) common_.push_back(text);
}

Piece Source::finish(std::int64_t invocations, std::int64_t groups, std::int64_t scratch_elements) {
  return {.name = name_,
          .memory = std::move(memory_),
          .quads = quads_,
          .workgroup = std::move(workgroup_),
          .common = std::move(common_),
          .own = std::move(own_),
          .body = std::move(body_),
          .invocations = invocations,
          .groups = groups,
          .scratch_elements = scratch_elements};
}

}  // namespace tensorgrad::wgsl
