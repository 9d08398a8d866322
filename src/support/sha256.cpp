#include "support/sha256.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "support/sha256_blocks.h"

namespace tensorgrad {

namespace sha256 {

constexpr std::uint32_t kRound[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

namespace {

inline std::uint32_t rotate(std::uint32_t x, int n) { return (x >> n) | (x << (32 - n)); }

inline void round(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t& d,
                  std::uint32_t e, std::uint32_t f, std::uint32_t g, std::uint32_t& h,
                  std::uint32_t word) {
  h += (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + (g ^ (e & (f ^ g))) + word;
  d += h;
  h += (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) | (c & (a | b)));
}

// w[t] from w[t - 16], w[t - 15], w[t - 7] and w[t - 2].
void next_word(std::uint32_t& word, std::uint32_t early, std::uint32_t middle, std::uint32_t late) {
  word += (rotate(early, 7) ^ rotate(early, 18) ^ (early >> 3)) + middle +
          (rotate(late, 17) ^ rotate(late, 19) ^ (late >> 10));
}

template <std::size_t... I>
void next_words(std::uint32_t* w, std::index_sequence<I...>) {
  (next_word(w[I], w[(I + 1) % 16], w[(I + 9) % 16], w[(I + 14) % 16]), ...);
}

// The 64 rounds, 16 per iteration. Instead of shifting the eight variables, each call passes them
// rotated by one place. Only the last 16 words of the message schedule are kept, at constant
// indices, so that all of it stays in registers.
void block(std::uint32_t* state, const std::uint8_t* bytes) {
  std::uint32_t w[16];
  for (int i = 0; i < 16; ++i)
    w[i] = static_cast<std::uint32_t>(bytes[4 * i]) << 24 |
           static_cast<std::uint32_t>(bytes[4 * i + 1]) << 16 |
           static_cast<std::uint32_t>(bytes[4 * i + 2]) << 8 | bytes[4 * i + 3];
  std::uint32_t a = state[0], b = state[1], c = state[2], d = state[3], e = state[4], f = state[5],
                g = state[6], h = state[7];
  for (const std::uint32_t* k = kRound;; k += 16) {
    round(a, b, c, d, e, f, g, h, k[0] + w[0]);
    round(h, a, b, c, d, e, f, g, k[1] + w[1]);
    round(g, h, a, b, c, d, e, f, k[2] + w[2]);
    round(f, g, h, a, b, c, d, e, k[3] + w[3]);
    round(e, f, g, h, a, b, c, d, k[4] + w[4]);
    round(d, e, f, g, h, a, b, c, k[5] + w[5]);
    round(c, d, e, f, g, h, a, b, k[6] + w[6]);
    round(b, c, d, e, f, g, h, a, k[7] + w[7]);
    round(a, b, c, d, e, f, g, h, k[8] + w[8]);
    round(h, a, b, c, d, e, f, g, k[9] + w[9]);
    round(g, h, a, b, c, d, e, f, k[10] + w[10]);
    round(f, g, h, a, b, c, d, e, k[11] + w[11]);
    round(e, f, g, h, a, b, c, d, k[12] + w[12]);
    round(d, e, f, g, h, a, b, c, k[13] + w[13]);
    round(c, d, e, f, g, h, a, b, k[14] + w[14]);
    round(b, c, d, e, f, g, h, a, k[15] + w[15]);
    if (k == kRound + 48) break;
    next_words(w, std::make_index_sequence<16>());
  }
  const std::uint32_t add[8] = {a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < 8; ++i) state[i] += add[i];
}

}  // namespace

void plain_blocks(std::uint32_t* state, const std::uint8_t* bytes, std::size_t count) {
  for (; count > 0; --count, bytes += 64) block(state, bytes);
}

}  // namespace sha256

void Sha256::blocks(const std::uint8_t* bytes, std::size_t count) {
  static const sha256::Blocks add =
      sha256::processor_blocks() ? sha256::processor_blocks() : sha256::plain_blocks;
  add(state_.data(), bytes, count);
}

void Sha256::update(std::span<const std::byte> bytes) {
  length_ += bytes.size();
  const auto* at = reinterpret_cast<const std::uint8_t*>(bytes.data());
  std::size_t left = bytes.size();
  if (filled_ > 0) {
    const std::size_t count = std::min(left, pending_.size() - filled_);
    std::copy_n(at, count, pending_.begin() + static_cast<std::ptrdiff_t>(filled_));
    at += count, left -= count, filled_ += count;
    if (filled_ < pending_.size()) return;
    blocks(pending_.data(), 1), filled_ = 0;
  }
  const std::size_t whole = left / pending_.size();
  blocks(at, whole);
  at += whole * pending_.size(), left -= whole * pending_.size();
  std::copy_n(at, left, pending_.begin()), filled_ = left;
}

std::string Sha256::finish() {
  const std::uint64_t bits = length_ * 8;
  pending_[filled_++] = 0x80;
  if (filled_ > 56) {
    std::fill(pending_.begin() + static_cast<std::ptrdiff_t>(filled_), pending_.end(),
              std::uint8_t{0});
    blocks(pending_.data(), 1);
    filled_ = 0;
  }
  std::fill(pending_.begin() + static_cast<std::ptrdiff_t>(filled_), pending_.end(),
            std::uint8_t{0});
  for (std::size_t i = 0; i < 8; ++i) pending_[63 - i] = static_cast<std::uint8_t>(bits >> (8 * i));
  blocks(pending_.data(), 1);
  std::string out;
  for (const std::uint32_t word : state_) out += fmt::format("{:08x}", word);
  return out;
}

}  // namespace tensorgrad
