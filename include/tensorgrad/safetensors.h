// Safetensors files: named arrays and a few strings in one file. The reader is strict, because a
// file may come from anywhere: every rule of the format is checked before a number is read.
// Left out: lazy reading (the whole file is held once), writing anything but F32, I32 and BOOL.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "tensorgrad/array.h"

namespace tensorgrad {

struct TensorFile {
  NamedArrays tensors;
  std::map<std::string, std::string> metadata;
  std::map<std::string, std::string> stored = {};  // by the reader: each tensor's type in the file, "BF16"
};

// F16, BF16 and F64 become f32; integers become i32; BOOL becomes bool. A number that does not fit
// is an error. All errors are UserErrors that read "FILE: what is wrong".
TensorFile read_safetensors(const std::filesystem::path& path);
// The same from memory; `name` stands for the file in errors.
TensorFile parse_safetensors(std::string_view bytes, std::string_view name);

// The same arrays give the same bytes: f32 and i32 sorted by name, then bool, so that everything is
// aligned to its size. The file appears under its name only when it is complete.
void write_safetensors(const std::filesystem::path& path, const TensorFile& file);
std::string format_safetensors(const TensorFile& file, std::string_view name);

}  // namespace tensorgrad
