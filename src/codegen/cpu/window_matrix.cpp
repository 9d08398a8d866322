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
    out.fill_[g + 1] = static_cast<float>(map->guards[g].fill);
  }
  const int rank = load.map.shape().rank(), row = turned ? rank - 1 : rank - 2;
  for (std::size_t i = map->digits.size(); i-- > 0;) {
    const auto& [axis, size] = map->digits[i];
    Digit digit{size, {map->address.coef[i]}};
    for (std::size_t g = 0; g + 1 < out.forms_; ++g)
      digit.step[g + 1] = map->guards[g].form.coef[i];
    (axis < rank - 2 ? out.batch_ : axis == row ? out.row_ : out.column_).push_back(digit);
  }
  if (!out.column_.empty()) out.run_ = out.column_[0].size, out.step_ = out.column_[0].step;
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
  out.runs.clear();
  for (std::int64_t at = 0; at < n;) {
    const std::int64_t count = std::min(n - at, run_ - (first + at) % run_);
    out.runs.push_back({static_cast<int>(at), static_cast<int>(count), start});
    add(column_, first + at, out.runs.back().values);
    at += count;
  }
}

void WindowMatrix::read(const Memory& memory, const Columns& columns, std::int64_t row,
                        float* to) const {
  Values part{};
  add(row_, row, part);
  const float* const base = memory.at(place_);
  for (const Columns::Run& run : columns.runs) {
    float* const out = to + run.at;
    std::int64_t low = 0, high = run.count;
    for (std::size_t g = 1; g < forms_; ++g) {
      // Where 0 <= v + i * step < extent.
      const std::int64_t v = run.values[g] + part[g], step = step_[g], extent = extent_[g];
      std::int64_t begin = low, end = high;
      if (step == 0) {
        if (v < 0 || v >= extent) end = begin;
      } else if (step == 1) {
        begin = std::clamp(-v, low, high);
        end = std::clamp(extent - v, begin, high);
      } else {
        while (begin < end && (v + begin * step < 0 || v + begin * step >= extent)) ++begin;
        while (begin < end && (v + (end - 1) * step < 0 || v + (end - 1) * step >= extent)) --end;
      }
      for (std::int64_t i = low; i < begin; ++i) out[i] = fill_[g];
      for (std::int64_t i = end; i < high; ++i) out[i] = fill_[g];
      low = begin, high = end;
    }
    const float* const from = base + run.values[0] + part[0];
    if (const std::int64_t step = step_[0]; step == 1)
      copy_floats(from + low, static_cast<int>(high - low), out + low);
    else
      for (std::int64_t i = low; i < high; ++i) out[i] = from[i * step];
  }
}

}  // namespace tensorgrad::cpu
