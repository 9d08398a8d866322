// How files of byte-level BPE write bytes: one printable character per byte. Printable bytes of
// Latin-1 map to themselves, the others to U+0100, U+0101, ... in order.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tensorgrad::io {

// Encodes bytes as printable characters, in UTF-8.
std::string printable(std::string_view bytes);

// Decodes printable characters to bytes; nothing if a character encodes no byte.
std::optional<std::string> bytes_of(std::string_view printable);

// "U+0020": the first character of a text that encodes no byte; "0xff" if it is not UTF-8.
std::string first_without_byte(std::string_view printable);

}  // namespace tensorgrad::io
