// Safetensors files written by hand, byte by byte.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

namespace tensorgrad {

inline std::string little_endian(std::uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
  return out;
}

inline std::string file_of(const std::string& header, const std::string& data = "") {
  return little_endian(header.size(), 8) + header + data;
}

// The header of one tensor called x.
inline std::string entry(const std::string& dtype, const std::string& shape,
                         const std::string& offsets) {
  return fmt::format(R"({{"x":{{"dtype":"{}","shape":{},"data_offsets":{}}}}})", dtype, shape,
                     offsets);
}

// One tensor x of `count` elements.
inline std::string file_of_type(const std::string& dtype, std::size_t count,
                                const std::string& data) {
  return file_of(entry(dtype, fmt::format("[{}]", count), fmt::format("[0,{}]", data.size())),
                 data);
}

}  // namespace tensorgrad
