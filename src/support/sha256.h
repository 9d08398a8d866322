// SHA-256 (FIPS 180-4). Identifies the exact bytes of parameters.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace tensorgrad {

class Sha256 {
 public:
  void update(std::span<const std::byte> bytes);
  // Returns the digest in lower-case hexadecimal. Nothing may be added afterwards.
  std::string finish();

 private:
  void blocks(const std::uint8_t* bytes, std::size_t count);

  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::uint8_t, 64> pending_{};
  std::size_t filled_ = 0;
  std::uint64_t length_ = 0;
};

}  // namespace tensorgrad
