// Reads single elements: the conversions and the table of types. Files are little-endian, as is
// every supported machine.
#include "io/element_type.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "support/fail.h"
#include "support/integers.h"

namespace tensorgrad::io {

namespace {

template <class T>
T load(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

float float_of_bits(std::uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

float from_bf16(const char* at) {
  return float_of_bits(static_cast<std::uint32_t>(load<std::uint16_t>(at)) << 16);
}

// 1 sign, 5 exponent (bias 15) and 10 mantissa bits.
float from_f16(const char* at) {
  const auto half = static_cast<std::uint32_t>(load<std::uint16_t>(at));
  const std::uint32_t sign = (half & 0x8000u) << 16, exponent = half >> 10 & 31,
                      mantissa = half & 0x3ff;
  if (exponent == 0) {  // subnormal: mantissa * 2^-24, exact in f32
    const float value = std::ldexp(static_cast<float>(mantissa), -24);
    return sign ? -value : value;
  }
  if (exponent == 31) return float_of_bits(sign | 0x7f800000u | mantissa << 13);
  return float_of_bits(sign | (exponent + 112) << 23 | mantissa << 13);
}

float from_f64(const char* at) {
  const auto value = load<double>(at);
  const double largest = std::numeric_limits<float>::max();
  // Values from half a step above the largest float would round to infinity.
  if (std::isfinite(value) && std::fabs(value) >= largest + std::ldexp(1.0, 103))
    user_error("{} does not fit f32", value);
  return static_cast<float>(value);
}

template <class T>
std::int32_t from_integer(const char* at) {
  const T value = load<T>(at);
  if constexpr (sizeof(T) >= sizeof(std::int32_t)) {
    constexpr auto kMax = std::numeric_limits<std::int32_t>::max();
    bool fits = value <= static_cast<T>(kMax);
    if constexpr (std::is_signed_v<T>)
      fits = fits && value >= std::numeric_limits<std::int32_t>::min();
    if (!fits) user_error("{} does not fit i32", value);
  }
  return static_cast<std::int32_t>(value);
}

std::int32_t from_bool(const char* at) {
  const auto value = load<std::uint8_t>(at);
  if (value > 1) user_error("{} is not a BOOL: it must be 0 or 1", value);
  return value;
}

constexpr ElementType kElementTypes[] = {
    {.name = "F32", .bytes = 4, .to_float = load<float>},
    {.name = "F16", .bytes = 2, .to_float = from_f16},
    {.name = "BF16", .bytes = 2, .to_float = from_bf16},
    {.name = "F64", .bytes = 8, .to_float = from_f64},
    {.name = "BOOL", .bytes = 1, .to_int = from_bool, .dtype = boolean},
    {.name = "U8", .bytes = 1, .to_int = from_integer<std::uint8_t>},
    {.name = "I8", .bytes = 1, .to_int = from_integer<std::int8_t>},
    {.name = "U16", .bytes = 2, .to_int = from_integer<std::uint16_t>},
    {.name = "I16", .bytes = 2, .to_int = from_integer<std::int16_t>},
    {.name = "U32", .bytes = 4, .to_int = from_integer<std::uint32_t>},
    {.name = "I32", .bytes = 4, .to_int = load<std::int32_t>},
    {.name = "U64", .bytes = 8, .to_int = from_integer<std::uint64_t>},
    {.name = "I64", .bytes = 8, .to_int = from_integer<std::int64_t>},
    // Types that the format has and we refuse by name; some take less than a byte.
    {.name = "C64"},
    {.name = "F8_E4M3"},
    {.name = "F8_E4M3FNUZ"},
    {.name = "F8_E5M2"},
    {.name = "F8_E5M2FNUZ"},
    {.name = "F8_E8M0"},
    {.name = "F6_E2M3"},
    {.name = "F6_E3M2"},
    {.name = "F4"},
};

constexpr std::size_t kPiece = std::size_t{1} << 18;  // bytes per read: they stay in the cache

template <class T, class Convert>
std::vector<T> elements(std::size_t count, std::size_t element_bytes, Convert convert,
                        const NextBytes& next) {
  std::vector<T> values(count);
  const bool as_they_are = convert == &load<T>;
  std::vector<char> buffer(as_they_are ? 0 : std::min(count * element_bytes, kPiece));
  for (std::size_t at = 0; at < count;) {
    const std::size_t some = std::min(count - at, kPiece / element_bytes);
    if (as_they_are) {
      next({reinterpret_cast<char*>(values.data() + at), some * element_bytes});
    } else {
      next(std::span(buffer).first(some * element_bytes));
      for (std::size_t i = 0; i < some; ++i)
        values[at + i] = convert(buffer.data() + i * element_bytes);
    }
    at += some;
  }
  return values;
}

}  // namespace

const ElementType* find_element_type(std::string_view name) {
  for (const ElementType& type : kElementTypes)
    if (type.name == name) return &type;
  return nullptr;
}

Array read_elements(const ElementType& type, const Shape& shape, const NextBytes& next) {
  const auto count = usize(shape.count());
  if (type.to_float) return {shape, elements<float>(count, type.bytes, type.to_float, next)};
  return {shape, elements<std::int32_t>(count, type.bytes, type.to_int, next), type.dtype};
}

}  // namespace tensorgrad::io
