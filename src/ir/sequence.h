// Shapes of the kernels that walk along sequences, and the memory layout of their results. A node
// has one result, so several tensors are packed into it, consecutively or interleaved by row. Views
// extract them.
#pragma once

#include <cstdint>

#include "support/integers.h"

namespace tensorgrad::ir {

// Parts start at multiples of four elements, so that vector loads are aligned.
inline std::int64_t align(std::int64_t elements) { return round_up(elements, 4); }

// The location of a part of a packed result: element [b, t, h, d] is at offset + (b * positions +
// t) * row + h * size + d.
struct PackedPart {
  std::int64_t offset = 0, row = 0;
};

// softmax(scale q k^T) v for q [B, H, T, D], k [B, G, S, D] and v [B, G, S, V]; G divides H.
struct AttentionShape {
  std::int64_t B = 0, H = 0, G = 0, T = 0, S = 0, D = 0, V = 0;
  bool causal = false;  // query t sees keys 0 .. start + t
  bool cached = false;  // start is an operand; otherwise it is S - T
  double scale = 1;

  // Result of attention: the rows [B, T, H, V], then log-sum-exp of each row of scores [B, H, T].
  PackedPart out() const { return {0, H * V}; }
  std::int64_t lse() const { return align(B * T * H * V); }
  std::int64_t result_elements() const { return lse() + B * H * T; }

  // Result of the gradient. If D == V and there are as many keys as queries, one row contains the
  // gradients of q, k and v next to each other.
  bool side_by_side() const { return T == S && D == V; }
  PackedPart dq() const { return {0, side_by_side() ? (H + 2 * G) * D : H * D}; }
  PackedPart dk() const {
    return side_by_side() ? PackedPart{H * D, dq().row} : PackedPart{align(B * T * H * D), G * D};
  }
  PackedPart dv() const {
    return side_by_side() ? PackedPart{(H + G) * D, dq().row}
                          : PackedPart{dk().offset + align(B * S * G * D), G * V};
  }
  std::int64_t gradient_elements() const {
    return side_by_side() ? B * T * dq().row : dv().offset + B * S * G * V;
  }
};

// The recurrence of a selective state space: u and delta [B, L, E], A_log [E, N], B and C [B, L,
// N], D [E].
struct SelectiveScanShape {
  std::int64_t B = 0, L = 0, E = 0, N = 0;
  std::int64_t chunk =
      1;  // steps per chunk: the state before each chunk is kept, the others are recomputed
  bool zoh = false;  // zero-order hold instead of Euler's rule

  std::int64_t chunks() const { return ceil_div(L, chunk); }
  // Result of the scan: y [B, L, E], then the states before chunks 1, 2, ... [B, chunks - 1, E, N].
  std::int64_t states() const { return align(B * L * E); }
  std::int64_t kept() const { return L > 0 ? chunks() - 1 : 0; }
  std::int64_t result_elements() const { return states() + B * kept() * E * N; }

  // Result of the gradient: du [B, L, E], ddelta [B, L, E], dB [B, L, N], dC [B, L, N], and dA of
  // each sequence [B, E, N], where A is -exp(A_log).
  std::int64_t ddelta() const { return align(B * L * E); }
  std::int64_t dB() const { return 2 * ddelta(); }
  std::int64_t dC() const { return dB() + align(B * L * N); }
  std::int64_t dA() const { return dC() + align(B * L * N); }
  std::int64_t gradient_elements() const { return dA() + B * E * N; }
};

}  // namespace tensorgrad::ir
