// Properties of any bytes that are read as a safetensors file. Mutations rarely keep the length of
// the header valid, so the bytes are also tried with a header that ends at the last '}'.
#pragma once

#include <string>
#include <string_view>

#include "tensorgrad/error.h"
#include "tensorgrad/safetensors.h"
#include "tests/io/same.h"

namespace tensorgrad::fuzzers {

// An error names the file and is printable.
inline std::string check_error(std::string_view text) {
  if (text.substr(0, 6) != "input:") return "an error without its file: " + std::string(text);
  if (text.size() > 1000) return "an error that is too long";
  for (const unsigned char c : text)
    if (c < ' ' && c != '\n') return "an error with control characters";
  return "";
}

inline std::string with_right_length(std::string_view bytes) {
  std::string out(bytes);
  const std::size_t end = bytes.rfind('}');
  if (end == bytes.npos || end < 8) return out;
  for (std::size_t i = 0; i < 8; ++i) out[i] = static_cast<char>((end + 1 - 8) >> (8 * i) & 0xff);
  return out;
}

// Either refused, or read and written again without loss.
inline std::string check_safetensors_as_it_is(std::string_view bytes) {
  TensorFile file;
  try {
    file = parse_safetensors(bytes, "input");
  } catch (const UserError& error) {
    return check_error(error.what());
  }
  const std::string written = format_safetensors(file, "input");
  const TensorFile again = parse_safetensors(written, "input");
  if (!same(again, file)) return "what was written is not what was read";
  if (format_safetensors(again, "input") != written) return "written again, the bytes differ";
  return "";
}

// The failure; empty if there is none.
inline std::string check_safetensors(std::string_view bytes) {
  const std::string wrong = check_safetensors_as_it_is(bytes);
  return wrong.empty() ? check_safetensors_as_it_is(with_right_length(bytes)) : wrong;
}

}  // namespace tensorgrad::fuzzers
