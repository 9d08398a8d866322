// RunWalk: walks any index map as runs. A range of the iteration space becomes a few runs of
// constant stride in memory and runs of fill values; no element is looked up individually.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "ir/index_map.h"
#include "support/integers.h"

namespace tensorgrad::cpu {

class RunWalk {
 public:
  explicit RunWalk(const ir::IndexMap& map) {
    for (const ir::Layer& layer : map.layers()) layers_.push_back(ir::coarsen(layer));
  }

  // Visits elements begin .. begin+n-1: calls data(at, address, stride, count) and fill(at, value,
  // count), where `at` counts from begin. Runs come in order.
  template <class Data, class Fill>
  void each(std::int64_t begin, int n, Data data, Fill fill) const {
    walk(0, 0, begin, 1, n, data, fill);
  }

 private:
  // Visits the linear indices start, start+step, ... in the row-major order of layer `l`.
  template <class Data, class Fill>
  void walk(std::size_t l, int at, std::int64_t start, std::int64_t step, int n, Data& data,
            Fill& fill) const {
    const ir::Layer& layer = layers_[l];
    const int rank = layer.shape.rank();
    while (n > 0) {
      // The position of the first index, and the axis that the step moves along.
      std::int64_t position[kMaxRank], weight = 1, rest = start;
      int axis = -1, count = step == 0 ? n : 1;
      std::int64_t stride = 0;
      for (int d = rank - 1; d >= 0; --d) {
        const std::int64_t size = layer.shape[d];
        position[d] = rest % size;
        rest /= size;
        if (axis < 0 && step != 0 && step % weight == 0 && std::abs(step / weight) < size) {
          axis = d, stride = step / weight;
          const std::int64_t room = stride > 0 ? size - 1 - position[d] : position[d];
          count = static_cast<int>(std::min<std::int64_t>(n, room / std::abs(stride) + 1));
        }
        weight *= size;
      }
      guarded(l, 0, at, 0, count, position, axis, stride, data, fill);
      at += count;
      start += count * step;
      n -= count;
    }
  }

  // Elements from .. to-1 of a run whose first element is at `position`. Guards before `g` hold.
  template <class Data, class Fill>
  void guarded(std::size_t l, std::size_t g, int at, int from, int to, const std::int64_t* position,
               int axis, std::int64_t stride, Data& data, Fill& fill) const {
    if (from >= to) return;
    const ir::Layer& layer = layers_[l];
    const auto step_of = [&](const ir::Affine& form) {
      return axis < 0 ? 0 : form.coef[usize(axis)] * stride;
    };
    const auto value_of = [&](const ir::Affine& form) {
      std::int64_t v = form.offset;
      for (int d = 0; d < layer.shape.rank(); ++d) v += form.coef[usize(d)] * position[d];
      return v;
    };
    if (g == layer.guards.size()) {
      const std::int64_t step = step_of(layer.address),
                         first = value_of(layer.address) + from * step;
      if (l + 1 == layers_.size())
        data(at + from, first, step, to - from);
      else
        walk(l + 1, at + from, first, step, to - from, data, fill);
      return;
    }
    // The subrange of from .. to-1 where 0 <= v + i * step < extent.
    const ir::Guard& guard = layer.guards[g];
    const std::int64_t v = value_of(guard.form), step = step_of(guard.form), top = guard.extent - 1;
    std::int64_t low = from, high = to;
    if (step == 0) {
      if (v < 0 || v > top) high = low;
    } else {
      const std::int64_t enter = step > 0 ? -v : v - top, leave = step > 0 ? top - v : v,
                         s = std::abs(step);
      low = std::clamp<std::int64_t>(enter > 0 ? ceil_div(enter, s) : 0, from, to);
      high = leave < 0 ? low : std::clamp<std::int64_t>(leave / s + 1, low, to);
    }
    if (low > from) fill(at + from, guard.fill, static_cast<int>(low - from));
    guarded(l, g + 1, at, static_cast<int>(low), static_cast<int>(high), position, axis, stride,
            data, fill);
    if (high < to) fill(at + static_cast<int>(high), guard.fill, static_cast<int>(to - high));
  }

  std::vector<ir::Layer> layers_;  // coarsened
};

}  // namespace tensorgrad::cpu
