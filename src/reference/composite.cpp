// Softmax, normalisation and causal convolution, by definition.
#include <algorithm>
#include <numeric>

#include "reference/evaluate.h"
#include "support/integers.h"

namespace tensorgrad::reference {

namespace {

using ir::Node;

// Calls f(first, stride, n) for each line along the axis.
template <class F>
Value lines(const Node& node, Inputs in, int axis, F f) {
  expect_dtype(node, *in[0], DType::f32);
  const Shape& shape = in[0]->type.shape;
  expect(axis >= 0 && axis < shape.rank(), node, "axis {} does not exist", axis);
  Value out = *in[0];
  std::int64_t stride = 1;
  for (int d = axis + 1; d < shape.rank(); ++d) stride *= shape[d];
  const std::int64_t n = shape[axis], outer = shape.count() > 0 ? shape.count() / (n * stride) : 0;
  for (std::int64_t i = 0; i < outer; ++i)
    for (std::int64_t j = 0; j < stride; ++j) f(out.data.data() + i * n * stride + j, stride, n);
  return out;
}

Value softmax(const Node& node, Inputs in) {
  return lines(node, in, node.as<ir::AxisAttrs>().axis,
               [](double* x, std::int64_t stride, std::int64_t n) {
                 double top = x[0], sum = 0;
                 for (std::int64_t i = 1; i < n; ++i) top = std::max(top, x[i * stride]);
                 for (std::int64_t i = 0; i < n; ++i)
                   sum += x[i * stride] = std::exp(x[i * stride] - top);
                 for (std::int64_t i = 0; i < n; ++i) x[i * stride] /= sum;
               });
}

Value log_softmax(const Node& node, Inputs in) {
  return lines(node, in, node.as<ir::AxisAttrs>().axis,
               [](double* x, std::int64_t stride, std::int64_t n) {
                 double top = x[0], sum = 0;
                 for (std::int64_t i = 1; i < n; ++i) top = std::max(top, x[i * stride]);
                 for (std::int64_t i = 0; i < n; ++i) sum += std::exp(x[i * stride] - top);
                 for (std::int64_t i = 0; i < n; ++i) x[i * stride] -= top + std::log(sum);
               });
}

Value normalize_about(const Node& node, Inputs in, bool center) {
  const double eps = node.as<ir::NormAttrs>().eps;
  return lines(node, in, in[0]->type.shape.rank() - 1,
               [=](double* x, std::int64_t, std::int64_t n) {
                 double mean = 0, square = 0;
                 for (std::int64_t i = 0; center && i < n; ++i)
                   mean += x[i] / static_cast<double>(n);
                 for (std::int64_t i = 0; i < n; ++i)
                   square += (x[i] - mean) * (x[i] - mean) / static_cast<double>(n);
                 for (std::int64_t i = 0; i < n; ++i)
                   x[i] = (x[i] - mean) / std::sqrt(square + eps);
               });
}

Value normalize(const Node& node, Inputs in) { return normalize_about(node, in, true); }
Value rms_normalize(const Node& node, Inputs in) { return normalize_about(node, in, false); }

// x [B, L, C], w [C, K], bias [C]; the last tap is the current sample.
Value conv1d_causal_depthwise(const Node& node, Inputs in) {
  for (const Value* operand : in) expect_dtype(node, *operand, DType::f32);
  const Shape &x = in[0]->type.shape, &w = in[1]->type.shape;
  const bool fits =
      x.rank() == 3 && w.rank() == 2 && w[0] == x[2] && in[2]->type.shape == Shape{x[2]};
  expect(fits, node, "operands do not fit");
  const std::int64_t B = x[0], L = x[1], C = x[2], K = w[1];
  Value out = make_value(DType::f32, x);
  for (std::int64_t b = 0; b < B; ++b)
    for (std::int64_t l = 0; l < L; ++l)
      for (std::int64_t c = 0; c < C; ++c) {
        double y = in[2]->data[usize(c)];
        for (std::int64_t k = 0; k < K; ++k)
          if (const std::int64_t from = l - (K - 1) + k; from >= 0)
            y += in[1]->data[usize(c * K + k)] * in[0]->data[usize((b * L + from) * C + c)];
        out.data[usize((b * L + l) * C + c)] = y;
      }
  return out;
}

Value window_max(const Node& node, Inputs in) {
  expect_dtype(node, *in[0], DType::f32);
  const Shape& shape = in[0]->type.shape;
  expect(shape.rank() > 1 && shape[shape.rank() - 2] * shape.back() > 0, node, "windows are empty");
  Shape rest = shape;
  rest.erase(-1);
  rest.erase(-1);
  Value out = make_value(DType::f32, rest);
  const std::int64_t n = shape[shape.rank() - 2] * shape.back();
  for (std::size_t i = 0; i < out.data.size(); ++i) {
    const double* const first = in[0]->data.data() + i * usize(n);
    out.data[i] = std::accumulate(first + 1, first + n, *first, larger<double>);
  }
  return out;
}

constexpr Evaluation kTable[] = {{"softmax", 1, softmax},
                                 {"log_softmax", 1, log_softmax},
                                 {"normalize", 1, normalize},
                                 {"rms_normalize", 1, rms_normalize},
                                 {"conv1d_causal_depthwise", 3, conv1d_causal_depthwise},
                                 {"window_max", 1, window_max}};

}  // namespace

std::span<const Evaluation> composite_table() { return kTable; }

}  // namespace tensorgrad::reference
