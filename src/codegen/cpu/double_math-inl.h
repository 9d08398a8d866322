// sin, cos and pow of floats, computed in double without branches, so that the compiler vectorizes
// them for the current SIMD target. The error is 0.51 units in the last place: for sin and cos with
// |x| up to kLargestAngle, for pow with operands that PlainPower accepts. Callers use libm for the
// rest.
#if defined(TENSORGRAD_CPU_DOUBLE_MATH_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TENSORGRAD_CPU_DOUBLE_MATH_INL_H
#undef TENSORGRAD_CPU_DOUBLE_MATH_INL_H
#else
#define TENSORGRAD_CPU_DOUBLE_MATH_INL_H
#endif

#include <hwy/highway.h>

#include <cmath>
#include <cstdint>

#include "support/bits.h"

HWY_BEFORE_NAMESPACE();
namespace tensorgrad::cpu::HWY_NAMESPACE::math {

// Adding this to a value below 2^51 leaves the nearest integer in the low bits.
inline constexpr double kRounder = 0x1.8p52;
inline constexpr float kLargestAngle = 0x1p20f;

// sin(x + quarter * pi / 2).
HWY_INLINE float SinOrCos(float angle, std::uint64_t quarter) {
  const double x = angle;
  const double shifted = x * 0.63661977236758134308 + kRounder;
  const double n = shifted - kRounder;
  // n times the first part of pi / 2 (33 bits) is exact.
  const double r = (x - n * 1.57079632673412561417) - n * 6.07710050650619224932e-11;
  const double z = r * r;
  const double sine =
      r * (1 + z * (-0.16666666641629835641 +
                    z * (0.0083333293855262127803 +
                         z * (-0.00019839334580608285614 + z * 2.7183081784872096436e-6))));
  const double cosine = 1 - 0.5 * z +
                        z * z *
                            (0.041666666622964856494 +
                             z * (-0.0013888883762893829228 +
                                  z * (0.000024799522063096370666 - z * 2.7210378590714321149e-7)));
  const std::uint64_t q = bit_cast<std::uint64_t>(shifted) + quarter;
  const std::uint64_t odd = 0 - (q & 1);
  const std::uint64_t bits =
      (bit_cast<std::uint64_t>(cosine) & odd) | (bit_cast<std::uint64_t>(sine) & ~odd);
  return static_cast<float>(bit_cast<double>(bits ^ ((q & 2) << 62)));
}

// Whether Power accepts the operands: both finite, and a negative base only with an integer
// exponent.
HWY_INLINE bool PlainPower(float x, float y) {
  const float a = std::fabs(x), b = std::fabs(y);
  const bool finite = (a > 0) & (a <= 3.4028234e38f) & (b <= 3.4028234e38f);
  const bool whole = (b < 0x1p22f) & ((b + 0x1p23f) - 0x1p23f == b);
  return finite & ((x > 0) | whole);
}

// |x|^y as 2^(y log2|x|), negative for x < 0 and odd y.
HWY_INLINE float Power(float base, float exponent) {
  constexpr std::uint64_t kRoot = 0x3fe6a09e667f3bcd;  // the bits of sqrt(1/2)
  constexpr std::uint64_t kBias = std::uint64_t{1023} << 52,
                          kMantissa = (std::uint64_t{1} << 52) - 1;
  const std::uint64_t t =
      bit_cast<std::uint64_t>(static_cast<double>(std::fabs(base))) - kRoot + kBias;
  // An integer below 2^52, converted to double through its bits.
  const double e = bit_cast<double>((t >> 52) | 0x4330000000000000) - (0x1p52 + 1023);
  const double m = bit_cast<double>((t & kMantissa) + kRoot);
  const double s = (m - 1) / (m + 1), w = s * s;
  const double series =
      1 +
      w * (1 / 3.0 +
           w * (1 / 5.0 +
                w * (1 / 7.0 +
                     w * (1 / 9.0 + w * (1 / 11.0 + w * (1 / 13.0 + w * (1 / 15.0 + w / 17.0)))))));
  const double log2 = e + s * series * 2.88539008177792681472;
  double z = exponent * log2;
  z = z < -200 ? -200 : z;
  z = z > 200 ? 200 : z;
  const double shifted = z + kRounder, f = (z - (shifted - kRounder)) * 0.69314718055994530942;
  const double power =
      1 + f * (1 + f * (1 / 2.0 +
                        f * (1 / 6.0 +
                             f * (1 / 24.0 +
                                  f * (1 / 120.0 +
                                       f * (1 / 720.0 + f * (1 / 5040.0 + f * (1 / 40320.0 +
                                                                               f / 362880.0))))))));
  const std::uint64_t scaled =
      bit_cast<std::uint64_t>(power) + (bit_cast<std::uint64_t>(shifted) << 52);
  const std::uint64_t odd = bit_cast<std::uint64_t>(static_cast<double>(exponent) + kRounder) & 1;
  const std::uint64_t negative = base < 0 ? odd << 63 : 0;
  return static_cast<float>(bit_cast<double>(scaled | negative));
}

}  // namespace tensorgrad::cpu::HWY_NAMESPACE::math
HWY_AFTER_NAMESPACE();

#endif
