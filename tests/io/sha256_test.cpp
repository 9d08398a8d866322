// Blocks of SHA-256: plain C++, and the processor's instructions where it has them.
#include "support/sha256_blocks.h"

#include <gtest/gtest.h>

#include <array>
#include <span>
#include <vector>

namespace tensorgrad::sha256 {
namespace {

using State = std::array<std::uint32_t, 8>;

State after(Blocks blocks, std::span<const std::uint8_t> bytes) {
  State state{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
              0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  blocks(state.data(), bytes.data(), bytes.size() / 64);
  return state;
}

// FIPS 180-2, appendix B.1: "abc" with its padding is one block.
TEST(Sha256Blocks, KnownBlock) {
  std::vector<std::uint8_t> abc(64);
  abc[0] = 'a', abc[1] = 'b', abc[2] = 'c', abc[3] = 0x80, abc[63] = 24;
  const State digest{0xba7816bf, 0x8f01cfea, 0x414140de, 0x5dae2223,
                     0xb00361a3, 0x96177a9c, 0xb410ff61, 0xf20015ad};
  EXPECT_EQ(after(plain_blocks, abc), digest);
  if (const Blocks blocks = processor_blocks()) {
    EXPECT_EQ(after(blocks, abc), digest);
  }
}

TEST(Sha256Blocks, TheProcessorAgreesWithPlainCode) {
  const Blocks blocks = processor_blocks();
  if (!blocks) GTEST_SKIP() << "the processor has no SHA instructions";
  std::vector<std::uint8_t> bytes(64 * 9 + 1);
  std::uint32_t x = 17;
  for (std::uint8_t& byte : bytes) x = x * 1664525 + 1013904223, byte = x >> 24;
  for (std::size_t count = 0; count <= 9; ++count) {
    const std::span<const std::uint8_t> some(bytes.data() + 1, 64 * count);  // an odd address
    EXPECT_EQ(after(blocks, some), after(plain_blocks, some)) << count;
  }
}

}  // namespace
}  // namespace tensorgrad::sha256
