#include "codegen/cpu/window_matrix.h"

#include <algorithm>

#include "ir/split_axes.h"
#include "support/integers.h"

namespace tensorgrad::cpu {

std::optional<WindowMatrix> WindowMatrix::make(const ir::Load& load, bool turned) {
  if (load.source != ir::Load::Source::memory || load.dtype != DType::f32) return {};
  const auto map = ir::split_axes(load.map);
  if (!map || map->guards.size() >= kMostForms) return {};
  WindowMatrix out;
  out.place_ = load.place;
  out.forms_ = map->guards.size() + 1;
  out.offset_[0] = map->address.offset;
  for (std::size_t g = 0; g + 1 < out.forms_; ++g) {
    out.offset_[g + 1] = map->guards[g].form.offset;
    out.extent_[g + 1] = map->guards[g].extent;
    if (map->guards[g].fill != map->guards[0].fill) return {};
    out.fill_ = static_cast<float>(map->guards[g].fill);
  }
  const int rank = load.map.shape().rank(), row = turned ? rank - 1 : rank - 2;
  for (std::size_t i = map->digits.size(); i-- > 0;) {
    const auto& [axis, size] = map->digits[i];
    Digit digit{size, {map->address.coef[i]}};
    for (std::size_t g = 0; g + 1 < out.forms_; ++g)
      digit.step[g + 1] = map->guards[g].form.coef[i];
    (axis < rank - 2 ? out.batch_ : axis == row ? out.row_ : out.column_).push_back(digit);
  }
  if (!out.column_.empty()) out.width_ = out.column_[0].size, out.across_ = out.column_[0].step;
  // Rows of a rectangle, if no guard depends on both its width and its height.
  if (out.column_.size() < 2) return out;
  const Values& down = out.column_[1].step;
  for (std::size_t g = 1; g < out.forms_; ++g)
    if (out.across_[g] != 0 && down[g] != 0) return out;
  out.height_ = out.column_[1].size, out.down_ = down;
  return out;
}

void WindowMatrix::add(const std::vector<Digit>& digits, std::int64_t index, Values& values) const {
  for (const Digit& digit : digits) {
    const std::int64_t position = index % digit.size;
    index /= digit.size;
    for (std::size_t f = 0; f < forms_; ++f) values[f] += position * digit.step[f];
  }
}

void WindowMatrix::columns(std::int64_t batch, std::int64_t first, std::int64_t n,
                           Columns& out) const {
  Values start = offset_;
  add(batch_, batch, start);
  out.parts.clear();
  for (std::int64_t at = 0; at < n;) {
    const std::int64_t x = (first + at) % width_, y = (first + at) / width_ % height_;
    const std::int64_t width = std::min(n - at, width_ - x),
                       height = width == width_ ? std::min((n - at) / width_, height_ - y) : 1;
    out.parts.push_back(
        {static_cast<int>(at), static_cast<int>(width), static_cast<int>(height), start});
    add(column_, first + at, out.parts.back().values);
    at += width * height;
  }
}

namespace {

// The i of 0 .. n-1 where 0 <= value + i * step < extent: low .. high-1. Shrinks a range.
struct Range {
  int low, high;

  void limit(std::int64_t value, std::int64_t step, std::int64_t extent) {
    while (low < high && outside(value + low * step, extent)) ++low;
    while (low < high && outside(value + (high - 1) * step, extent)) --high;
  }
  static bool outside(std::int64_t value, std::int64_t extent) {
    return value < 0 || value >= extent;
  }
};

}  // namespace

void WindowMatrix::read(const Memory& memory, const Columns& columns, std::int64_t row,
                        float* to) const {
  Values part{};
  add(row_, row, part);
  const float* const base = memory.at(place_);
  for (const Columns::Part& p : columns.parts) {
    Values values = p.values;
    for (std::size_t f = 0; f < forms_; ++f) values[f] += part[f];
    read(base, values, p.width, p.height, to + p.at);
  }
}

void WindowMatrix::read(const float* base, const Values& values, int width, int height,
                        float* to) const {
  Range x{0, width}, y{0, height};
  for (std::size_t g = 1; g < forms_; ++g)
    if (height == 1 || down_[g] == 0)
      x.limit(values[g], across_[g], extent_[g]);
    else
      y.limit(values[g], down_[g], extent_[g]);
  std::fill(to, to + y.low * width, fill_);
  std::fill(to + y.high * width, to + height * width, fill_);
  const std::int64_t across = across_[0], down = down_[0];
  const float* from = base + values[0] + y.low * down + x.low * across;
  for (float* line = to + y.low * width; line < to + y.high * width; line += width, from += down) {
    for (int i = 0; i < x.low; ++i) line[i] = fill_;
    for (int i = x.high; i < width; ++i) line[i] = fill_;
    if (across == 1)
      copy_floats(from, x.high - x.low, line + x.low);
    else
      for (int i = 0; i < x.high - x.low; ++i) line[x.low + i] = from[i * across];
  }
}

}  // namespace tensorgrad::cpu
