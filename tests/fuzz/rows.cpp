#include "tests/fuzz/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "ops/table.h"
#include "support/fail.h"

namespace tensorgrad::fuzz {

constexpr std::int64_t kMostDrawn = 10000;  // elements of a leaf

int Args::pick(std::int64_t n) {
  if (next >= dice.size() || n <= 1) return 0;
  return static_cast<int>(dice[next++] % n);
}

float Args::number() {
  const float numbers[] = {1, 0, 2, -1, 0.5f, -0.3f, 3, 0.1f};
  return numbers[pick(std::size(numbers))];
}

std::int64_t Args::size() { return sizes[static_cast<std::size_t>(pick(std::ssize(sizes)))]; }

Axes Args::axes(const Tensor& x) {
  const int set = pick(std::int64_t{1} << x.rank());
  std::vector<int> axes;
  for (int d = 0; d < x.rank(); ++d)
    if (set >> d & 1) axes.push_back(d);
  return axes;
}

Shape Args::shape() {
  const int ranks[] = {0, 1, 2, 3, 2, 1, 2, 3, 2, 4};
  Shape shape;
  for (int rank = ranks[pick(std::size(ranks))]; rank > 0; --rank) {
    const std::int64_t next_size = size();
    shape.push_back(shape.count() * next_size > kMostDrawn ? 1 : next_size);
  }
  return shape;
}

Tensor Args::ids(int operand, std::int64_t n) {
  const Made& made = in[static_cast<std::size_t>(operand)];
  if (made.limit > 0 && made.limit <= n) return made.tensor;
  return minimum(maximum(made.tensor, 0), static_cast<int>(n - 1));
}

Tensor Args::leaf(ir::Core kind, DType dtype) {
  const ir::Type type{dtype, shape()};
  if (dtype == i32) limit = size();
  const std::uint64_t seed = dice[6] * 65536u + dice[7];
  const double high = dtype == f32 ? 2 : dtype == i32 ? static_cast<double>(limit) : 2;
  leaves[fmt::format("{}:{}", ops::leaf_primitive(kind).name, name)] =
      draw(type, seed, dtype == f32 ? -2 : 0, high);
  return builder.leaf(kind, name, type);
}

bool accepts(char operand, DType dtype) {
  switch (operand) {
    case 'f':
      return dtype == f32;
    case 'i':
      return dtype == i32;
    case 'b':
      return dtype == boolean;
    case 'n':
      return dtype != boolean;
    default:
      return true;
  }
}

std::span<const Row> leaf_rows() {
  static const Row rows[] = {
      {"parameter", "", [](Args& a) { return a.leaf(ir::Core::parameter, f32); }},
      {"input", "", [](Args& a) { return a.leaf(ir::Core::input, f32); }},
      {"state", "", [](Args& a) { return a.leaf(ir::Core::state, f32); }},
      {"ids", "", [](Args& a) { return a.leaf(ir::Core::input, i32); }},
      {"mask", "", [](Args& a) { return a.leaf(ir::Core::input, boolean); }},
  };
  return rows;
}

const Row& row_of_leaf(std::string_view op) {
  for (const Row& row : leaf_rows())
    if (row.op == op) return row;
  internal_error("fuzz: no leaf is called {}", op);
}

const std::vector<const Row*>& drawn_rows() {
  static const std::array tables = {elementwise_rows(), shape_rows(), reduce_rows(), layer_rows()};
  static const std::vector<Row> others = [] {
    std::set<std::string_view> own;
    for (const auto& table : tables)
      for (const Row& row : table) own.insert(row.op);
    return registry_rows(own);
  }();
  static const std::vector<const Row*> rows = [] {
    std::vector<const Row*> all;
    const auto add = [&](std::span<const Row> table) {
      for (const Row& row : table)
        all.insert(all.end(), static_cast<std::size_t>(row.weight), &row);
    };
    for (const auto& table : tables) add(table);
    add(others);
    return all;
  }();
  return rows;
}

Tensor resized(const Tensor& x, int axis, std::int64_t size) {
  const std::int64_t now = x.size(axis);
  if (now == size) return x;
  if (now > size) return narrow(x, axis, 0, size);
  if (now > 1) return pad(x, axis, 0, size - now);
  Shape shape = x.shape();
  shape[axis] = size;
  return broadcast_to(x, shape);
}

Tensor remade(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  const std::int64_t have = x.count(), want = shape.count();
  Tensor flat = reshape(x, {have});
  if (have < want) {
    const std::int64_t times = (want + have - 1) / have;
    flat = reshape(broadcast_to(flat, {times, have}), {times * have});
  }
  if (flat.count() > want) flat = narrow(flat, 0, 0, want);
  return reshape(flat, shape);
}

Tensor fitted(const Tensor& x, const Shape& shape) {
  Tensor y = x;
  while (y.rank() > shape.rank()) y = squeeze(narrow(y, 0, 0, 1), 0);
  for (int d = 1; d <= y.rank(); ++d) {
    const std::int64_t now = y.size(-d), want = shape[-d];
    if (now != want && now > 1 && want > 1) y = narrow(y, -d, 0, now > want ? want : 1);
  }
  return y;
}

Tensor with_rank(const Tensor& x, int least) {
  Tensor y = x;
  while (y.rank() < least) y = unsqueeze(y, 0);
  return y;
}

Tensor of_rank(const Tensor& x, int rank) {
  const Tensor y = with_rank(x, rank);
  if (y.rank() == rank) return y;
  std::vector<std::int64_t> shape(y.shape().end() - (rank - 1), y.shape().end());
  shape.insert(shape.begin(), -1);
  return reshape(y, shape);
}

Tensor positive(Args& a, const Tensor& x) {
  switch (a.pick(4)) {
    case 0:
      return square(x) + 0.4f;
    case 1:
      return abs(x) + 0.4f;
    case 2:
      return exp(tanh(x));
    default:
      return softplus(x) + 0.3f;
  }
}

}  // namespace tensorgrad::fuzz
