// RunWalk: walks any index map as runs. A range of the iteration space becomes a few runs of
// constant stride in memory and runs of fill values; no element is looked up individually.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#include "ir/index_map.h"
#include "support/integers.h"

namespace tensorgrad::cpu {

class RunWalk {
 public:
  explicit RunWalk(std::vector<ir::Layer> layers) : layers_(std::move(layers)) {}

  // Visits elements begin .. begin+n-1: calls data(at, address, stride, count) and fill(at, value,
  // count), where `at` counts from begin. Runs come in order.
  template <class Data, class Fill>
  void each(std::int64_t begin, int n, Data data, Fill fill) const {
    walk(0, 0, begin, 1, n, data, fill);
  }

 private:
  // The forms of a layer: its address, then the guards.
  static constexpr std::size_t kFew = 8;
  struct Forms {
    explicit Forms(const ir::Layer& layer) {
      const std::size_t n = 1 + layer.guards.size();
      if (n <= kFew) return;
      many.resize(2 * n);
      value = many.data(), step = value + n;
    }
    Forms(const Forms&) = delete;
    Forms& operator=(const Forms&) = delete;

    std::int64_t few[2 * kFew];
    std::vector<std::int64_t> many;
    std::int64_t *value = few,
                 *step = few + kFew;  // at the first element of a run, and per element
  };
  template <class F>
  static void each_form(const ir::Layer& layer, F f) {
    f(std::size_t{0}, layer.address);
    for (std::size_t g = 0; g < layer.guards.size(); ++g) f(g + 1, layer.guards[g].form);
  }

  // Visits the linear indices start, start+step, ... in the row-major order of layer `l`.
  template <class Data, class Fill>
  void walk(std::size_t l, int at, std::int64_t start, std::int64_t step, int n, Data& data,
            Fill& fill) const {
    const ir::Layer& layer = layers_[l];
    Forms forms(layer);
    if (step == 1 && layer.shape.rank() > 0)
      walk_on(l, at, start, n, forms, data, fill);
    else
      walk_by(l, at, start, step, n, forms, data, fill);
  }

  // A step of 1: positions and forms go on from run to run.
  template <class Data, class Fill>
  void walk_on(std::size_t l, int at, std::int64_t start, int n, Forms& forms, Data& data,
               Fill& fill) const {
    const ir::Layer& layer = layers_[l];
    const int last = layer.shape.rank() - 1;
    std::int64_t position[kMaxRank];
    for (int d = last; d >= 0; --d) {
      position[d] = start % layer.shape[d];
      start /= layer.shape[d];
    }
    each_form(layer, [&](std::size_t f, const ir::Affine& form) {
      forms.value[f] = value_of(form, position, last + 1);
      forms.step[f] = form.coef[usize(last)];
    });
    for (;;) {
      const auto count =
          static_cast<int>(std::min<std::int64_t>(n, layer.shape[last] - position[last]));
      guarded(l, 0, at, 0, count, forms, data, fill);
      at += count;
      n -= count;
      if (n == 0) return;
      int turned = last;  // axes from `turned` on start again, the one before goes on
      while (turned > 0 && (turned == last || position[turned] + 1 == layer.shape[turned]))
        --turned;
      each_form(layer, [&](std::size_t f, const ir::Affine& form) {
        for (int d = turned + 1; d <= last; ++d)
          forms.value[f] -= position[d] * form.coef[usize(d)];
        forms.value[f] += form.coef[usize(turned)];
      });
      for (int d = turned + 1; d <= last; ++d) position[d] = 0;
      ++position[turned];
    }
  }

  template <class Data, class Fill>
  void walk_by(std::size_t l, int at, std::int64_t start, std::int64_t step, int n, Forms& forms,
               Data& data, Fill& fill) const {
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
      each_form(layer, [&](std::size_t f, const ir::Affine& form) {
        forms.value[f] = value_of(form, position, rank);
        forms.step[f] = axis < 0 ? 0 : form.coef[usize(axis)] * stride;
      });
      guarded(l, 0, at, 0, count, forms, data, fill);
      at += count;
      start += count * step;
      n -= count;
    }
  }

  static std::int64_t value_of(const ir::Affine& form, const std::int64_t* position, int rank) {
    std::int64_t v = form.offset;
    for (int d = 0; d < rank; ++d) v += form.coef[usize(d)] * position[d];
    return v;
  }

  // Elements from .. to-1 of a run. Guards before `g` hold.
  template <class Data, class Fill>
  void guarded(std::size_t l, std::size_t g, int at, int from, int to, const Forms& forms,
               Data& data, Fill& fill) const {
    if (from >= to) return;
    const ir::Layer& layer = layers_[l];
    if (g == layer.guards.size()) {
      const std::int64_t step = forms.step[0], first = forms.value[0] + from * step;
      if (l + 1 == layers_.size())
        data(at + from, first, step, to - from);
      else
        walk(l + 1, at + from, first, step, to - from, data, fill);
      return;
    }
    // The subrange of from .. to-1 where 0 <= v + i * step < extent.
    const ir::Guard& guard = layer.guards[g];
    const std::int64_t v = forms.value[g + 1], step = forms.step[g + 1], top = guard.extent - 1;
    std::int64_t low = from, high = to;
    if (step == 0) {
      if (v < 0 || v > top) high = low;
    } else {
      const std::int64_t enter = step > 0 ? -v : v - top, leave = step > 0 ? top - v : v,
                         s = std::abs(step);
      // Divisions are slow, and most steps are 1.
      low = std::clamp<std::int64_t>(enter <= 0 ? 0
                                     : s == 1   ? enter
                                                : ceil_div(enter, s),
                                     from, to);
      high =
          leave < 0 ? low : std::clamp<std::int64_t>(s == 1 ? leave + 1 : leave / s + 1, low, to);
    }
    if (low > from) fill(at + from, guard.fill, static_cast<int>(low - from));
    guarded(l, g + 1, at, static_cast<int>(low), static_cast<int>(high), forms, data, fill);
    if (high < to) fill(at + static_cast<int>(high), guard.fill, static_cast<int>(to - high));
  }

  std::vector<ir::Layer> layers_;
};

}  // namespace tensorgrad::cpu
