// Matmul. Both operands of the primitive have the same batch axes. Views fold a batch axis that
// only one operand has into the rows or columns of that operand. So the gradient of a shared weight
// is one matmul, and no operand is repeated in memory.
#include "ops/builder.h"
#include "ops/registry.h"
#include "ops/table.h"
#include "support/integers.h"
#include "tensorgrad/ops.h"

namespace tensorgrad::ops {

namespace {

using ir::Attrs;
using ir::Core;
using ir::GradientArgs;
using ir::Primitive;
using ir::Type;

constexpr Primitive kMatmul = {
    .name = "matmul",
    .core = Core::matmul,
    .arity = 2,
    .type =
        [](std::span<const Type> in, const Attrs&) {
          const Shape &a = in[0].shape, &b = in[1].shape;
          bool ok = in[0].dtype == DType::f32 && in[1].dtype == DType::f32 && a.rank() >= 2 &&
                    a.rank() == b.rank();
          for (int d = 0; ok && d < a.rank() - 2; ++d) ok = a[d] == b[d];
          if (!ok || a[-1] != b[-2])
            break_rule("", "needs [batch..., M, K] and [batch..., K, N]: a is {}, b is {}",
                       in[0].text(), in[1].text());
          Type out = in[0];
          out.shape[-1] = b[-1];
          return out;
        },
    // da = g b^T, db = a^T g
    .gradient = [](const GradientArgs& d) -> std::vector<Tensor> {
      return {matmul(d.g, swap_axes(d.in[1], -1, -2)), matmul(swap_axes(d.in[0], -1, -2), d.g)};
    }};

constexpr const Primitive* kFamily[] = {&kMatmul};

std::vector<std::int64_t> sizes_of(const Shape& shape, const std::vector<int>& axes) {
  std::vector<std::int64_t> sizes;
  for (const int axis : axes) sizes.push_back(shape[axis]);
  return sizes;
}

std::int64_t product(const std::vector<std::int64_t>& sizes) {
  std::int64_t n = 1;
  for (const std::int64_t size : sizes) n *= size;
  return n;
}

Tensor with_rank(const Tensor& t, int rank) {
  Shape shape = t.shape();
  while (shape.rank() < rank) shape.insert(0, 1);
  return reshape(t, shape);
}

}  // namespace

std::span<const Primitive* const> matmul_family() { return kFamily; }

}  // namespace tensorgrad::ops

namespace tensorgrad {

using namespace ops;

Tensor matmul(Operand left, Operand right) {
  Call call("matmul", left.site());
  Tensor a = call.tensor(left), b = call.tensor(right);
  call.require_f32("a", a);
  call.require_f32("b", b);
  if (a.rank() == 0 || b.rank() == 0)
    call.fail("use * for scalars", "needs at least one axis: {}, {}", call.describe("a", a),
              call.describe("b", b));
  const std::int64_t k = a.size(-1), l = b.rank() == 1 ? b.size(0) : b.size(-2);
  if (k != l) {
    std::string hint;
    if (b.rank() >= 2 && b.size(-1) == k)
      hint = "swap_axes(b, -1, -2)?";
    else if (a.rank() >= 2 && a.size(-2) == l)
      hint = "swap_axes(a, -1, -2)?";
    call.fail(hint, "inner sizes differ: {}, {} ({} against {})", call.describe("a", a),
              call.describe("b", b), k, l);
  }
  // A vector is a row on the left and a column on the right; its axis is dropped from the result.
  if (a.rank() == 1) return squeeze(matmul(unsqueeze(a, 0), b), b.rank() == 1 ? 0 : -2);
  if (b.rank() == 1) return squeeze(matmul(a, unsqueeze(b, 1)), -1);

  const int rank = std::max(a.rank(), b.rank());
  const Tensor original_a = a, original_b = b;
  a = with_rank(a, rank), b = with_rank(b, rank);
  const int m = rank - 2, n = rank - 1;
  std::vector<int> both, only_a, only_b;
  for (int d = 0; d < m; ++d) {
    const std::int64_t size_a = a.shape()[d], size_b = b.shape()[d];
    if (size_a == size_b)
      both.push_back(d);
    else if (size_b == 1)
      only_a.push_back(d);
    else if (size_a == 1)
      only_b.push_back(d);
    else
      call.fail("", "batch axes do not broadcast: {}, {} ({} against {})",
                call.describe("a", original_a), call.describe("b", original_b), size_a, size_b);
  }
  if (only_a.empty() && only_b.empty()) return call.emit(kMatmul, {a, b});

  // a: [both..., (only_a..., M), K]; b: [both..., K, (only_b..., N)]
  const auto order = [](std::initializer_list<std::vector<int>> parts) {
    std::vector<int> all;
    for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
    return all;
  };
  const auto batch = sizes_of(a.shape(), both);
  const std::int64_t K = a.size(-1), M = a.size(-2), N = b.size(-1);
  const auto sizes_a = sizes_of(a.shape(), only_a), sizes_b = sizes_of(b.shape(), only_b);
  auto shape_a = batch, shape_b = batch, shape = batch;
  shape_a.insert(shape_a.end(), {product(sizes_a) * M, K});
  shape_b.insert(shape_b.end(), {K, product(sizes_b) * N});
  const Tensor folded_a = reshape(permute(a, order({both, only_a, only_b, {m, n}})), shape_a);
  const Tensor folded_b = reshape(permute(b, order({both, only_a, {m}, only_b, {n}})), shape_b);
  const Tensor out = call.emit(kMatmul, {folded_a, folded_b});

  // From [both..., only_a..., M, only_b..., N] back to the order of the axes.
  shape.insert(shape.end(), sizes_a.begin(), sizes_a.end());
  shape.push_back(M);
  shape.insert(shape.end(), sizes_b.begin(), sizes_b.end());
  shape.push_back(N);
  const std::vector<int> now = order({both, only_a, {m}, only_b, {n}});
  std::vector<int> back(now.size());
  for (std::size_t i = 0; i < now.size(); ++i) back[usize(now[i])] = static_cast<int>(i);
  return permute(reshape(out, shape), back);
}

}  // namespace tensorgrad

namespace tensorgrad::ops {

std::span<const PublicOp> matmul_ops() {
  static constexpr PublicOp all[] = {
      op<matmul>(
          "matmul", {"a", "b"},
          "The matrix product over the last two axes. Leading axes broadcast; vectors work as in "
          "PyTorch."),
  };
  return all;
}

}  // namespace tensorgrad::ops
