// Constants and elementwise primitives: arithmetic, comparison, logic, casts. The shapes of all
// operands are equal; nothing is broadcast here.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "reference/evaluate.h"

namespace tensorgrad::reference {

double to_i32(double x) {
  if (std::isnan(x)) return 0;
  constexpr double kLowest = std::numeric_limits<std::int32_t>::min();
  constexpr double kHighest = std::numeric_limits<std::int32_t>::max();
  return std::clamp(std::trunc(x), kLowest, kHighest);
}

double number(double value, DType dtype) {
  if (dtype == DType::i32) return to_i32(value);
  if (dtype == DType::boolean) return value != 0;
  return static_cast<float>(value);
}

namespace {

using ir::Node;

Value constant(const Node& node, Inputs) {
  const auto& attrs = node.as<ir::ConstantAttrs>();
  Value out = make_value(attrs.dtype, {});
  out.data[0] = number(attrs.value, attrs.dtype);
  return out;
}

Value iota(const Node& node, Inputs) {
  Value out = make_value(DType::i32, {node.as<ir::IotaAttrs>().size});
  for (std::size_t i = 0; i < out.data.size(); ++i) out.data[i] = static_cast<double>(i);
  return out;
}

// ---- arithmetic: one scalar function per op; f32 and i32, or f32 only

template <auto F>
Value unary(const Node& node, Inputs in) {
  const Value& x = *in[0];
  expect_number(node, x);
  Value out = make_value(x.type.dtype, x.type.shape);
  for (std::size_t i = 0; i < out.data.size(); ++i) out.data[i] = apply(x.type.dtype, F, x.data[i]);
  return out;
}

template <auto F>
Value binary(const Node& node, Inputs in) {
  const Value &a = *in[0], &b = *in[1];
  expect_number(node, a);
  expect_same_types(node, a, b);
  Value out = make_value(a.type.dtype, a.type.shape);
  for (std::size_t i = 0; i < out.data.size(); ++i)
    out.data[i] = apply(a.type.dtype, F, a.data[i], b.data[i]);
  return out;
}

template <auto F>
Value unary_f32(const Node& node, Inputs in) {
  expect_dtype(node, *in[0], DType::f32);
  return unary<F>(node, in);
}

template <auto F>
Value binary_f32(const Node& node, Inputs in) {
  expect_dtype(node, *in[0], DType::f32);
  return binary<F>(node, in);
}

// Uses the form whose exp cannot overflow.
double sigmoid(double x) {
  if (x >= 0) return 1 / (1 + std::exp(-x));
  return std::exp(x) / (1 + std::exp(x));
}

// The sign of NaN is NaN, and the sign of zero is zero.
template <class T>
T sign(T x) {
  if (x > 0) return 1;
  if (x < 0) return -1;
  return x;
}

// ---- comparison and logic

template <auto F>
Value compare(const Node& node, Inputs in) {
  const Value &a = *in[0], &b = *in[1];
  expect_same_types(node, a, b);
  Value out = make_value(DType::boolean, a.type.shape);
  for (std::size_t i = 0; i < out.data.size(); ++i) out.data[i] = F(a.data[i], b.data[i]);
  return out;
}

template <auto F>
Value logical(const Node& node, Inputs in) {
  expect_dtype(node, *in[0], DType::boolean);
  return compare<F>(node, in);
}

Value logical_not(const Node& node, Inputs in) {
  const Value& x = *in[0];
  expect_dtype(node, x, DType::boolean);
  Value out = make_value(DType::boolean, x.type.shape);
  for (std::size_t i = 0; i < out.data.size(); ++i) out.data[i] = x.data[i] == 0;
  return out;
}

Value where(const Node& node, Inputs in) {
  const Value &condition = *in[0], &a = *in[1], &b = *in[2];
  expect_dtype(node, condition, DType::boolean);
  expect_same_shapes(node, condition, a);
  expect_same_types(node, a, b);
  Value out = make_value(a.type.dtype, a.type.shape);
  for (std::size_t i = 0; i < out.data.size(); ++i)
    out.data[i] = condition.data[i] != 0 ? a.data[i] : b.data[i];
  return out;
}

Value is_finite(const Node& node, Inputs in) {
  const Value& x = *in[0];
  expect_dtype(node, x, DType::f32);
  Value out = make_value(DType::boolean, x.type.shape);
  for (std::size_t i = 0; i < out.data.size(); ++i) out.data[i] = std::isfinite(x.data[i]);
  return out;
}

// ---- casts and checks

Value cast(const Node& node, Inputs in) {
  const Value& x = *in[0];
  const DType to = node.as<ir::CastAttrs>().to;
  Value out = make_value(to, x.type.shape);
  for (std::size_t i = 0; i < out.data.size(); ++i) {
    if (to == DType::i32) out.data[i] = to_i32(x.data[i]);
    if (to == DType::boolean) out.data[i] = x.data[i] != 0;  // NaN is true
    if (to == DType::f32) out.data[i] = x.data[i];
  }
  return out;
}

Value check_index(const Node& node, Inputs in) {
  const Value& ids = *in[0];
  expect_dtype(node, ids, DType::i32);
  const std::int64_t size = node.as<ir::CheckAttrs>().size;
  for (const double id : ids.data) index_in(size, id);
  return ids;
}

Value stop_gradient(const Node&, Inputs in) { return *in[0]; }

constexpr Evaluation kTable[] = {
    {"constant", 0, constant},
    {"iota", 0, iota},

    {"add", 2, binary<[](auto a, auto b) { return a + b; }>},
    {"sub", 2, binary<[](auto a, auto b) { return a - b; }>},
    {"mul", 2, binary<[](auto a, auto b) { return a * b; }>},
    {"minimum", 2, binary<[](auto a, auto b) { return smaller(a, b); }>},
    {"maximum", 2, binary<[](auto a, auto b) { return larger(a, b); }>},
    {"neg", 1, unary<[](auto x) { return -x; }>},
    {"abs", 1, unary<[](auto x) { return std::abs(x); }>},
    {"sign", 1, unary<[](auto x) { return sign(x); }>},

    {"div", 2, binary_f32<[](double a, double b) { return a / b; }>},
    {"pow", 2, binary_f32<[](double a, double b) { return std::pow(a, b); }>},
    {"sqrt", 1, unary_f32<[](double x) { return std::sqrt(x); }>},
    {"rsqrt", 1, unary_f32<[](double x) { return 1 / std::sqrt(x); }>},
    {"exp", 1, unary_f32<[](double x) { return std::exp(x); }>},
    {"expm1", 1, unary_f32<[](double x) { return std::expm1(x); }>},
    {"log", 1, unary_f32<[](double x) { return std::log(x); }>},
    {"log1p", 1, unary_f32<[](double x) { return std::log1p(x); }>},
    {"sin", 1, unary_f32<[](double x) { return std::sin(x); }>},
    {"cos", 1, unary_f32<[](double x) { return std::cos(x); }>},
    {"tanh", 1, unary_f32<[](double x) { return std::tanh(x); }>},
    {"sigmoid", 1, unary_f32<[](double x) { return sigmoid(x); }>},
    {"erf", 1, unary_f32<[](double x) { return std::erf(x); }>},
    {"normal_cdf", 1, unary_f32<[](double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }>},
    {"gelu", 1, unary_f32<[](double x) { return x * 0.5 * std::erfc(-x / std::sqrt(2.0)); }>},
    {"gelu_tanh", 1, unary_f32<[](double x) {
       return x * sigmoid(2 * std::sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x));
     }>},
    {"silu", 1, unary_f32<[](double x) { return x * sigmoid(x); }>},
    {"relu", 1, unary_f32<[](double x) { return x <= 0 ? 0 : x; }>},

    {"less", 2, compare<[](double a, double b) { return a < b; }>},
    {"less_equal", 2, compare<[](double a, double b) { return a <= b; }>},
    {"equal", 2, compare<[](double a, double b) { return a == b; }>},
    {"logical_and", 2, logical<[](double a, double b) { return a != 0 && b != 0; }>},
    {"logical_or", 2, logical<[](double a, double b) { return a != 0 || b != 0; }>},
    {"logical_not", 1, logical_not},
    {"where", 3, where},
    {"is_finite", 1, is_finite},

    {"cast", 1, cast},
    {"check_index", 1, check_index},
    {"drawn_truth", 1, check_index},
    {"drawn_class", 1, check_index},
    {"stop_gradient", 1, stop_gradient},
    {"copy", 1, stop_gradient},
};

}  // namespace

std::span<const Evaluation> elementwise_table() { return kTable; }

}  // namespace tensorgrad::reference
