// Primitives that combine many elements into one: reductions over axes, arg_max and arg_min,
// cumulative sums, matmuls. Elements are combined in row-major order.
#include <limits>

#include "reference/evaluate.h"
#include "support/integers.h"

namespace tensorgrad::reference {
namespace {

using ir::Node;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double lowest(DType dtype) {
  return dtype == DType::i32 ? std::numeric_limits<std::int32_t>::min() : -kInfinity;
}

double highest(DType dtype) {
  return dtype == DType::i32 ? std::numeric_limits<std::int32_t>::max() : kInfinity;
}

// Combines the elements along the axes with f, starting from the value of an empty set.
template <class F>
Value reduce(const Node& node, const Value& x, double start, F f) {
  expect_number(node, x);
  const DType dtype = x.type.dtype;
  const Shape& from = x.type.shape;
  std::array<bool, kMaxRank> reduced{};
  for (const int axis : node.as<ir::AxesAttrs>().axes) {
    expect(axis >= 0 && axis < from.rank(), node, "no axis {} in {}", axis, from.text());
    reduced[usize(axis)] = true;
  }
  Shape shape;
  for (int d = 0; d < from.rank(); ++d)
    if (!reduced[usize(d)]) shape.push_back(from[d]);

  // Strides of the result for a step along each axis of x: 0 along the reduced axes.
  const PerAxis stride = strides(shape);
  PerAxis step{};
  std::size_t kept = 0;
  for (std::size_t d = 0; d < usize(from.rank()); ++d)
    if (!reduced[d]) step[d] = stride[kept++];

  Value out = make_value(dtype, shape);
  for (double& element : out.data) element = start;
  walk(from, step, [&](std::int64_t i, std::int64_t place) {
    out.data[place] = apply(dtype, f, out.data[place], x.data[i]);
  });
  return out;
}

Value reduce_sum(const Node& node, Inputs in) {
  return reduce(node, *in[0], 0, [](auto a, auto b) { return a + b; });
}

Value reduce_prod(const Node& node, Inputs in) {
  return reduce(node, *in[0], 1, [](auto a, auto b) { return a * b; });
}

Value reduce_max(const Node& node, Inputs in) {
  return reduce(node, *in[0], lowest(in[0]->type.dtype),
                [](auto a, auto b) { return larger(a, b); });
}

Value reduce_min(const Node& node, Inputs in) {
  return reduce(node, *in[0], highest(in[0]->type.dtype),
                [](auto a, auto b) { return smaller(a, b); });
}

// Position of the first best element; of the first NaN, if there is one.
template <class Beats>
Value arg_reduce(const Node& node, const Value& x, Beats beats) {
  expect_number(node, x);
  const int axis = node.as<ir::AxisAttrs>().axis;
  const auto [outer, size, inner] = around(node, x.type.shape, axis);
  expect(size > 0, node, "axis {} of {} is empty", axis, x.type.shape.text());
  Shape shape = x.type.shape;
  shape.erase(axis);
  Value out = make_value(DType::i32, shape);
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t r = 0; r < inner; ++r) {
      std::int64_t best = 0;
      for (std::int64_t i = 1; i < size; ++i) {
        const double candidate = x.data[(o * size + i) * inner + r];
        const double champion = x.data[(o * size + best) * inner + r];
        if (is_nan(champion)) break;
        if (is_nan(candidate) || beats(candidate, champion)) best = i;
      }
      out.data[o * inner + r] = static_cast<double>(best);
    }
  return out;
}

Value argmax(const Node& node, Inputs in) {
  return arg_reduce(node, *in[0], [](double a, double b) { return a > b; });
}

Value argmin(const Node& node, Inputs in) {
  return arg_reduce(node, *in[0], [](double a, double b) { return a < b; });
}

// Inclusive cumulative sum, from the end if reverse.
Value cumsum(const Node& node, Inputs in) {
  const Value& x = *in[0];
  const auto& attrs = node.as<ir::CumsumAttrs>();
  const auto [outer, size, inner] = around(node, x.type.shape, attrs.axis);
  expect_number(node, x);
  Value out = make_value(x.type.dtype, x.type.shape);
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t r = 0; r < inner; ++r) {
      double sum = 0;
      for (std::int64_t i = 0; i < size; ++i) {
        const std::int64_t at = attrs.reverse ? size - 1 - i : i;
        sum = add(x.type.dtype, sum, x.data[(o * size + at) * inner + r]);
        out.data[(o * size + at) * inner + r] = sum;
      }
    }
  return out;
}

// [batch..., M, K] x [batch..., K, N] -> [batch..., M, N]
Value matmul(const Node& node, Inputs in) {
  const Value &a = *in[0], &b = *in[1];
  expect_dtype(node, a, DType::f32);
  expect_dtype(node, b, DType::f32);
  const Shape &left = a.type.shape, &right = b.type.shape;
  const int rank = left.rank();
  expect(rank >= 2 && right.rank() == rank && left[-1] == right[-2], node, "{} by {}", left.text(),
         right.text());
  std::int64_t batch = 1;
  for (int d = 0; d < rank - 2; ++d) {
    expect(left[d] == right[d], node, "{} by {}", left.text(), right.text());
    batch *= left[d];
  }
  const std::int64_t M = left[-2], K = left[-1], N = right[-1];
  Shape shape = left;
  shape[-1] = N;
  Value out = make_value(DType::f32, shape);
  for (std::int64_t n = 0; n < batch; ++n)
    for (std::int64_t i = 0; i < M; ++i)
      for (std::int64_t k = 0; k < K; ++k) {  // k before j, to read the rows of b in order
        const double factor = a.data[(n * M + i) * K + k];
        for (std::int64_t j = 0; j < N; ++j)
          out.data[(n * M + i) * N + j] += factor * b.data[(n * K + k) * N + j];
      }
  return out;
}

constexpr Evaluation kTable[] = {
    {"reduce_sum", 1, reduce_sum},   {"reduce_max", 1, reduce_max}, {"reduce_min", 1, reduce_min},
    {"reduce_prod", 1, reduce_prod}, {"argmax", 1, argmax},         {"argmin", 1, argmin},
    {"cumsum", 1, cumsum},           {"matmul", 2, matmul},
};

}  // namespace

std::span<const Evaluation> reduce_table() { return kTable; }

}  // namespace tensorgrad::reference
