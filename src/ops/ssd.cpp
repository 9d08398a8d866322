// State space duality (Mamba-2): the recurrence as matmuls. The sequence is cut into chunks. Inside
// a chunk, every position sees the earlier ones through a masked matmul. A state of N x P carries
// the earlier chunks.
//   y[t] = sum over j <= t of exp(log a[j+1] + ... + log a[t]) (C[t] . B[j]) dl[j] x[j]  + D x[t]
// Sums above the diagonal are set to 0, so that exp stays finite. Subtraction would give positive
// values without bound there.
#include <algorithm>

#include "ops/builder.h"
#include "ops/registry.h"
#include "support/integers.h"
#include "tensorgrad/ops.h"

namespace tensorgrad {

using ops::Call;

namespace {

struct Sizes {
  std::int64_t B, L, H, P, G, N;
  std::int64_t Q;  // positions per chunk
  std::int64_t chunks() const { return ceil_div(L, Q); }
  std::int64_t heads() const { return H / G; }  // heads per group
};

Sizes checked_sizes(const Call& call, const std::vector<Tensor>& in, std::int64_t chunk) {
  const Tensor &x = in[0], &dt = in[1], &A_log = in[2], &B = in[3], &C = in[4], &D = in[5];
  bool fits = x.rank() == 4 && B.rank() == 4;
  for (const Tensor& t : in) fits = fits && t.dtype() == f32;
  if (fits) {
    const std::int64_t b = x.size(0), L = x.size(1), H = x.size(2);
    fits = dt.shape() == Shape{b, L, H} && A_log.shape() == Shape{H} && D.shape() == Shape{H};
    fits = fits && C.shape() == B.shape() && B.size(0) == b && B.size(1) == L;
  }
  if (!fits)
    call.fail("",
              "needs x [B, L, H, P], dt [B, L, H], A_log [H], B, C [B, L, G, N], D [H] of f32: {}, "
              "{}, {}, {}, {}, {}",
              call.describe("x", x), call.describe("dt", dt), call.describe("A_log", A_log),
              call.describe("B", B), call.describe("C", C), call.describe("D", D));
  const std::int64_t H = x.size(2), G = B.size(2);
  if (G == 0 ? H != 0 : H % G != 0)
    call.fail("", "the groups of B and C must divide the heads of x: {}, {}", call.describe("x", x),
              call.describe("B", B));
  if (chunk < 1) call.fail("", "a chunk must have at least one position: {}", chunk);
  const std::int64_t L = x.size(1);
  return {.B = x.size(0),
          .L = L,
          .H = H,
          .P = x.size(3),
          .G = G,
          .N = B.size(3),
          .Q = std::min(chunk, L)};
}

// [B, L, H, ...] -> [B, chunks, G, H/G, Q, ...]; the last chunk is padded with 0.
Tensor in_chunks(const Tensor& t, const Sizes& s) {
  std::vector<std::int64_t> shape{s.B, s.chunks(), s.Q, s.G, t.size(2) / s.G};
  std::vector<int> order{0, 1, 3, 4, 2};
  for (int axis = 3; axis < t.rank(); ++axis) {
    shape.push_back(t.size(axis));
    order.push_back(axis + 2);
  }
  return permute(reshape(pad(t, 1, 0, s.chunks() * s.Q - s.L), shape), order);
}

// Sums of x [..., n] over c + 1 .. r for each row r and column c of [..., n, n]; 0 where c >= r.
// Each sum starts at its own column. A difference of prefix sums would lose digits, in the result
// and in its gradient.
Tensor segment_sums(const Tensor& x) {
  const std::int64_t n = x.size(-1);
  return cumsum(where(unsqueeze(arange(n), 0) < unsqueeze(arange(n), 1), unsqueeze(x, -1), 0.0f),
                -2);
}

// exp where column c <= row r - late, 0 elsewhere.
Tensor masked_exp(const Tensor& sums, int late) {
  const std::int64_t n = sums.size(-1);
  return where(unsqueeze(arange(n), 0) + late <= unsqueeze(arange(n), 1), exp(sums), 0.0f);
}

// The state before each chunk, [B, chunks, G, H/G, N, P]. `added` is what each chunk adds to the
// state, `total` the sum of log a over each chunk.
Tensor carried(const Tensor& added, const Tensor& total, const Sizes& s) {
  const std::int64_t n = s.chunks();
  // When chunk r begins, the addition of chunk c has decayed through chunks c + 1 .. r - 1.
  const Tensor before =
      pad(narrow(permute(total, {0, 2, 3, 1}), -1, 0, n - 1), -1, 1, 0);  // [B, G, H/G, chunks]
  const Tensor moved = pad(narrow(segment_sums(before), -1, 1, n - 1), -1, 0, 1);
  const Tensor weight = masked_exp(moved, 1);  // [B, G, H/G, chunks, chunks]
  const Tensor flat =
      reshape(permute(added, {0, 2, 3, 1, 4, 5}), {s.B, s.G, s.heads(), n, s.N * s.P});
  return permute(reshape(matmul(weight, flat), {s.B, s.G, s.heads(), n, s.N, s.P}),
                 {0, 3, 1, 2, 4, 5});
}

}  // namespace

Tensor ssd(Operand x, Operand dt, Operand A_log, Operand B, Operand C, Operand D,
           SsdOptions options) {
  Call call("ssd", x.site());
  std::vector<Tensor> in;
  for (const Operand* operand : {&x, &dt, &A_log, &B, &C, &D}) in.push_back(call.tensor(*operand));
  const Sizes s = checked_sizes(call, in, options.chunk);
  const Tensor skipped = in[0] * unsqueeze(in[5], 1);
  if (in[0].count() == 0 || s.N == 0) return skipped;

  const Tensor dl = softplus(in[1]);                              // [B, L, H]
  const Tensor u = in_chunks(in[0] * unsqueeze(dl, 3), s);        // [B, chunks, G, H/G, Q, P]
  const Tensor b = in_chunks(in[3], s), c = in_chunks(in[4], s);  // [B, chunks, G, 1, Q, N]
  const Tensor log_a = in_chunks(dl * -exp(in[2]), s);            // [B, chunks, G, H/G, Q]
  const Tensor sums = segment_sums(log_a);                        // [B, chunks, G, H/G, Q, Q]
  const Tensor decay = masked_exp(sums, 0);
  Tensor y = matmul(matmul(c, swap_axes(b, -1, -2)) * decay, u);  // [B, chunks, G, H/G, Q, P]
  if (s.chunks() > 1) {
    const Tensor to_end =
        swap_axes(narrow(decay, -2, s.Q - 1, 1), -1, -2);           // [B, chunks, G, H/G, Q, 1]
    const Tensor added = matmul(swap_axes(b, -1, -2), u * to_end);  // [B, chunks, G, H/G, N, P]
    // [B, chunks, G, H/G, Q, 1]: sums from the first position of the chunk
    const Tensor from_start = narrow(sums, -1, 0, 1) + unsqueeze(narrow(log_a, -1, 0, 1), -1);
    const Tensor total = squeeze(narrow(squeeze(from_start, -1), -1, s.Q - 1, 1), -1);
    y = y + matmul(c, carried(added, total, s)) * exp(from_start);
  }
  y = reshape(permute(y, {0, 1, 4, 2, 3, 5}), {s.B, s.chunks() * s.Q, s.H, s.P});
  return narrow(y, 1, 0, s.L) + skipped;
}

}  // namespace tensorgrad

namespace tensorgrad::ops {

std::span<const PublicOp> ssd_ops() {
  static constexpr PublicOp all[] = {
      op(
          "ssd",
          [](Operand x, Operand dt, Operand A_log, Operand B, Operand C, Operand D,
             std::int64_t chunk) { return ssd(x, dt, A_log, B, C, D, {.chunk = chunk}); },
          {"x", "dt", "A_log", "B", "C", "D", {"chunk", 64}},
          "The recurrence of Mamba-2. x is [B, L, H, P], dt is [B, L, H], A_log and D are [H], B "
          "and C are [B, L, G, N]."),
  };
  return all;
}

}  // namespace tensorgrad::ops
