// Shared code of the families of primitives: the form of their tables, and loops over elements. An
// evaluation computes its result's type from its operands; interpret() compares it with the node's.
// Violated rules of a graph are InternalErrors; bad ids are BrokenRules, completed by interpret().
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <string_view>

#include "ir/graph.h"
#include "ir/primitive.h"  // Primitive::name, for messages
#include "reference/interpret.h"
#include "support/fail.h"
#include "support/integers.h"

namespace tensorgrad::reference {

using Inputs = std::span<const Value* const>;

struct Evaluation {
  std::string_view name;
  int arity;  // -1: any number, at least one
  Value (*evaluate)(const ir::Node& node, Inputs in);
};

// One table per file of this folder.
std::span<const Evaluation> elementwise_table();
std::span<const Evaluation> random_table();
std::span<const Evaluation> movement_table();
std::span<const Evaluation> reduce_table();
std::span<const Evaluation> gather_table();
std::span<const Evaluation> composite_table();
std::span<const Evaluation> attention_table();
std::span<const Evaluation> state_space_table();

// Creates a value of zeros.
inline Value make_value(DType dtype, const Shape& shape) {
  return {{dtype, shape}, std::vector<double>(usize(shape.count()))};
}

// Throws if an assumption of the node's evaluation does not hold.
template <class... Args>
void expect(bool holds, const ir::Node& node, fmt::format_string<Args...> rule, Args&&... args) {
  if (!holds)
    internal_error("reference: {}: {}", node.op->name,
                   fmt::format(rule, std::forward<Args>(args)...));
}

inline void expect_dtype(const ir::Node& node, const Value& x, DType dtype) {
  expect(x.type.dtype == dtype, node, "an operand is {}, not {}", name(x.type.dtype), name(dtype));
}

inline void expect_number(const ir::Node& node, const Value& x) {
  expect(x.type.dtype != DType::boolean, node, "an operand is bool, not f32 or i32");
}

inline void expect_same_types(const ir::Node& node, const Value& a, const Value& b) {
  expect(a.type == b.type, node, "operands differ: {}{} and {}{}", name(a.type.dtype),
         a.type.shape.text(), name(b.type.dtype), b.type.shape.text());
}

inline void expect_same_shapes(const ir::Node& node, const Value& a, const Value& b) {
  expect(a.type.shape == b.type.shape, node, "shapes differ: {} and {}", a.type.shape.text(),
         b.type.shape.text());
}

// ---- arithmetic. i32 is computed in 64 bits, where no single operation overflows, and wrapped.

inline double wrap(std::int64_t x) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(x));
}

// Computes f(x...) in the arithmetic of the dtype. f takes doubles and 64-bit integers.
template <class F, class... X>
double apply(DType dtype, F f, X... x) {
  if (dtype == DType::i32) return wrap(f(static_cast<std::int64_t>(x)...));
  return f(x...);
}

inline double add(DType dtype, double a, double b) {
  return apply(
      dtype, [](auto x, auto y) { return x + y; }, a, b);
}

inline bool is_nan(double x) { return std::isnan(x); }
inline bool is_nan(std::int64_t) { return false; }

// NaN if either operand is NaN.
template <class T>
T larger(T a, T b) {
  if (is_nan(a)) return a;
  if (is_nan(b)) return b;
  return a > b ? a : b;
}

template <class T>
T smaller(T a, T b) {
  if (is_nan(a)) return a;
  if (is_nan(b)) return b;
  return a < b ? a : b;
}

// Truncates to i32. NaN becomes 0; values out of range become the nearest i32.
double to_i32(double x);

// Converts an attribute of the graph to the dtype. f32 is rounded to float.
double number(double value, DType dtype);

// Converts the id to an index into an axis of `size`.
inline std::int64_t index_in(std::int64_t size, double id) {
  if (id < 0 || id >= static_cast<double>(size))
    break_rule("", "id {} is outside an axis of size {}", id, size);
  return static_cast<std::int64_t>(id);
}

// ---- loops over elements

// A shape as [outer, size, inner] around one axis.
struct Around {
  std::int64_t outer = 1, size = 1, inner = 1;
};

inline Around around(const ir::Node& node, const Shape& shape, int axis) {
  expect(axis >= 0 && axis < shape.rank(), node, "no axis {} in {}", axis, shape.text());
  Around a;
  for (int d = 0; d < axis; ++d) a.outer *= shape[d];
  a.size = shape[axis];
  for (int d = axis + 1; d < shape.rank(); ++d) a.inner *= shape[d];
  return a;
}

// One integer per axis.
using PerAxis = std::array<std::int64_t, kMaxRank>;

// Row-major strides of the shape.
inline PerAxis strides(const Shape& shape) {
  PerAxis result{};
  std::int64_t stride = 1;
  for (int d = shape.rank() - 1; d >= 0; --d) {
    result[usize(d)] = stride;
    stride *= shape[d];
  }
  return result;
}

// Calls f(i, place) for each position of the shape in row-major order: i is its row-major index,
// place is sum(position[d] * step[d]).
template <class F>
void walk(const Shape& shape, const PerAxis& step, F f) {
  PerAxis size{}, position{};
  std::copy(shape.begin(), shape.end(), size.begin());
  const std::int64_t count = shape.count();
  std::int64_t place = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    f(i, place);
    for (int d = shape.rank() - 1; d >= 0; --d) {
      const auto axis = usize(d);
      place += step[axis];
      if (++position[axis] < size[axis]) break;
      place -= step[axis] * position[axis];
      position[axis] = 0;
    }
  }
}

}  // namespace tensorgrad::reference
