#include "codegen/cpu/amx.h"

#if defined(__x86_64__) && defined(__linux__)

// g++ 12 warns about its own intrinsics: they start from a deliberately uninitialized vector.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "codegen/cpu/compiled.h"
#include "support/integers.h"

// Callers of functions with this attribute must have checked has_amx().
#define AMX __attribute__((target("avx512f,amx-tile,amx-bf16")))
#define AMX_INLINE AMX __attribute__((always_inline)) inline

namespace tensorgrad::cpu {

namespace {

// A tile: 16 lines of 16 pairs of bfloat16. A pair holds the values k and k + 16, because combining
// two vectors that way needs no shuffles.
constexpr std::int64_t kLines = 16, kLanes = 16;
constexpr std::int64_t kTile = 1024;  // bytes
constexpr std::int64_t kLeftStep =
    3 * kTile;  // a block of k of a panel: the pieces one after the other,
constexpr std::int64_t kRightStep = 6 * kTile;  // each one tile, or two adjacent ones
static_assert(kAmxRows == kLines && kAmxColumns == 2 * kLanes && kAmxDepth == 2 * kLanes);
static_assert(amx_room(kAmxRows, kAmxDepth) * 4 == kLeftStep &&
              amx_room(kAmxColumns, kAmxDepth) * 4 == kRightStep);

// x rounded to 8 bits, to nearest.
AMX_INLINE __m512 leading_bits(__m512 x) {
  const __m512i rounded = _mm512_add_epi32(_mm512_castps_si512(x), _mm512_set1_epi32(0x8000));
  return _mm512_castsi512_ps(
      _mm512_and_si512(rounded, _mm512_set1_epi32(static_cast<int>(0xffff0000))));
}

// The upper halves of both vectors, in pairs.
AMX_INLINE __m512i pairs(__m512 first, __m512 second) {
  constexpr int kFirstOrBoth = 0xf8;  // a | (b & c)
  return _mm512_ternarylogic_epi32(_mm512_srli_epi32(_mm512_castps_si512(first), 16),
                                   _mm512_castps_si512(second),
                                   _mm512_set1_epi32(static_cast<int>(0xffff0000)), kFirstOrBoth);
}

// 16 x 16 floats.
struct Half {
  const float* data;
  std::int64_t line;  // stride between lines
};

// Writes the three pieces of a tile, `apart` bytes from each other. Returns the sum of all lines.
AMX_INLINE __m512 split_tile(const Half& first, const Half& second, std::int64_t apart, char* to) {
  __m512 sum = _mm512_setzero_ps();
#pragma GCC unroll 4
  for (std::int64_t i = 0; i < kLines; ++i, to += 64) {
    __m512 x = _mm512_loadu_ps(first.data + i * first.line),
           y = _mm512_loadu_ps(second.data + i * second.line);
    sum = _mm512_add_ps(sum, _mm512_add_ps(x, y));
    const __m512 x_high = leading_bits(x), y_high = leading_bits(y);
    x = _mm512_sub_ps(x, x_high), y = _mm512_sub_ps(y, y_high);
    const __m512 x_middle = leading_bits(x), y_middle = leading_bits(y);
    x = _mm512_sub_ps(x, x_middle), y = _mm512_sub_ps(y, y_middle);  // 8 bits remain, exactly
    _mm512_store_si512(to, pairs(x_high, y_high));
    _mm512_store_si512(to + apart, pairs(x_middle, y_middle));
    _mm512_store_si512(to + 2 * apart, pairs(x, y));
  }
  return sum;
}

AMX_INLINE void add_in_double(__m512 x, double* sums) {
  const __m256 low = _mm512_castps512_ps256(x),
               high = _mm512_castps512_ps256(_mm512_shuffle_f32x4(x, x, 0xee));
  _mm512_storeu_pd(sums, _mm512_add_pd(_mm512_loadu_pd(sums), _mm512_cvtps_pd(low)));
  _mm512_storeu_pd(sums + 8, _mm512_add_pd(_mm512_loadu_pd(sums + 8), _mm512_cvtps_pd(high)));
}

AMX_INLINE __m512 lower_pairs(__m512 a, __m512 b) {
  return _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
}
AMX_INLINE __m512 upper_pairs(__m512 a, __m512 b) {
  return _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
}

// to[j][i] = from[i][j], 16 x 16, four columns at a time.
AMX_INLINE void turn(const float* from, std::int64_t row, float* to) {
  for (std::int64_t j = 0; j < kLanes; j += 4) {
    __m512 x[4];
#pragma GCC unroll 4
    for (std::int64_t i = 0; i < 4; ++i) {
      const float* const at = from + i * row + j;
      x[i] = _mm512_castps128_ps512(_mm_loadu_ps(at));
      x[i] = _mm512_insertf32x4(x[i], _mm_loadu_ps(at + 4 * row), 1);
      x[i] = _mm512_insertf32x4(x[i], _mm_loadu_ps(at + 8 * row), 2);
      x[i] = _mm512_insertf32x4(x[i], _mm_loadu_ps(at + 12 * row), 3);
    }
    const __m512 low01 = _mm512_unpacklo_ps(x[0], x[1]), low23 = _mm512_unpacklo_ps(x[2], x[3]);
    const __m512 high01 = _mm512_unpackhi_ps(x[0], x[1]), high23 = _mm512_unpackhi_ps(x[2], x[3]);
    _mm512_store_ps(to + j * kLanes, lower_pairs(low01, low23));
    _mm512_store_ps(to + (j + 1) * kLanes, upper_pairs(low01, low23));
    _mm512_store_ps(to + (j + 2) * kLanes, lower_pairs(high01, high23));
    _mm512_store_ps(to + (j + 3) * kLanes, upper_pairs(high01, high23));
  }
}

AMX_INLINE __mmask16 first_lanes(std::int64_t n) { return static_cast<__mmask16>((1u << n) - 1); }

// The floats from[i * line + j * lane] of some lines and lanes, zero past the edge: in place if the
// layout allows it, else copied to `room`.
AMX_INLINE Half bring(const float* from, std::int64_t line, std::int64_t lane, std::int64_t lines,
                      std::int64_t lanes, float* room) {
  const bool whole = lines == kLines && lanes == kLanes;
  if (whole && lane == 1) return {from, line};
  if (whole && line == 1) {
    turn(from, lane, room);
    return {room, kLanes};
  }
  std::fill_n(room, kLines * kLanes, 0.0f);
  if (lane == 1) {
    for (std::int64_t i = 0; i < lines; ++i)
      _mm512_store_ps(room + i * kLanes,
                      _mm512_maskz_loadu_ps(first_lanes(lanes), from + i * line));
  } else if (line == 1) {
    alignas(64) float transposed[kLanes * kLines];
    for (std::int64_t j = 0; j < kLanes; ++j)
      _mm512_store_ps(transposed + j * kLines,
                      j < lanes ? _mm512_maskz_loadu_ps(first_lanes(lines), from + j * lane)
                                : _mm512_setzero_ps());
    turn(transposed, kLines, room);
  } else {
    for (std::int64_t i = 0; i < lines; ++i)
      for (std::int64_t j = 0; j < lanes; ++j) room[i * kLanes + j] = from[i * line + j * lane];
  }
  return {room, kLanes};
}

// Panels and their blocks of k, in memory order.
struct Grid {
  std::int64_t panels, blocks;
  bool along_k;  // the blocks of a panel are contiguous
  std::int64_t count() const { return panels * blocks; }
  std::pair<std::int64_t, std::int64_t> at(std::int64_t i) const {
    return along_k ? std::pair(i / blocks, i % blocks) : std::pair(i % panels, i / panels);
  }
};

// The remaining lines of `n` from `at` on, at most one tile.
std::int64_t rest(std::int64_t n, std::int64_t at) {
  return std::clamp<std::int64_t>(n - at, 0, kLines);
}

// The instructions as inline assembly: the compilers' intrinsics do not declare that they access
// memory.
template <int Tile>
AMX_INLINE void load(const void* from, std::int64_t row) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(row), "i"(Tile) : "memory");
}
template <int Tile>
AMX_INLINE void store(void* to, std::int64_t row) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(row), "i"(Tile) : "memory");
}
template <int Tile>
AMX_INLINE void zero() {
  asm volatile("tilezero %%tmm%c0" ::"i"(Tile));
}
template <int Sum, int Left, int Right>
AMX_INLINE void add_product() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(Sum), "i"(Left), "i"(Right));
}

// Tile register allocation: five of eight. With hyper-threading, each thread also has only eight
// tile registers for instructions in flight. With three to spare, matmuls take 14 ns instead of 24.
constexpr int kSum0 = 0, kSum1 = 1, kLeft = 2, kRight0 = 3, kRight1 = 4, kTiles = 5;

AMX_INLINE void load_left(const char* piece) { load<kLeft>(piece, 64); }
AMX_INLINE void load_right(const char* piece) {
  load<kRight0>(piece, 64);
  load<kRight1>(piece + kTile, 64);
}
AMX_INLINE void add_both() {
  add_product<kSum0, kLeft, kRight0>();
  add_product<kSum1, kLeft, kRight1>();
}

}  // namespace

bool has_amx() {
  static const bool has = [] {
    unsigned a = 0, b = 0, c = 0, d = 0;
    constexpr unsigned kBf16Bit = 1u << 22, kTileBit = 1u << 24;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & kBf16Bit) == 0 || (d & kTileBit) == 0)
      return false;
    if (!__builtin_cpu_supports("avx512f")) return false;
    constexpr int kAskPermission = 0x1023,
                  kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
    return syscall(SYS_arch_prctl, kAskPermission, kTileData) == 0;
  }();
  return has;
}

AMX AmxSession::AmxSession() {
  struct alignas(64) {
    std::uint8_t palette = 1, start = 0, reserved[14] = {};
    std::uint16_t row_bytes[16] = {};
    std::uint8_t rows[16] = {};
  } config;
  for (int i = 0; i < kTiles; ++i) config.row_bytes[i] = 64, config.rows[i] = kLines;
  asm volatile("ldtilecfg %0" ::"m"(config) : "memory");
}

AMX AmxSession::~AmxSession() { asm volatile("tilerelease" ::: "memory"); }

AMX void amx_split_left(const float* from, std::int64_t row, std::int64_t depth_stride,
                        std::int64_t rows, std::int64_t depth, float* to) {
  alignas(64) float room[2][kLines * kLanes];
  char* const out = reinterpret_cast<char*>(to);
  const Grid grid{ceil_div(rows, kAmxRows), ceil_div(depth, kAmxDepth), depth_stride == 1};
  for (std::int64_t i = 0; i < grid.count(); ++i) {
    const auto [panel, block] = grid.at(i);
    const std::int64_t r = panel * kAmxRows, k = block * kAmxDepth, lines = rest(rows, r);
    const float* const at = from + r * row + k * depth_stride;
    split_tile(bring(at, row, depth_stride, lines, rest(depth, k), room[0]),
               bring(at + kLanes * depth_stride, row, depth_stride, lines, rest(depth, k + kLanes),
                     room[1]),
               kTile, out + (panel * grid.blocks + block) * kLeftStep);
  }
}

AMX void amx_split_right(const float* from, std::int64_t depth_stride, std::int64_t column,
                         std::int64_t depth, std::int64_t columns, float* to, double* sums) {
  alignas(64) float room[2][kLines * kLanes];
  char* const out = reinterpret_cast<char*>(to);
  const Grid grid{ceil_div(columns, kAmxColumns), ceil_div(depth, kAmxDepth), depth_stride == 1};
  if (sums) std::fill_n(sums, grid.panels * kAmxColumns, 0.0);
  for (std::int64_t i = 0; i < grid.count(); ++i) {
    const auto [panel, block] = grid.at(i);
    for (std::int64_t t = 0; t < 2; ++t) {
      const std::int64_t k = block * kAmxDepth, first = panel * kAmxColumns + t * kLanes,
                         lanes = rest(columns, first);
      const float* const at = from + k * depth_stride + first * column;
      const __m512 sum =
          split_tile(bring(at, depth_stride, column, rest(depth, k), lanes, room[0]),
                     bring(at + kLines * depth_stride, depth_stride, column,
                           rest(depth, k + kLines), lanes, room[1]),
                     2 * kTile, out + (panel * grid.blocks + block) * kRightStep + t * kTile);
      if (sums) add_in_double(sum, sums + first);
    }
  }
}

AMX void amx_product(const float* left, const float* right, std::int64_t depth, const float* before,
                     std::int64_t before_stride, float* c, std::int64_t stride) {
  constexpr std::int64_t kFloat = sizeof(float);
  if (before) {
    load<kSum0>(before, before_stride * kFloat);
    load<kSum1>(before + kLanes, before_stride * kFloat);
  } else {
    zero<kSum0>();
    zero<kSum1>();
  }
  const char *a = reinterpret_cast<const char*>(left), *b = reinterpret_cast<const char*>(right);
  for (std::int64_t k = 0; k < depth; k += kAmxDepth, a += kLeftStep, b += kRightStep) {
    const char *a_high = a, *a_middle = a + kTile, *a_low = a + 2 * kTile;
    const char *b_high = b, *b_middle = b + 2 * kTile, *b_low = b + 4 * kTile;
    load_left(a_high), load_right(b_low), add_both();
    load_right(b_middle), add_both();
    load_left(a_middle), add_both();
    load_right(b_high), add_both();
    load_left(a_low), add_both();
    load_left(a_high), add_both();
  }
  store<kSum0>(c, stride * kFloat);
  store<kSum1>(c + kLanes, stride * kFloat);
}

AMX bool amx_is_finite(const float* c, std::int64_t stride, std::int64_t rows,
                       std::int64_t columns) {
  // The sum stays zero until a non-finite value is multiplied by zero.
  const __m512 zero = _mm512_setzero_ps();
  __m512 even = zero, odd = zero;
  for (std::int64_t i = 0; i < rows; ++i, c += stride) {
    std::int64_t j = 0;
    for (; j + 2 * kLanes <= columns; j += 2 * kLanes) {
      even = _mm512_fmadd_ps(_mm512_loadu_ps(c + j), zero, even);
      odd = _mm512_fmadd_ps(_mm512_loadu_ps(c + j + kLanes), zero, odd);
    }
    for (; j < columns; j += kLanes)
      even = _mm512_fmadd_ps(
          _mm512_maskz_loadu_ps(first_lanes(std::min(kLanes, columns - j)), c + j), zero, even);
  }
  return _mm512_cmp_ps_mask(even, odd, _CMP_UNORD_Q) == 0;
}

}  // namespace tensorgrad::cpu

#else

#include <cstdlib>

namespace tensorgrad::cpu {

bool has_amx() { return false; }

AmxSession::AmxSession() = default;
AmxSession::~AmxSession() = default;
void amx_split_left(const float*, std::int64_t, std::int64_t, std::int64_t, std::int64_t, float*) {
  std::abort();
}
void amx_split_right(const float*, std::int64_t, std::int64_t, std::int64_t, std::int64_t, float*,
                     double*) {
  std::abort();
}
void amx_product(const float*, const float*, std::int64_t, const float*, std::int64_t, float*,
                 std::int64_t) {
  std::abort();
}
bool amx_is_finite(const float*, std::int64_t, std::int64_t, std::int64_t) { std::abort(); }

}  // namespace tensorgrad::cpu

#endif
