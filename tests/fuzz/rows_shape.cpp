// Views, and ops that create tensors.
#include <algorithm>
#include <utility>

#include "tests/fuzz/rows.h"

namespace tensorgrad::fuzz {
namespace {

std::vector<std::int64_t> dims(const Tensor& x) { return x.shape(); }

Tensor reshaped(Args& a) {
  const Tensor x = with_rank(a[0], 1);
  std::vector<std::int64_t> shape = dims(x);
  const auto axis = static_cast<std::size_t>(a.axis(x));
  const auto at = shape.begin() + static_cast<std::ptrdiff_t>(axis);
  switch (a.pick(5)) {
    case 0:
      return reshape(x, {-1});
    case 1:  // merge with the next
      if (axis + 1 == shape.size()) return reshape(x, shape);
      *at *= *(at + 1);
      shape.erase(at + 1);
      return reshape(x, shape);
    case 2: {  // split in two
      const std::int64_t size = *at;
      std::int64_t factor = 1 + a.pick(size);
      while (size % factor != 0) --factor;
      *at = size / factor;
      shape.insert(at + a.pick(2), factor);
      return reshape(x, shape);
    }
    case 3:
      shape.insert(at, 1);
      return reshape(x, shape);
    default:  // across the axes
      std::reverse(shape.begin(), shape.end());
      return reshape(x, shape);
  }
}

Tensor permuted(Args& a) {
  const Tensor x = a[0];
  std::vector<int> order;
  for (int d = 0; d < x.rank(); ++d) order.push_back(d);
  for (std::size_t n = order.size(); n > 1; --n)
    std::swap(order[n - 1], order[n - 1 - static_cast<std::size_t>(a.pick(static_cast<int>(n)))]);
  return permute(x, order);
}

Tensor swapped(Args& a) {
  const Tensor x = with_rank(a[0], 2);
  return swap_axes(x, a.axis(x), -1);
}

Tensor broadcast(Args& a) {
  Shape shape = a[0].shape();
  for (int d = 0; d < shape.rank(); ++d)
    if (shape[d] == 1) shape[d] = a.size();
  if (a.flip()) shape.insert(0, a.size());
  return broadcast_to(a[0], shape);
}

Tensor narrowed(Args& a) {
  const Tensor x = with_rank(a[0], 1);
  const int axis = a.axis(x);
  const std::int64_t start = a.pick(x.size(axis));
  return narrow(x, axis, start, 1 + a.pick(x.size(axis) - start));
}

// The middle part, or the sum of the first and the last.
Tensor part_of_split(Args& a) {
  const Tensor x = with_rank(a[0], 1);
  const int axis = a.axis(x);
  const std::int64_t size = x.size(axis), half = size / 2;
  if (a.flip() && half > 0) {
    const std::vector<Tensor> parts = split(x, {half, size - 2 * half, half}, axis);
    return a.flip() && size > 2 * half ? parts[1] : parts[0] + parts[2];
  }
  const std::vector<Tensor> parts = split(x, static_cast<int>(size), axis);
  return parts[static_cast<std::size_t>(a.pick(size))];
}

Tensor joined(Args& a) {
  const Tensor x = with_rank(a[0], 1);
  const int axis = a.axis(x);
  std::vector<Tensor> parts{x};
  for (int i = 1; i < static_cast<int>(a.in.size()); ++i) {
    Tensor part = of_rank(a[i], x.rank());
    for (int d = 0; d < x.rank(); ++d)
      if (d != axis) part = resized(part, d, x.size(d));
    parts.push_back(part);
  }
  if (a.flip()) std::reverse(parts.begin(), parts.end());
  return concat(parts, axis);
}

Tensor stacked(Args& a) {
  const Tensor x = a[0];
  return stack({x, remade(a[1], x.shape())}, a.pick(x.rank() + 1));
}

Tensor padded(Args& a) {
  const Tensor x = with_rank(a[0], 1);
  const int axis = a.axis(x);
  const std::int64_t size = x.size(axis);
  switch (a.pick(3)) {
    case 0: {
      const std::int64_t before = a.pick(3), after = a.pick(3);
      return pad(x, axis, before, after, PadMode::constant, a.number() - 1);
    }
    case 1: {
      const std::int64_t before = a.pick(size);
      return pad(x, axis, before, a.pick(size), PadMode::reflect);
    }
    default: {
      const std::int64_t before = a.pick(size);
      return pad(x, axis, before, a.pick(size), PadMode::circular);
    }
  }
}

Tensor slid(Args& a) {
  const Tensor x = with_rank(a[0], 1);
  const int axis = a.axis(x);
  const std::int64_t length = x.size(axis), size = 1 + a.pick(std::min<std::int64_t>(length, 4));
  const std::int64_t stride = 1 + a.pick(3);
  const std::int64_t dilation = size > 1 ? 1 + a.pick((length - 1) / (size - 1)) : 1;
  return windows(x, axis, size, stride, dilation);
}

Tensor heads(Args& a) {
  const Tensor x = of_rank(a[0], a.flip() ? 3 : 2);
  std::int64_t count = 1 + a.pick(4);
  while (x.size(-1) % count != 0) --count;
  return split_heads(x, static_cast<int>(count));
}

Tensor rotated(Args& a) {
  Tensor x = with_rank(a[0], 2);
  if (x.size(-1) % 2 != 0) x = concat({x, x}, -1);
  if (a.in.size() > 1) return rope(x, 100, remade(a.ids(1, 9), {}));
  return rope(x, 100, a.pick(5));
}

Tensor counted(Args& a) {
  a.limit = a.size();
  if (a.flip()) return arange(a.limit);
  a.limit = 3 * a.limit;
  return arange(1, a.limit, 3);
}

}  // namespace

std::span<const Row> shape_rows() {
  static const Row rows[] = {
      {"reshape", "a", reshaped, 6},
      {"permute", "a", permuted, 6},
      {"swap_axes", "a", swapped},
      {"broadcast_to", "a", broadcast, 4},
      {"narrow", "a", narrowed, 6},
      {"split", "f", part_of_split, 3},
      {"concat", "ff", joined, 4},
      {"concat", "fff", joined},
      {"concat", "ii", joined, 1},
      {"stack", "ff", stacked},
      {"pad", "n", padded, 4},
      {"unsqueeze", "a", [](Args& a) { return unsqueeze(a[0], a.pick(a[0].rank() + 1)); }},
      {"squeeze", "a",
       [](Args& a) {
         const Tensor x = with_rank(a[0], 1);
         const int axis = a.axis(x);
         return squeeze(narrow(x, axis, a.pick(x.size(axis)), 1), axis);
       },
       1},
      {"windows", "f", slid, 3},
      {"windows", "i", slid, 1},
      {"split_heads", "f", heads, 1},
      {"merge_heads", "f", [](Args& a) { return merge_heads(of_rank(a[0], a.flip() ? 4 : 3)); }, 1},
      {"rope", "f", rotated, 1},
      {"rope", "fi", rotated, 1},
      {"tril", "f", [](Args& a) { return tril(with_rank(a[0], 2), a.pick(4) - 1); }, 1},
      {"arange", "", counted, 1},
  };
  return rows;
}

}  // namespace tensorgrad::fuzz
