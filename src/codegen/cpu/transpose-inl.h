// Transposes a matrix in blocks of 4 x 4, and sums lanes of four vectors at a time. Included once
// per SIMD target.
#if defined(TENSORGRAD_CPU_TRANSPOSE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TENSORGRAD_CPU_TRANSPOSE_INL_H
#undef TENSORGRAD_CPU_TRANSPOSE_INL_H
#else
#define TENSORGRAD_CPU_TRANSPOSE_INL_H
#endif

#include <cstdint>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tensorgrad::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

HWY_INLINE void Transpose4x4(const float* from, std::int64_t from_stride, float* to,
                             std::int64_t to_stride) {
#if HWY_TARGET == HWY_SCALAR
  for (int r = 0; r < 4; ++r)
    for (int c = 0; c < 4; ++c) to[c * to_stride + r] = from[r * from_stride + c];
#else
  const hn::FixedTag<float, 4> d;
  const hn::FixedTag<std::uint64_t, 2> d2;
  const auto r0 = hn::LoadU(d, from), r1 = hn::LoadU(d, from + from_stride);
  const auto r2 = hn::LoadU(d, from + 2 * from_stride), r3 = hn::LoadU(d, from + 3 * from_stride);
  const auto a = hn::BitCast(d2, hn::InterleaveLower(d, r0, r1)),
             b = hn::BitCast(d2, hn::InterleaveLower(d, r2, r3));
  const auto e = hn::BitCast(d2, hn::InterleaveUpper(d, r0, r1)),
             f = hn::BitCast(d2, hn::InterleaveUpper(d, r2, r3));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d2, a, b)), d, to);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d2, a, b)), d, to + to_stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d2, e, f)), d, to + 2 * to_stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d2, e, f)), d, to + 3 * to_stride);
#endif
}

#if HWY_TARGET != HWY_SCALAR
// In each block of four lanes: the block sums of a, b, c and e.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V SumFour(D d, V a, V b, V c, V e) {
  const hn::Repartition<std::uint64_t, D> d2;
  const auto ab =
      hn::BitCast(d2, hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b)));
  const auto ce =
      hn::BitCast(d2, hn::Add(hn::InterleaveLower(d, c, e), hn::InterleaveUpper(d, c, e)));
  return hn::Add(hn::BitCast(d, hn::InterleaveLower(d2, ab, ce)),
                 hn::BitCast(d, hn::InterleaveUpper(d2, ab, ce)));
}

// Sums the blocks of four lanes.
template <class D, class V = hn::Vec<D>>
HWY_INLINE auto SumOfBlocks(D, V v) {
  if constexpr (hn::MaxLanes(D()) > 4) {
    const hn::Half<D> half;
    return SumOfBlocks(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  } else {
    return v;
  }
}
#endif

// The sum over lanes of each of kCount contiguous vectors.
template <int kCount, class D>
HWY_INLINE void SumLanes(D d, const float* from, float* to) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  int j = 0;
#if HWY_TARGET != HWY_SCALAR
  for (; j + 4 <= kCount; j += 4, from += 4 * lanes) {
    const auto four = SumFour(d, hn::Load(d, from), hn::Load(d, from + lanes),
                              hn::Load(d, from + 2 * lanes), hn::Load(d, from + 3 * lanes));
    hn::StoreU(SumOfBlocks(d, four), hn::FixedTag<float, 4>(), to + j);
  }
#endif
  for (; j < kCount; ++j, from += lanes) to[j] = hn::GetLane(hn::SumOfLanes(d, hn::Load(d, from)));
}

// to[c][r] = from[r][c]; rows are from_stride and to_stride apart.
HWY_INLINE void Transpose(const float* from, std::int64_t from_stride, std::int64_t rows,
                          std::int64_t columns, float* to, std::int64_t to_stride) {
  const std::int64_t whole_rows = rows / 4 * 4, whole_columns = columns / 4 * 4;
  for (std::int64_t c = 0; c < whole_columns; c += 4)
    for (std::int64_t r = 0; r < whole_rows; r += 4)
      Transpose4x4(from + r * from_stride + c, from_stride, to + c * to_stride + r, to_stride);
  for (std::int64_t c = whole_columns; c < columns; ++c)
    for (std::int64_t r = 0; r < whole_rows; ++r) to[c * to_stride + r] = from[r * from_stride + c];
  for (std::int64_t c = 0; c < columns; ++c)
    for (std::int64_t r = whole_rows; r < rows; ++r)
      to[c * to_stride + r] = from[r * from_stride + c];
}

}  // namespace tensorgrad::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
