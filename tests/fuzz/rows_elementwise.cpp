// Elementwise ops, comparison and logic. Arguments stay where the op is defined and
// well-conditioned.
#include "tests/fuzz/rows.h"

namespace tensorgrad::fuzz {
namespace {

template <Tensor (*op)(Operand)>
Tensor of_bounded(Args& a) {
  return op(a.flip() ? tanh(a[0]) * 2.0f : -abs(a[0]));
}

template <Tensor (*op)(Operand)>
Tensor of_positive(Args& a) {
  return op(positive(a, a[0]));
}

template <Tensor (*op)(Operand, Operand)>
Tensor binary(Args& a) {
  const Tensor y = fitted(a[1], a[0].shape());
  return a.flip() ? op(y, a[0]) : op(a[0], y);
}

Tensor divided(Args& a) {
  switch (a.pick(3)) {
    case 0:
      return div(a[0], positive(a, fitted(a[1], a[0].shape())));
    case 1:
      return div(a[0], a.flip() ? 1.0f : -4.0f);
    default: {
      const float number = a.number();
      return div(number, positive(a, a[0]));
    }
  }
}

Tensor powered(Args& a) {
  const Tensor base = positive(a, a[0]);
  switch (a.pick(4)) {
    case 0:
      return pow(a[0], 2.0f);
    case 1:
      return pow(base, a.number());
    case 2:
      return pow(2.0f, tanh(a[0]));
    default:
      return pow(base, tanh(fitted(a[1], a[0].shape())));
  }
}

// Whether a float is exactly zero is not reliable; whether it is positive is.
Tensor converted(Args& a) {
  const DType types[] = {f32, i32, boolean};
  const DType to = types[a.pick(3)];
  if (a[0].dtype() != f32) return cast(a[0], to);
  return cast(to == boolean ? relu(a[0]) : a[0] * 3.0f, to);
}

Tensor clamped(Args& a) {
  const float low = a.flip() ? -0.7f : -std::numeric_limits<float>::infinity();
  return clamp(a[0], low, 0.9f);
}

Tensor chosen(Args& a) {
  const Tensor x = a[1], y = fitted(a[2], x.shape());
  const Tensor condition = fitted(a[0], x.shape());
  switch (a.pick(3)) {
    case 0:
      return where(condition, x, y);
    case 1:
      return where(condition, x, x.dtype() == i32 ? Operand(0) : Operand(0.0f));
    default:
      return where(condition, y, x);
  }
}

}  // namespace

std::span<const Row> elementwise_rows() {
  static const Row rows[] = {
      {"div", "ff", divided, 4},
      {"pow", "ff", powered},
      {"sqrt", "f", of_positive<sqrt>},
      {"rsqrt", "f", of_positive<rsqrt>},
      {"exp", "f", of_bounded<exp>},
      {"expm1", "f", of_bounded<expm1>, 1},
      {"log", "f", of_positive<log>},
      {"log1p", "f", of_positive<log1p>, 1},
      {"clamp", "f", clamped, 1},
      {"cast", "a", converted, 3},
      {"equal", "ii", binary<equal>, 1},
      {"not_equal", "ii", binary<not_equal>, 1},
      {"logical_and", "bb", binary<logical_and>, 1},
      {"logical_or", "bb", binary<logical_or>, 1},
      {"logical_not", "b", [](Args& a) { return logical_not(a[0]); }, 1},
      {"where", "bff", chosen, 4},
      {"where", "bnn", chosen},
  };
  return rows;
}

}  // namespace tensorgrad::fuzz
