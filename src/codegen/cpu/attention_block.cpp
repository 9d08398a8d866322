#include "codegen/cpu/attention_block.h"

#include <algorithm>
#include <limits>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codegen/cpu/attention_block.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "codegen/cpu/power-inl.h"
#include "codegen/cpu/small_product-inl.h"
#include "codegen/cpu/transpose-inl.h"
#include "codegen/cpu/vector_math-inl.h"
#include "support/integers.h"

HWY_BEFORE_NAMESPACE();
namespace tensorgrad::cpu::HWY_NAMESPACE {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

constexpr std::int64_t RowFloats(std::int64_t size) { return round_up(size, kRowUnit); }

// Transposes rows [n, size] to [size, lanes]; lanes without a row are zero.
void Turn(const FloatRows& rows, std::int64_t n, std::int64_t size, std::int64_t lanes, float* to) {
  if (n < lanes) std::fill_n(to, size * lanes, 0.0f);
  Transpose(rows.data, rows.stride, n, size, to, lanes);
}

// One block with kLanes lanes of queries. Scores are rounded before anything is subtracted from
// them, forward and backward. So a large score and the log-sum-exp computed from it cancel exactly.
template <std::int64_t kLanes>
class Block {
 public:
  using Tag = hn::CappedTag < float, kLanes<16 ? kLanes : 16>;
  using V = hn::Vec<Tag>;

  explicit Block(const AttentionBlock& a)
      : a_(a), width_v_(RowFloats(a.V)), width_d_(RowFloats(a.D)), scale_(a.scale) {
    float* at = a.work;
    const auto take = [&](std::int64_t count) { return std::exchange(at, at + count); };
    scores_ = take(kBlockKeys * kLanes);
    dscores_ = take(kBlockKeys * kLanes);
    q_ = take(a.D * kLanes);
    gy_ = take(a.V * kLanes);
    o_ = take(kLanes * width_v_);
    top_ = take(kLanes);
    sum_ = take(kLanes);
    Turn(a.q, a.n, a.D, kLanes, q_);
  }

  void forward(float* out, std::int64_t out_stride, float* lse) {
    for (std::int64_t v = 0; v < kLanes; v += kStep()) {
      hn::StoreU(hn::Set(d_, kMinusInfinity), d_, top_ + v);
      hn::StoreU(hn::Zero(d_), d_, sum_ + v);
    }
    for (std::int64_t key = 0; key < a_.keys; key += kBlockKeys) {
      const std::int64_t count = std::min(kBlockKeys, a_.keys - key);
      seen_products(a_.k, a_.D, q_, key, count, scores_);
      for (std::int64_t v = 0; v < kLanes; v += kStep()) weigh(key, count, v);
      Product({scores_, 1, kLanes}, a_.n, {a_.v.data + key * a_.v.stride, a_.v.stride}, width_v_,
              {o_, width_v_}, key == 0, [&](std::int64_t r, std::int64_t rows) {
                return Depth{0, seen(r + rows - 1, key, count)};
              });
    }
    finish(out, out_stride, lse);
  }

  void backward(const AttentionBack& b) {
    Turn(b.gy, a_.n, a_.V, kLanes, gy_);
    for (std::int64_t i = 0; i < kLanes; ++i) top_[i] = i < a_.n ? b.lse[i] : 0;
    for (std::int64_t i = 0; i < kLanes; ++i)
      sum_[i] = i < a_.n ? dot(b.out.data + i * b.out.stride, b.gy.data + i * b.gy.stride) : 0;
    if (a_.keys == 0)
      for (std::int64_t i = 0; i < a_.n; ++i)
        std::fill_n(b.dq.data + i * b.dq.stride, width_d_, 0.0f);
    for (std::int64_t key = 0; key < a_.keys; key += kBlockKeys) {
      const std::int64_t count = std::min(kBlockKeys, a_.keys - key);
      seen_products(a_.k, a_.D, q_, key, count, scores_);
      seen_products(a_.v, a_.V, gy_, key, count, dscores_);
      for (std::int64_t v = 0; v < kLanes; v += kStep()) differentiate(key, count, v);
      const auto queries = [&](std::int64_t r,
                               std::int64_t) {  // the first one that sees the first of these keys
        return Depth{a_.causal ? std::clamp<std::int64_t>(key + r + 1 - a_.visible, 0, a_.n) : 0,
                     a_.n};
      };
      Product({scores_, kLanes, 1}, count, {b.gy.data, b.gy.stride}, width_v_,
              {b.dv.data + key * b.dv.stride, b.dv.stride}, false, queries);
      Product({dscores_, kLanes, 1}, count, {a_.q.data, a_.q.stride}, width_d_,
              {b.dk.data + key * b.dk.stride, b.dk.stride}, false, queries);
      Product({dscores_, 1, kLanes}, a_.n, {a_.k.data + key * a_.k.stride, a_.k.stride}, width_d_,
              {b.dq.data, b.dq.stride}, key == 0, [&](std::int64_t r, std::int64_t rows) {
                return Depth{0, seen(r + rows - 1, key, count)};
              });
    }
  }

 private:
  static std::int64_t kStep() { return static_cast<std::int64_t>(hn::Lanes(Tag())); }

  HWY_INLINE V Exp(V x) const { return PowerOfProduct(d_, x, hn::Set(d_, kLog2E)); }

  // How many of `count` keys from `key` on query i sees; i is clamped to the last query.
  std::int64_t seen(std::int64_t i, std::int64_t key, std::int64_t count) const {
    return a_.causal ? std::clamp<std::int64_t>(a_.visible + std::min(i, a_.n - 1) - key, 0, count)
                     : count;
  }
  // All queries see the rows before this one.
  std::int64_t full(std::int64_t key, std::int64_t count) const { return seen(0, key, count); }
  // Mask of the queries from v on that see a key.
  hn::Mask<Tag> sees(std::int64_t v, std::int64_t key) const {
    return hn::Gt(hn::Iota(d_, static_cast<float>(a_.visible + v - key)), hn::Zero(d_));
  }

  // Rows that concern the queries of a vector from v on. No query of the vector sees the rows after
  // them, nor do the other queries of its matmul tile. Rounded up to tiles of rows.
  std::int64_t rows_of(std::int64_t v, std::int64_t lanes, std::int64_t key,
                       std::int64_t count) const {
    const std::int64_t last = (v + lanes - 1) | (kTileRows - 1);
    return std::min(count, round_up(seen(last, key, count), kTileRows));
  }

  // Matmul of keys (or values) and queries (or gradients), [keys, queries], where the first or the
  // second half of the queries sees a key.
  void seen_products(const FloatRows& rows, std::int64_t size, const float* transposed,
                     std::int64_t key, std::int64_t count, float* to) {
    constexpr std::int64_t kHalf = kLanes / 2;
    const std::int64_t both = kLanes < kBlockQueries ? count : rows_of(0, kHalf, key, count);
    const auto depth = [size](std::int64_t, std::int64_t) { return Depth{0, size}; };
    Product({rows.data + key * rows.stride, rows.stride, 1}, both, {transposed, kLanes}, kLanes,
            {to, kLanes}, true, depth);
    if (both == count) return;
    Product({rows.data + (key + both) * rows.stride, rows.stride, 1}, count - both,
            {transposed + kHalf, kLanes}, kHalf, {to + both * kLanes + kHalf, kLanes}, true, depth);
  }

  // Converts scores to weights, for the queries of one vector. Rescales the previous sums where a
  // new score exceeds the previous maximum.
  void weigh(std::int64_t key, std::int64_t all, std::int64_t v) {
    const std::int64_t count = rows_of(v, kStep(), key, all),
                       clear = std::min(count, full(key, all));
    const V scale = hn::Set(d_, scale_);
    const V before = hn::LoadU(d_, top_ + v);
    V top = before;
    float* const column = scores_ + v;
    for (std::int64_t s = 0; s < clear; ++s)
      top = hn::Max(top, hn::Mul(hn::LoadU(d_, column + s * kLanes), scale));
    for (std::int64_t s = clear; s < count; ++s) {
      const V x = hn::Mul(hn::LoadU(d_, column + s * kLanes), scale);
      top = hn::Max(top, hn::IfThenElse(sees(v, key + s), x, hn::Set(d_, kMinusInfinity)));
    }
    const V shift = hn::IfThenZeroElse(hn::Eq(top, hn::Set(d_, kMinusInfinity)),
                                       top);  // no keys seen so far
    const V factor = Exp(hn::Sub(before, shift));
    V sum = hn::Mul(hn::LoadU(d_, sum_ + v), factor);
    for (std::int64_t s = 0; s < clear; ++s) {
      const V weight = Exp(hn::Sub(hn::Mul(hn::LoadU(d_, column + s * kLanes), scale), shift));
      hn::StoreU(weight, d_, column + s * kLanes);
      sum = hn::Add(sum, weight);
    }
    for (std::int64_t s = clear; s < count; ++s) {
      const V x = hn::Sub(hn::Mul(hn::LoadU(d_, column + s * kLanes), scale), shift);
      const V weight = hn::IfThenElseZero(sees(v, key + s), Exp(x));
      hn::StoreU(weight, d_, column + s * kLanes);
      sum = hn::Add(sum, weight);
    }
    hn::StoreU(sum, d_, sum_ + v);
    hn::StoreU(top, d_, top_ + v);
    if (key == 0) return;
    HWY_ALIGN float factors[hn::MaxLanes(Tag())];
    hn::Store(factor, d_, factors);
    for (std::int64_t i = 0; i < kStep() && v + i < a_.n; ++i)
      if (factors[i] != 1)
        scale_row(o_ + (v + i) * width_v_, factors[i], o_ + (v + i) * width_v_, width_v_);
  }

  // Converts scores and v gy^T to weights and the gradient of q k^T; 0 where a key is not seen.
  void differentiate(std::int64_t key, std::int64_t all, std::int64_t v) {
    const std::int64_t count = rows_of(v, kStep(), key, all),
                       clear = std::min(count, full(key, all));
    for (std::int64_t s = 0; s < clear; ++s) {
      V weight, slope;
      slopes(s * kLanes + v, v, weight, slope);
      hn::StoreU(weight, d_, scores_ + s * kLanes + v);
      hn::StoreU(slope, d_, dscores_ + s * kLanes + v);
    }
    for (std::int64_t s = clear; s < count; ++s) {
      V weight, slope;
      slopes(s * kLanes + v, v, weight, slope);
      const auto mask = sees(v, key + s);
      hn::StoreU(hn::IfThenElseZero(mask, weight), d_, scores_ + s * kLanes + v);
      hn::StoreU(hn::IfThenElseZero(mask, slope), d_, dscores_ + s * kLanes + v);
    }
  }
  HWY_INLINE void slopes(std::int64_t at, std::int64_t v, V& weight, V& slope) const {
    const V lse = hn::LoadU(d_, top_ + v), mean = hn::LoadU(d_, sum_ + v),
            most = hn::Set(d_, 88.0f);
    const V x = hn::Sub(hn::Mul(hn::LoadU(d_, scores_ + at), hn::Set(d_, scale_)), lse);
    weight = Exp(hn::IfThenElse(hn::Gt(x, most), most, x));
    slope =
        hn::Mul(hn::Mul(weight, hn::Set(d_, scale_)), hn::Sub(hn::LoadU(d_, dscores_ + at), mean));
  }

  void finish(float* out, std::int64_t out_stride, float* lse) {
    HWY_ALIGN float logs[kLanes];
    for (std::int64_t v = 0; v < kLanes; v += kStep()) {
      const V sum = hn::LoadU(d_, sum_ + v), top = hn::LoadU(d_, top_ + v), one = hn::Set(d_, 1.0f);
      // A sum is 0, NaN, or at least 1. The difference is 0 or NaN.
      const V log =
          hn::Add(math::Log(d_, hn::IfThenElse(hn::Gt(sum, one), sum, one)), hn::Sub(sum, sum));
      hn::StoreU(hn::Add(top, log), d_, logs + v);
      hn::StoreU(hn::Div(one, sum), d_, sum_ + v);
    }
    for (std::int64_t i = 0; i < a_.n; ++i) {
      const bool any = !a_.causal ? a_.keys > 0 : a_.visible + i > 0 && a_.keys > 0;
      lse[i] = any ? logs[i] : 0;
      if (any)
        scale_row(o_ + i * width_v_, sum_[i], out + i * out_stride, a_.V);
      else
        std::fill_n(out + i * out_stride, a_.V, 0.0f);
    }
  }

  static void scale_row(const float* from, float factor, float* to, std::int64_t size) {
    const hn::CappedTag<float, 8> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    const auto by = hn::Set(d, factor);
    std::int64_t i = 0;
    for (; i + lanes <= size; i += lanes)
      hn::StoreU(hn::Mul(hn::LoadU(d, from + i), by), d, to + i);
    for (; i < size; ++i) to[i] = from[i] * factor;
  }

  float dot(const float* a, const float* b) const {
    const hn::CappedTag<float, 8> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    auto sum = hn::Zero(d);
    std::int64_t i = 0;
    for (; i + lanes <= a_.V; i += lanes)
      sum = hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, b + i), sum);
    float out = hn::GetLane(hn::SumOfLanes(d, sum));
    for (; i < a_.V; ++i) out += a[i] * b[i];
    return out;
  }

  const Tag d_;
  const AttentionBlock& a_;
  std::int64_t width_v_, width_d_;
  float scale_;
  float *scores_, *dscores_;  // [kBlockKeys, kLanes]
  float* q_;                  // [D, kLanes]
  float* gy_;                 // [V, kLanes]
  float* o_;                  // [kLanes, width_v_]
  float *top_,
      *sum_;  // [kLanes]: the largest score and the sum of weights; backward: log-sum-exp and mean
};

void ForwardBlock(const AttentionBlock& a, float* out, std::int64_t out_stride, float* lse) {
  if (a.n <= 8)
    Block<8>(a).forward(out, out_stride, lse);
  else if (a.n <= 16)
    Block<16>(a).forward(out, out_stride, lse);
  else
    Block<kBlockQueries>(a).forward(out, out_stride, lse);
}

void BackwardBlock(const AttentionBlock& a, const AttentionBack& b) {
  if (a.n <= 8)
    Block<8>(a).backward(b);
  else if (a.n <= 16)
    Block<16>(a).backward(b);
  else
    Block<kBlockQueries>(a).backward(b);
}

}  // namespace tensorgrad::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensorgrad::cpu {

HWY_EXPORT(ForwardBlock);
HWY_EXPORT(BackwardBlock);

std::int64_t attention_work(std::int64_t D, std::int64_t V) {
  return kBlockQueries * (2 * kBlockKeys + D + V + (V + kRowUnit) + 2);
}

void attention_forward(const AttentionBlock& block, float* out, std::int64_t out_stride,
                       float* lse) {
  HWY_DYNAMIC_DISPATCH(ForwardBlock)(block, out, out_stride, lse);
}
void attention_backward(const AttentionBlock& block, const AttentionBack& back) {
  HWY_DYNAMIC_DISPATCH(BackwardBlock)(block, back);
}

}  // namespace tensorgrad::cpu
#endif
