// Safetensors files: named arrays and some texts in one file. The reader is strict, because a file
// may come from anywhere: it checks every rule of the format before it reads values. Not supported:
// lazy reading (all tensors are read, directly into their arrays), and writing types other than
// F32, I32 and BOOL.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "tensorgrad/array.h"

namespace tensorgrad {

// The contents of a safetensors file.
struct TensorFile {
  NamedArrays tensors;
  std::map<std::string, std::string> metadata;
  std::map<std::string, std::string> stored =
      {};  // set by the reader: the type of each tensor in the file, e.g. "BF16"
};

// Reads a safetensors file. F16, BF16 and F64 become f32; integers become i32; BOOL becomes bool.
// Throws if a value does not fit. All errors are UserErrors that read "FILE: what is wrong".
TensorFile read_safetensors(const std::filesystem::path& path);
// The same from memory. `name` replaces the file name in errors.
TensorFile parse_safetensors(std::string_view bytes, std::string_view name);

// Writes a safetensors file. The file appears under its name only when it is complete. The same
// arrays give the same bytes: f32 and i32 sorted by name, then bool, so that all values are aligned
// to their size.
void write_safetensors(const std::filesystem::path& path, const TensorFile& file);
// Returns the bytes of the file. `name` replaces the file name in errors.
std::string format_safetensors(const TensorFile& file, std::string_view name);

}  // namespace tensorgrad
