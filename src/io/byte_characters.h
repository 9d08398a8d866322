// How files of byte-level BPE write bytes: each as one printable character. Printable bytes of
// Latin-1 stand for themselves, the others are U+0100, U+0101, ... in their order.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tensorgrad::io {

// The characters for some bytes, in UTF-8.
std::string printable(std::string_view bytes);

// The bytes that some characters stand for; none when one of them stands for no byte.
std::optional<std::string> bytes_of(std::string_view printable);

// "U+0020": the first character of a text that stands for no byte; "0xff" where it is not UTF-8.
std::string first_without_byte(std::string_view printable);

}  // namespace tensorgrad::io
