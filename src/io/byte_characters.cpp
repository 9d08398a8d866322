#include "io/byte_characters.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>

#include "support/integers.h"
#include "support/utf8.h"

namespace tensorgrad::io {
namespace {

constexpr int kCodes = 0x144;  // the last character is U+0143

struct Tables {
  std::array<char32_t, 256> character;
  std::array<std::int16_t, kCodes> byte;  // -1: none
};

Tables make_tables() {
  Tables tables;
  tables.byte.fill(-1);
  char32_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const bool itself = (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) ||
                        (byte >= 0xae && byte <= 0xff);
    const char32_t code = itself ? static_cast<char32_t>(byte) : next++;
    tables.character[usize(byte)] = code;
    tables.byte[code] = static_cast<std::int16_t>(byte);
  }
  return tables;
}

const Tables& tables() {
  static const Tables made = make_tables();
  return made;
}

bool stands_for_byte(const Character& character) {
  return character.valid && character.code < kCodes && tables().byte[character.code] >= 0;
}

}  // namespace

std::string printable(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes)
    append_utf8(text, tables().character[static_cast<unsigned char>(byte)]);
  return text;
}

std::optional<std::string> bytes_of(std::string_view printable) {
  std::string bytes;
  for (std::size_t at = 0; at < printable.size();) {
    const Character character = character_at(printable, at);
    if (!stands_for_byte(character)) return std::nullopt;
    bytes += static_cast<char>(tables().byte[character.code]);
    at += character.bytes;
  }
  return bytes;
}

std::string first_without_byte(std::string_view printable) {
  for (std::size_t at = 0; at < printable.size();) {
    const Character character = character_at(printable, at);
    if (!character.valid) return fmt::format("{:#04x}", static_cast<unsigned char>(printable[at]));
    if (!stands_for_byte(character))
      return fmt::format("U+{:04X}", static_cast<std::uint32_t>(character.code));
    at += character.bytes;
  }
  return "";
}

}  // namespace tensorgrad::io
