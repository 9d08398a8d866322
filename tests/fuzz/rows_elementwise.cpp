// Elementwise ops, comparison and logic. Arguments stay where the op is defined and
// well-conditioned.
#include "tests/fuzz/rows.h"

namespace tensorgrad::fuzz {
namespace {

template <Tensor (*op)(Operand)>
Tensor unary(Args& a) {
  return op(a[0]);
}

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

// With a scalar on either side, of the tensor's type.
template <Tensor (*op)(Operand, Operand)>
Tensor with_number(Args& a) {
  const float number = a.number();
  const Operand n = a[0].dtype() == i32 ? Operand(static_cast<int>(number)) : Operand(number);
  return a.flip() ? op(n, a[0]) : op(a[0], n);
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
      {"add", "nn", binary<add>, 8},
      {"add", "n", with_number<add>, 4},
      {"sub", "nn", binary<sub>, 4},
      {"sub", "n", with_number<sub>},
      {"mul", "nn", binary<mul>, 8},
      {"mul", "n", with_number<mul>, 4},
      {"div", "ff", divided, 4},
      {"maximum", "nn", binary<maximum>},
      {"maximum", "n", with_number<maximum>, 1},
      {"minimum", "nn", binary<minimum>},
      {"pow", "ff", powered},
      {"neg", "n", unary<neg>},
      {"abs", "n", unary<abs>},
      {"sign", "n", unary<sign>, 1},
      {"square", "n", unary<square>},
      {"sqrt", "f", of_positive<sqrt>},
      {"rsqrt", "f", of_positive<rsqrt>},
      {"exp", "f", of_bounded<exp>},
      {"expm1", "f", of_bounded<expm1>, 1},
      {"log", "f", of_positive<log>},
      {"log1p", "f", of_positive<log1p>, 1},
      {"sin", "f", unary<sin>},
      {"cos", "f", unary<cos>},
      {"tanh", "f", unary<tanh>, 4},
      {"sigmoid", "f", unary<sigmoid>},
      {"erf", "f", unary<erf>, 1},
      {"relu", "f", unary<relu>, 3},
      {"leaky_relu", "f", [](Args& a) { return leaky_relu(a[0], 0.1f); }, 1},
      {"gelu", "f", unary<gelu>},
      {"gelu_tanh", "f", unary<gelu_tanh>, 1},
      {"silu", "f", unary<silu>},
      {"softplus", "f", unary<softplus>, 1},
      {"clamp", "f", clamped, 1},
      {"cast", "a", converted, 3},
      {"is_finite", "f", unary<is_finite>, 1},
      {"less", "nn", binary<less>},
      {"less_equal", "nn", binary<less_equal>, 1},
      {"greater", "nn", binary<greater>},
      {"greater", "n", with_number<greater>},
      {"greater_equal", "nn", binary<greater_equal>, 1},
      {"equal", "ii", binary<equal>, 1},
      {"not_equal", "ii", binary<not_equal>, 1},
      {"logical_and", "bb", binary<logical_and>, 1},
      {"logical_or", "bb", binary<logical_or>, 1},
      {"logical_not", "b", unary<logical_not>, 1},
      {"where", "bff", chosen, 4},
      {"where", "bnn", chosen},
      {"stop_gradient", "f", unary<stop_gradient>, 1},
  };
  return rows;
}

}  // namespace tensorgrad::fuzz
