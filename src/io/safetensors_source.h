// Reads safetensors from any source. First the header, which is checked against the size of the
// source before memory is reserved; then the tensors in file order, each directly into its array.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "io/byte_source.h"
#include "tensorgrad/safetensors.h"

namespace tensorgrad::io {

struct TensorReading {
  // Selects the tensors to read; the others are checked, but not returned. Empty: all.
  std::function<bool(const std::string& name)> wanted = {};
  // Receives all bytes of the source in order, including those of unselected tensors.
  std::function<void(std::span<const char>)> seen = {};
};

// Errors do not name the source.
TensorFile read_tensors(const ByteSource& source, const TensorReading& how = {});

}  // namespace tensorgrad::io
