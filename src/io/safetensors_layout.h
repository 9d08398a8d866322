// Writes safetensors files without copying the tensors: makes the header first, then yields the
// bytes of the file piece by piece, to be hashed or written. Layout of a file: 8 bytes
// little-endian length of the header, the header (a JSON object, padded with spaces), then the
// elements of all tensors without gaps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tensorgrad/array.h"

namespace tensorgrad::io {

inline constexpr std::size_t kLengthBytes = 8;
inline constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;
inline constexpr const char* kMetadata = "__metadata__";

using Strings = std::vector<std::pair<std::string, std::string>>;
using TensorList = std::vector<std::pair<std::string, const Array*>>;
using Sink = std::function<void(std::span<const std::byte>)>;

// A file to be written. The arrays must outlive it.
struct SafetensorsLayout {
  std::string front;  // length and header
  std::vector<const Array*> arrays;
  std::size_t data_bytes = 0;

  // Calls `sink` with all bytes of the file, in order.
  void pieces(const Sink& sink) const;
  std::string bytes() const;
  void write(const std::filesystem::path& path) const;
};

// Keeps the order of strings and tensors, except that f32 and i32 come before bool, so that every
// tensor is aligned to its element size.
SafetensorsLayout lay_out(const Strings& metadata, const TensorList& tensors);

}  // namespace tensorgrad::io
