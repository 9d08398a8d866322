#include "ir/index_map.h"

#include <fmt/format.h>

#include <algorithm>

#include "support/integers.h"

namespace tensorgrad::ir {

namespace {

std::int64_t value(const Affine& form, const std::int64_t* position, int rank) {
  std::int64_t sum = form.offset;
  for (int d = 0; d < rank; ++d) sum += form.coef[usize(d)] * position[d];
  return sum;
}

}  // namespace

Layer coarsen(const Layer& in) {
  Layer out = in;
  std::vector<int> kept;
  for (int d = 0; d < in.shape.rank(); ++d)
    if (in.shape[d] != 1) kept.push_back(d);
  Shape shape;
  std::vector<int> last;  // the innermost old axis of each new axis
  for (const int d : kept) {
    const auto joins = [&](const Affine& form) {
      return form.coef[usize(last.back())] == form.coef[usize(d)] * in.shape[d];
    };
    bool join = !last.empty() && joins(in.address);
    for (const Guard& guard : in.guards) join = join && joins(guard.form);
    if (join) {
      shape[-1] *= in.shape[d];
      last.back() = d;
    } else {
      shape.push_back(in.shape[d]);
      last.push_back(d);
    }
  }
  const auto pick = [&](const Affine& form) {
    Affine result;
    result.offset = form.offset;
    for (std::size_t i = 0; i < last.size(); ++i) result.coef[i] = form.coef[usize(last[i])];
    return result;
  };
  out.shape = shape;
  out.address = pick(in.address);
  for (std::size_t g = 0; g < in.guards.size(); ++g) out.guards[g].form = pick(in.guards[g].form);
  return out;
}

IndexMap IndexMap::contiguous(const Shape& shape) {
  IndexMap map;
  Layer layer;
  layer.shape = shape;
  std::int64_t stride = 1;
  for (int d = shape.rank() - 1; d >= 0; --d) {
    layer.address.coef[usize(d)] = stride;
    stride *= shape[d];
  }
  map.layers_.push_back(layer);
  return map;
}

bool IndexMap::is_contiguous() const {
  if (!is_strided()) return false;
  const Layer flat = coarsen(layers_[0]);
  return flat.address.offset == 0 &&
         (flat.shape.rank() == 0 || (flat.shape.rank() == 1 && flat.address.coef[0] == 1));
}

template <class F>
void IndexMap::each_form(F f) {
  f(layers_.front().address);
  for (Guard& guard : layers_.front().guards) f(guard.form);
}

void IndexMap::drop_satisfied_guards() {
  Layer& layer = layers_.front();
  if (layer.shape.count() == 0) return;
  std::erase_if(layer.guards, [&](const Guard& guard) {
    std::int64_t low = guard.form.offset, high = low;
    for (int d = 0; d < layer.shape.rank(); ++d) {
      const std::int64_t reach = guard.form.coef[usize(d)] * (layer.shape[d] - 1);
      (reach < 0 ? low : high) += reach;
    }
    return low >= 0 && high < guard.extent;
  });
}

IndexMap IndexMap::permute(const std::vector<int>& order) const {
  IndexMap map = *this;
  Shape shape;
  for (const int d : order) shape.push_back(layers_[0].shape[d]);
  map.layers_[0].shape = shape;
  map.each_form([&](Affine& form) {
    const Affine old = form;
    for (std::size_t i = 0; i < order.size(); ++i) form.coef[i] = old.coef[usize(order[i])];
  });
  return map;
}

IndexMap IndexMap::broadcast(const Shape& shape) const {
  IndexMap map = *this;
  const Shape& from = layers_[0].shape;
  const int lead = shape.rank() - from.rank();
  map.layers_[0].shape = shape;
  map.each_form([&](Affine& form) {
    const Affine old = form;
    for (int d = 0; d < shape.rank(); ++d) {
      const bool repeats = d < lead || (from[d - lead] == 1 && shape[d] != 1);
      form.coef[usize(d)] = repeats ? 0 : old.coef[usize(d - lead)];
    }
  });
  return map;
}

IndexMap IndexMap::narrow(int axis, std::int64_t start, std::int64_t length) const {
  IndexMap map = *this;
  map.layers_[0].shape[axis] = length;
  map.each_form([&](Affine& form) { form.offset += form.coef[usize(axis)] * start; });
  map.drop_satisfied_guards();
  return map;
}

IndexMap IndexMap::flip(int axis) const {
  IndexMap map = *this;
  const std::int64_t last = layers_[0].shape[axis] - 1;
  map.each_form([&](Affine& form) {
    form.offset += form.coef[usize(axis)] * last;
    form.coef[usize(axis)] = -form.coef[usize(axis)];
  });
  return map;
}

IndexMap IndexMap::pad(int axis, std::int64_t before, std::int64_t after, double fill) const {
  IndexMap map = *this;
  Layer& layer = map.layers_[0];
  const std::int64_t size = layer.shape[axis];
  layer.shape[axis] = size + before + after;
  map.each_form([&](Affine& form) { form.offset -= form.coef[usize(axis)] * before; });
  Guard guard;
  guard.form.coef[usize(axis)] = 1;
  guard.form.offset = -before;
  guard.extent = size;
  guard.fill = fill;
  layer.guards.insert(layer.guards.begin(), guard);
  map.drop_satisfied_guards();
  return map;
}

IndexMap IndexMap::windows(int axis, std::int64_t size, std::int64_t stride,
                           std::int64_t dilation) const {
  IndexMap map = *this;
  Layer& layer = map.layers_[0];
  const int rank = layer.shape.rank();
  layer.shape[axis] = (layer.shape[axis] - dilation * (size - 1) - 1) / stride + 1;
  layer.shape.push_back(size);
  map.each_form([&](Affine& form) {
    form.coef[usize(rank)] = form.coef[usize(axis)] * dilation;
    form.coef[usize(axis)] *= stride;
  });
  return map;
}

IndexMap IndexMap::skew(int axis, int other, std::int64_t distance) const {
  IndexMap map = *this;
  map.each_form(
      [&](Affine& form) { form.coef[usize(other)] -= distance * form.coef[usize(axis)]; });
  return map;
}

// Splits the coarsest form of the first layer into the new sizes. If a new axis would straddle two
// old axes, strides cannot express the reshape, and a layer is added instead.
IndexMap IndexMap::reshape(const Shape& shape) const {
  if (shape == layers_[0].shape) return *this;
  if (shape.count() == 0) return contiguous(shape);
  // A contiguous first layer is only a reshape of the layer below.
  if (layers_.size() > 1 && layers_[0] == contiguous(layers_[0].shape).layers_[0]) {
    IndexMap below = *this;
    below.layers_.erase(below.layers_.begin());
    return below.reshape(shape);
  }
  const Layer coarse = coarsen(layers_[0]);
  Layer fine = coarse;
  fine.shape = shape;
  const auto clear = [](Affine& form) { form.coef.fill(0); };
  clear(fine.address);
  for (Guard& guard : fine.guards) clear(guard.form);

  int old = coarse.shape.rank() - 1;
  std::int64_t done = 1;  // the part of the old axis that is covered so far
  bool fits = true;
  for (int d = shape.rank() - 1; d >= 0 && fits; --d) {
    if (shape[d] == 1) continue;
    if (old < 0 || coarse.shape[old] % (done * shape[d]) != 0) {
      fits = false;
      break;
    }
    fine.address.coef[usize(d)] = coarse.address.coef[usize(old)] * done;
    for (std::size_t g = 0; g < fine.guards.size(); ++g)
      fine.guards[g].form.coef[usize(d)] = coarse.guards[g].form.coef[usize(old)] * done;
    done *= shape[d];
    if (done == coarse.shape[old]) --old, done = 1;
  }
  IndexMap map = *this;
  if (fits)
    map.layers_[0] = fine;
  else
    map.layers_.insert(map.layers_.begin(), contiguous(shape).layers_[0]);
  return map;
}

std::int64_t IndexMap::address(const std::int64_t* position, double& fill) const {
  std::int64_t own[kMaxRank];
  const std::int64_t* where = position;
  for (std::size_t l = 0;; ++l) {
    const Layer& layer = layers_[l];
    const int rank = layer.shape.rank();
    for (const Guard& guard : layer.guards) {
      const std::int64_t v = value(guard.form, where, rank);
      if (v < 0 || v >= guard.extent) {
        fill = guard.fill;
        return -1;
      }
    }
    std::int64_t number = value(layer.address, where, rank);
    if (l + 1 == layers_.size()) return number;
    const Shape& next = layers_[l + 1].shape;
    for (int d = next.rank() - 1; d >= 0; --d) {
      own[d] = number % next[d];
      number /= next[d];
    }
    where = own;
  }
}

std::int64_t IndexMap::address_of_linear(std::int64_t linear, double& fill) const {
  std::int64_t position[kMaxRank];
  const Shape& s = shape();
  for (int d = s.rank() - 1; d >= 0; --d) {
    position[d] = linear % s[d];
    linear /= s[d];
  }
  return address(position, fill);
}

std::string IndexMap::text() const {
  std::string out;
  const auto form_text = [](const Affine& form, int rank) {
    std::string text =
        fmt::format("{}", fmt::join(form.coef.begin(), form.coef.begin() + rank, ","));
    return fmt::format("({})+{}", text, form.offset);
  };
  for (const Layer& layer : layers_) {
    if (!out.empty()) out += " then ";
    out += layer.shape.text() + form_text(layer.address, layer.shape.rank());
    for (const Guard& guard : layer.guards)
      out += fmt::format(" if {}<{} else {}", form_text(guard.form, layer.shape.rank()),
                         guard.extent, guard.fill);
  }
  return out;
}

}  // namespace tensorgrad::ir
