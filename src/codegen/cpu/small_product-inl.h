// Matmul of matrices small enough to be read in place: no packing, any number of rows, columns in
// units of 8 floats. Included once per SIMD target.
#if defined(TENSORGRAD_CPU_SMALL_PRODUCT_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TENSORGRAD_CPU_SMALL_PRODUCT_INL_H
#undef TENSORGRAD_CPU_SMALL_PRODUCT_INL_H
#else
#define TENSORGRAD_CPU_SMALL_PRODUCT_INL_H
#endif

#include <cstdint>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tensorgrad::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Rows whose accumulators fit in registers, at two vectors each.
constexpr int kTileRows = HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64 ? 8 : 4;

// Element (r, k) is data[r * row + k * depth].
struct Left {
  const float* data;
  std::int64_t row, depth;
};
// Rows of the right operand or of the result.
template <class T>
struct Rows {
  T* data;
  std::int64_t stride;
};
struct Depth {
  std::int64_t begin, end;
};

template <int kRows, int kVectors, class D>
HWY_INLINE void Tile(D d, const Left& left, const Rows<const float>& right, Depth depth,
                     const Rows<float>& to, bool first) {
  using V = hn::Vec<D>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  V sum[kRows][kVectors];
  for (int r = 0; r < kRows; ++r)
    for (int j = 0; j < kVectors; ++j)
      sum[r][j] = first ? hn::Zero(d) : hn::LoadU(d, to.data + r * to.stride + j * lanes);
  const float* HWY_RESTRICT a = left.data + depth.begin * left.depth;
  const float* HWY_RESTRICT b = right.data + depth.begin * right.stride;
  for (std::int64_t k = depth.begin; k < depth.end; ++k, a += left.depth, b += right.stride) {
    V column[kVectors];
    for (int j = 0; j < kVectors; ++j) column[j] = hn::LoadU(d, b + j * lanes);
    for (int r = 0; r < kRows; ++r) {
      const V x = hn::Set(d, a[r * left.row]);
      for (int j = 0; j < kVectors; ++j) sum[r][j] = hn::MulAdd(x, column[j], sum[r][j]);
    }
  }
  for (int r = 0; r < kRows; ++r)
    for (int j = 0; j < kVectors; ++j)
      hn::StoreU(sum[r][j], d, to.data + r * to.stride + j * lanes);
}

template <int kRows, class D>
HWY_INLINE void TileColumns(D d, const Left& left, const Rows<const float>& right, Depth depth,
                            std::int64_t N, const Rows<float>& to, bool first) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t c = 0;
  for (; c + 2 * lanes <= N; c += 2 * lanes)
    Tile<kRows, 2>(d, left, {right.data + c, right.stride}, depth, {to.data + c, to.stride}, first);
  for (; c + lanes <= N; c += lanes)
    Tile<kRows, 1>(d, left, {right.data + c, right.stride}, depth, {to.data + c, to.stride}, first);
  if (c < N)
    Tile<kRows, 1>(hn::CappedTag<float, 8>(), left, {right.data + c, right.stride}, depth,
                   {to.data + c, to.stride}, first);
}

// to [M, N] = left right, or to += left right. `depth(r, rows)` returns the range of the inner axis
// that those rows use.
template <class DepthOf>
HWY_INLINE void Product(const Left& left, std::int64_t M, const Rows<const float>& right,
                        std::int64_t N, const Rows<float>& to, bool first, DepthOf depth) {
  const hn::CappedTag<float, 16> d;
  std::int64_t r = 0;
  const auto at = [&](std::int64_t row) {
    return Left{left.data + row * left.row, left.row, left.depth};
  };
  const auto result = [&](std::int64_t row) {
    return Rows<float>{to.data + row * to.stride, to.stride};
  };
  for (; r + kTileRows <= M; r += kTileRows)
    TileColumns<kTileRows>(d, at(r), right, depth(r, kTileRows), N, result(r), first);
  if constexpr (kTileRows > 4)
    for (; r + 4 <= M; r += 4) TileColumns<4>(d, at(r), right, depth(r, 4), N, result(r), first);
  for (; r < M; ++r) TileColumns<1>(d, at(r), right, depth(r, 1), N, result(r), first);
}

}  // namespace tensorgrad::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
