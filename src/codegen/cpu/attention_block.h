// The inner loops of attention, compiled for every SIMD target and chosen at run time. Lanes are
// queries: scores are stored transposed, [keys, queries], so that maxima and sums run down columns
// and no operation crosses lanes.
#pragma once

#include <cstdint>

namespace tensorgrad::cpu {

// Queries per block. A block is 8, 16 or 32 lanes wide.
inline constexpr std::int64_t kBlockQueries = 32;
// Keys per block of scores.
inline constexpr std::int64_t kBlockKeys = 64;
// Rows of a right matmul operand are padded to a multiple of this many floats.
inline constexpr std::int64_t kRowUnit = 8;

struct FloatRows {
  const float* data;
  std::int64_t stride;
};

struct FloatSums {
  float* data;
  std::int64_t stride;
};

// A block of queries of one head, and the keys they see.
struct AttentionBlock {
  std::int64_t n;     // queries
  std::int64_t D, V;  // head sizes
  std::int64_t keys;  // keys that the last query sees
  bool causal;        // query i sees the first `visible` + i keys; otherwise every query sees all
  std::int64_t visible;  // at least -kBlockQueries
  float scale;
  FloatRows q, k, v;  // rows of v are padded to a multiple of kRowUnit floats
  float* work;        // attention_work(D, V) floats
};

std::int64_t attention_work(std::int64_t D, std::int64_t V);

// Writes out [n, V] and the contiguous log-sum-exp [n].
void attention_forward(const AttentionBlock& block, float* out, std::int64_t out_stride,
                       float* lse);

struct AttentionBack {
  FloatRows gy;      // rows padded to a multiple of kRowUnit floats; so are q and k of the block
  FloatRows out;     // [n, V]
  const float* lse;  // [n]
  FloatSums dq;      // [n, D], padded rows
  FloatSums dk, dv;  // [keys, D or V], padded rows; accumulated
};

void attention_backward(const AttentionBlock& block, const AttentionBack& back);

}  // namespace tensorgrad::cpu
