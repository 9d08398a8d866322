// Reductions in a fixed order, which depends on the SIMD target but not on threads.
#include <algorithm>
#include <cstring>
#include <limits>

#include "codegen/cpu/vector_loops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codegen/cpu/combine.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "codegen/cpu/vector_ops-inl.h"
#include "support/integers.h"

HWY_BEFORE_NAMESPACE();
namespace tensorgrad::cpu::HWY_NAMESPACE {

using ir::Combine;

// Accumulates four vectors at a time, combines them pairwise and adds them to the double.
double SumLine(const float* x, std::int64_t n) {
  const Tag d;
  const auto N = static_cast<std::int64_t>(hn::Lanes(d));
  double total = 0;
  std::int64_t i = 0;
  while (i + 4 * N <= n) {
    V a = hn::Zero(d), b = a, c = a, e = a;
    const std::int64_t stop = std::min(n - 4 * N, i + 28 * N);  // at most eight additions per lane
    for (; i <= stop; i += 4 * N) {
      a = hn::Add(a, hn::LoadU(d, x + i));
      b = hn::Add(b, hn::LoadU(d, x + i + N));
      c = hn::Add(c, hn::LoadU(d, x + i + 2 * N));
      e = hn::Add(e, hn::LoadU(d, x + i + 3 * N));
    }
    total +=
        static_cast<double>(hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(a, b), hn::Add(c, e)))));
  }
  if (i == n) return total;
  V rest = hn::Zero(d);
  for (; i + N <= n; i += N) rest = hn::Add(rest, hn::LoadU(d, x + i));
  if (i < n) rest = hn::Add(rest, LoadSome(d, x + i, n - i));
  return total + static_cast<double>(hn::GetLane(hn::SumOfLanes(d, rest)));
}

double SumIntLine(const float* x, std::int64_t n) {
  const Tag d;
  const auto N = static_cast<std::int64_t>(hn::Lanes(d));
  VI sum = hn::Zero(IntTag());
  std::int64_t i = 0;
  for (; i + N <= n; i += N) sum = hn::Add(sum, Ints(hn::LoadU(d, x + i)));
  if (i < n) sum = hn::Add(sum, Ints(LoadSome(d, x + i, n - i)));
  // (SumOfLanes adds signed integers, which must not overflow; these wrap around.)
  HWY_ALIGN std::int32_t lanes[hn::MaxLanes(IntTag())];
  hn::Store(sum, IntTag(), lanes);
  std::uint32_t total = 0;
  for (std::int64_t j = 0; j < N; ++j) total += static_cast<std::uint32_t>(lanes[j]);
  return static_cast<double>(static_cast<std::int32_t>(total));
}

template <bool kMax>
double BestLine(const float* x, std::int64_t n) {
  const Tag d;
  const auto N = static_cast<std::int64_t>(hn::Lanes(d));
  const V worst = hn::Set(d, kMax ? -math::kInfinity : math::kInfinity);
  V best = worst;
  auto nan = hn::FirstN(d, 0);
  const auto take = [&](V v) {
    nan = hn::Or(nan, hn::IsNaN(v));
    best = kMax ? hn::Max(best, v) : hn::Min(best, v);
  };
  std::int64_t i = 0;
  for (; i + N <= n; i += N) take(hn::LoadU(d, x + i));
  if (i < n) take(hn::IfThenElse(hn::FirstN(d, usize(n - i)), LoadSome(d, x + i, n - i), worst));
  if (!hn::AllFalse(d, nan)) return std::numeric_limits<double>::quiet_NaN();
  // (MaxOfLanes does not handle infinities on some targets.)
  HWY_ALIGN float lanes[hn::MaxLanes(d)];
  hn::Store(best, d, lanes);
  return static_cast<double>(kMax ? *std::max_element(lanes, lanes + N)
                                  : *std::min_element(lanes, lanes + N));
}

template <bool kMax>
double BestIntLine(const float* x, std::int64_t n) {
  const Tag d;
  const IntTag di;
  using Limits = std::numeric_limits<std::int32_t>;
  const auto N = static_cast<std::int64_t>(hn::Lanes(d));
  const VI worst = hn::Set(di, kMax ? Limits::min() : Limits::max());
  VI best = worst;
  const auto take = [&](VI v) { best = kMax ? hn::Max(best, v) : hn::Min(best, v); };
  std::int64_t i = 0;
  for (; i + N <= n; i += N) take(Ints(hn::LoadU(d, x + i)));
  if (i < n)
    take(hn::IfThenElse(hn::FirstN(di, usize(n - i)), Ints(LoadSome(d, x + i, n - i)), worst));
  return hn::GetLane(kMax ? hn::MaxOfLanes(di, best) : hn::MinOfLanes(di, best));
}

template <DType kType>
double ProductLine(const float* x, std::int64_t n) {
  double product = 1;
  for (std::int64_t i = 0; i < n; ++i)
    product = combine_two(Combine::mul, kType, product, value_of(x[i], kType));
  return product;
}

template <double (*kLine)(const float*, std::int64_t)>
void EachLine(const float* x, std::int64_t lines, std::int64_t length, double* out) {
  for (std::int64_t l = 0; l < lines; ++l, x += length) out[l] = kLine(x, length);
}

FoldLines FindFold(Combine combine, DType dtype) {
  const bool real = dtype == DType::f32;
  switch (combine) {
    case Combine::add:
      return real ? EachLine<SumLine> : EachLine<SumIntLine>;
    case Combine::mul:
      return real ? EachLine<ProductLine<DType::f32>> : EachLine<ProductLine<DType::i32>>;
    case Combine::max:
      return real ? EachLine<BestLine<true>> : EachLine<BestIntLine<true>>;
    case Combine::min:
      return real ? EachLine<BestLine<false>> : EachLine<BestIntLine<false>>;
    case Combine::none:
      break;
  }
  return nullptr;
}

void SumColumns(const float* x, std::int64_t rows, std::int64_t columns, double* acc) {
  std::int64_t c = 0;
#if HWY_HAVE_FLOAT64
  const hn::ScalableTag<double> dd;
  const hn::Rebind<float, decltype(dd)> half;
  const auto N = static_cast<std::int64_t>(hn::Lanes(dd));
  for (; c + 2 * N <= columns; c += 2 * N) {
    auto a = hn::LoadU(dd, acc + c), b = hn::LoadU(dd, acc + c + N);
    const float* from = x + c;
    for (std::int64_t r = 0; r < rows; ++r, from += columns) {
      a = hn::Add(a, hn::PromoteTo(dd, hn::LoadU(half, from)));
      b = hn::Add(b, hn::PromoteTo(dd, hn::LoadU(half, from + N)));
    }
    hn::StoreU(a, dd, acc + c);
    hn::StoreU(b, dd, acc + c + N);
  }
#endif
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t i = c; i < columns; ++i) acc[i] += static_cast<double>(x[r * columns + i]);
}

FoldRows FindColumnSum() { return SumColumns; }

}  // namespace tensorgrad::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensorgrad::cpu {

using ir::Combine;

HWY_EXPORT(FindFold);
HWY_EXPORT(FindColumnSum);

namespace {

std::uint32_t low_bits(double v) {
  return static_cast<std::uint32_t>(static_cast<std::int64_t>(v));
}
double as_int(std::uint32_t v) { return static_cast<double>(static_cast<std::int32_t>(v)); }

template <Combine kCombine, DType kType>
void combine_columns(const float* x, std::int64_t rows, std::int64_t columns, double* acc) {
  for (std::int64_t r = 0; r < rows; ++r, x += columns)
    for (std::int64_t c = 0; c < columns; ++c)
      acc[c] = combine_two(kCombine, kType, acc[c], value_of(x[c], kType));
}

template <Combine kCombine>
FoldRows columns_of(DType dtype) {
  return dtype == DType::f32 ? combine_columns<kCombine, DType::f32>
                             : combine_columns<kCombine, DType::i32>;
}

}  // namespace

double value_of(float element, DType dtype) {
  if (dtype == DType::f32) return static_cast<double>(element);
  std::int32_t v;
  std::memcpy(&v, &element, sizeof v);
  return v;
}

// i32 sums and products wrap around at 32 bits; NaN propagates in f32.
double combine_two(Combine combine, DType dtype, double a, double b) {
  const bool real = dtype == DType::f32;
  switch (combine) {
    case Combine::add:
      return real ? a + b : as_int(low_bits(a) + low_bits(b));
    case Combine::mul:
      return real ? a * b : as_int(low_bits(a) * low_bits(b));
    case Combine::max:
      return a != a || b != b ? a + b : std::max(a, b);
    case Combine::min:
      return a != a || b != b ? a + b : std::min(a, b);
    case Combine::none:
      break;
  }
  return a;
}

FoldLines find_fold(Combine combine, DType dtype) {
  return HWY_DYNAMIC_DISPATCH(FindFold)(combine, dtype);
}

FoldRows find_column_fold(Combine combine, DType dtype) {
  switch (combine) {
    case Combine::add:
      return dtype == DType::f32 ? HWY_DYNAMIC_DISPATCH(FindColumnSum)()
                                 : columns_of<Combine::add>(dtype);
    case Combine::mul:
      return columns_of<Combine::mul>(dtype);
    case Combine::max:
      return columns_of<Combine::max>(dtype);
    case Combine::min:
      return columns_of<Combine::min>(dtype);
    case Combine::none:
      break;
  }
  return nullptr;
}

}  // namespace tensorgrad::cpu
#endif
