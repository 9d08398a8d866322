// The inner loop of SHA-256: hashes whole blocks of 64 bytes into the state. Two implementations:
// plain C++, and the processor's SHA instructions where available (about 5 times as fast).
#pragma once

#include <cstddef>
#include <cstdint>

namespace tensorgrad::sha256 {

// Hashes `count` blocks into the state of eight words.
using Blocks = void (*)(std::uint32_t* state, const std::uint8_t* bytes, std::size_t count);

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
extern const std::uint32_t kRound[64];

void plain_blocks(std::uint32_t* state, const std::uint8_t* bytes, std::size_t count);

// The implementation with the processor's SHA instructions; null if it has none.
Blocks processor_blocks();

}  // namespace tensorgrad::sha256
