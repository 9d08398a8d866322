// The innermost loops of attention, compiled for every SIMD target and chosen at run time. Lanes
// are queries: scores are kept turned around, [keys, queries], so that maxima and sums run down
// columns and nothing crosses lanes.
#pragma once

#include <cstdint>

namespace tensorgrad::cpu {

// Queries of a block, which is as wide as 8, 16 or 32 lanes.
inline constexpr std::int64_t kBlockQueries = 32;
// Keys whose scores are held at a time.
inline constexpr std::int64_t kBlockKeys = 64;
// Rows that are the right operand of a product have a multiple of this many floats.
inline constexpr std::int64_t kRowUnit = 8;

struct FloatRows {
  const float* data;
  std::int64_t stride;
};

struct FloatSums {
  float* data;
  std::int64_t stride;
};

// Some queries of a head, and the keys that they see.
struct AttentionBlock {
  std::int64_t n;        // queries
  std::int64_t D, V;     // sizes of a head
  std::int64_t keys;     // that the last query sees
  bool causal;           // query i sees the first `visible` + i keys; otherwise all do
  std::int64_t visible;  // at least -kBlockQueries
  float scale;
  FloatRows q, k, v;  // v: up to a multiple of kRowUnit floats
  float* work;        // attention_work(D, V) floats
};

std::int64_t attention_work(std::int64_t D, std::int64_t V);

// out [n, V] and, side by side, log-sum-exp [n].
void attention_forward(const AttentionBlock& block, float* out, std::int64_t out_stride,
                       float* lse);

struct AttentionBack {
  FloatRows gy;      // up to a multiple of kRowUnit floats; so are q and k of the block
  FloatRows out;     // [n, V]
  const float* lse;  // [n]
  FloatSums dq;      // [n, D], such rows
  FloatSums dk, dv;  // [keys, D or V], such rows; added to
};

void attention_backward(const AttentionBlock& block, const AttentionBack& back);

}  // namespace tensorgrad::cpu
