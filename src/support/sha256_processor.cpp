// SHA-256 with the SHA extensions of x86. Four rounds at a time. The instructions need the state in
// two registers, ABEF and CDGH. Other processors use plain C++ (sha256.cpp).
#include "support/sha256_blocks.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>

namespace tensorgrad::sha256 {

namespace {

#define TENSORGRAD_SHA __attribute__((target("sha,sse4.1,ssse3")))

// Four rounds, with the words and constants already added.
TENSORGRAD_SHA inline void four_rounds(__m128i& abef, __m128i& cdgh, __m128i words) {
  cdgh = _mm_sha256rnds2_epu32(cdgh, abef, words);
  abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(words, 0x0e));
}

// w[t .. t+3] from the 16 words before, four in each operand.
TENSORGRAD_SHA inline __m128i next_words(__m128i a, __m128i b, __m128i c, __m128i d) {
  const __m128i sum = _mm_add_epi32(_mm_sha256msg1_epu32(a, b), _mm_alignr_epi8(d, c, 4));
  return _mm_sha256msg2_epu32(sum, d);
}

TENSORGRAD_SHA void blocks(std::uint32_t* state, const std::uint8_t* bytes, std::size_t count) {
  const auto load = [](const void* at)
                        TENSORGRAD_SHA { return _mm_loadu_si128(static_cast<const __m128i*>(at)); };
  const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  const __m128i cdab = _mm_shuffle_epi32(load(state), 0xb1);
  const __m128i efgh = _mm_shuffle_epi32(load(state + 4), 0x1b);
  __m128i abef = _mm_alignr_epi8(cdab, efgh, 8);
  __m128i cdgh = _mm_blend_epi16(efgh, cdab, 0xf0);
  for (; count > 0; --count, bytes += 64) {
    const __m128i abef_before = abef, cdgh_before = cdgh;
    __m128i w[4];
    for (int i = 0; i < 4; ++i) w[i] = _mm_shuffle_epi8(load(bytes + 16 * i), big_endian);
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
      four_rounds(abef, cdgh, _mm_add_epi32(w[i % 4], load(kRound + 4 * i)));
      if (i < 12) w[i % 4] = next_words(w[i % 4], w[(i + 1) % 4], w[(i + 2) % 4], w[(i + 3) % 4]);
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }
  const __m128i feba = _mm_shuffle_epi32(abef, 0x1b), dchg = _mm_shuffle_epi32(cdgh, 0xb1);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(state), _mm_blend_epi16(feba, dchg, 0xf0));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(state + 4), _mm_alignr_epi8(dchg, feba, 8));
}

bool has_instructions() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_SSE4_1) || !(c & bit_SSSE3)) return false;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & (1u << 29));
}

}  // namespace

Blocks processor_blocks() {
  static const bool there = has_instructions();
  return there ? blocks : nullptr;
}

}  // namespace tensorgrad::sha256

#else

tensorgrad::sha256::Blocks tensorgrad::sha256::processor_blocks() { return nullptr; }

#endif
