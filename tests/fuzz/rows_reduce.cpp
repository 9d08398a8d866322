// Reductions, scans, matmuls, softmax and norms.
#include <utility>

#include "tests/fuzz/rows.h"

namespace tensorgrad::fuzz {
namespace {

// Over axes with at least two elements that are not all equal, because otherwise the derivative of
// a standard deviation is not finite.
template <Tensor (*op)(Operand, Axes, bool, int)>
Tensor spread(Args& a) {
  const Tensor wide = a[0].count() > 1 ? a[0] : stack({a[0], a[0]}, 0);
  const Tensor x = wide + remade(sin(1.7f * cast(arange(wide.count()), f32)), wide.shape());
  Axes axes = a.axes(x);
  std::int64_t count = 1;
  for (const int d : axes.values()) count *= x.size(d);
  if (count < 2) axes = Axes();
  const bool keepdims = a.flip();
  return op(x, axes, keepdims, a.flip() ? 0 : 1);
}

Tensor multiplied(Args& a) {
  const Tensor x = with_rank(a[0], 1);
  Tensor y = with_rank(a[1], 1);
  if (y.rank() > 1 && a.flip()) y = swap_axes(y, -1, -2);
  y = resized(y, y.rank() == 1 ? 0 : -2, x.size(-1));
  for (int d = 3; d <= std::min(x.rank(), y.rank()); ++d)
    if (x.size(-d) != 1 && y.size(-d) != 1) y = resized(y, -d, x.size(-d));
  return matmul(x, y);
}

// x and its transpose, or three matmuls with one left operand.
Tensor multiplied_alike(Args& a) {
  const Tensor x = with_rank(a[0], 2);
  if (a.flip()) return matmul(x, swap_axes(x, -1, -2));
  const std::int64_t K = x.size(-1);
  const Tensor v = remade(a[1], {K, 3}), w = remade(a[1] * 0.5f, {K, 3});
  return matmul(x, v) * sigmoid(matmul(x, w));
}

Tensor attended(Args& a) {
  const Tensor q = of_rank(a[0], 4);  // [B, H, T, D]
  const bool causal = !a.flip();
  const std::int64_t G = a.flip() ? 1 : q.size(1), S = causal ? q.size(2) : 1 + a.pick(4);
  const Shape shape{q.size(0), G, S, q.size(3)};
  return attention(q, remade(a[1], shape), remade(a[2], shape), {.causal = causal});
}

Tensor causal(Args& a) {
  const Tensor x = with_rank(a[0], 2);
  return softmax_causal(resized(x, -1, x.size(-2)));
}

}  // namespace

std::span<const Row> reduce_rows() {
  static const Row rows[] = {
      {"prod", "f",
       [](Args& a) {
         const Axes axes = a.axes(a[0]);
         const float share =
             3.0f / static_cast<float>(a[0].count() + 2);  // no overflow, no underflow
         return prod(tanh(a[0]) * share + 1.0f, axes, a.flip());
       },
       1},
      {"var", "f", spread<var>},
      {"stddev", "f", spread<stddev>, 1},
      {"matmul", "ff", multiplied, 10},
      {"matmul", "ff", multiplied_alike, 3},
      {"softmax_causal", "f", causal, 1},
      {"where_causal", "f",
       [](Args& a) {
         const Tensor x = with_rank(a[0], 2);
         return where_causal(resized(x, -1, x.size(-2) + a.pick(3)), a.flip() ? -1.5f : 0.0f);
       },
       1},
      {"attention", "fff", attended, 2},
      {"layer_norm", "fff",
       [](Args& a) {
         const Tensor x = with_rank(a[0], 1);
         return layer_norm(x, remade(a[1], {x.size(-1)}), remade(a[2], {x.size(-1)}), 1e-2f);
       },
       3},
      {"rms_norm", "ff",
       [](Args& a) {
         const Tensor x = with_rank(a[0], 1);
         return rms_norm(x, remade(a[1], {x.size(-1)}), 1e-2f);
       },
       2},
  };
  return rows;
}

}  // namespace tensorgrad::fuzz
