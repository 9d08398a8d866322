#include "support/utf8.h"

namespace tensorgrad {
namespace {

// A decoded first byte: number of bytes that follow, its bits of the code, and the least valid
// code.
struct Lead {
  std::size_t more;
  char32_t bits, least;
};

bool read_lead(unsigned char byte, Lead& lead) {
  if (byte >= 0xc2 && byte <= 0xdf) return lead = {1, byte & 0x1fu, 0x80}, true;
  if (byte >= 0xe0 && byte <= 0xef) return lead = {2, byte & 0x0fu, 0x800}, true;
  if (byte >= 0xf0 && byte <= 0xf4) return lead = {3, byte & 0x07u, 0x10000}, true;
  return false;
}

// Whether a valid character can begin with these bits, for some value of the missing bytes.
bool may_be_valid(char32_t code, std::size_t missing_bytes, char32_t least) {
  const char32_t low = code << (6 * missing_bytes);
  const char32_t high = low | ((char32_t{1} << (6 * missing_bytes)) - 1);
  const bool only_surrogates = low >= 0xd800 && high <= 0xdfff;
  return high >= least && low <= 0x10ffff && !only_surrogates;
}

}  // namespace

Character character_at(std::string_view text, std::size_t at) {
  const auto first = static_cast<unsigned char>(text[at]);
  if (first < 0x80) return {.code = first, .valid = true};
  Lead lead;
  if (!read_lead(first, lead)) return {};
  char32_t code = lead.bits;
  for (std::size_t i = 1; i <= lead.more; ++i) {
    if (at + i == text.size()) return {.incomplete = true};
    const auto byte = static_cast<unsigned char>(text[at + i]);
    if ((byte & 0xc0) != 0x80) return {};
    code = code << 6 | (byte & 0x3fu);
    if (!may_be_valid(code, lead.more - i, lead.least)) return {};
  }
  return {.code = code, .bytes = lead.more + 1, .valid = true};
}

bool is_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const Character character = character_at(text, at);
    if (!character.valid) return false;
    at += character.bytes;
  }
  return true;
}

std::string cut(std::string text) {
  constexpr std::size_t kMost = 60;
  if (text.size() <= kMost) return text;
  std::size_t end = kMost;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.replace(end, text.npos, "...");
}

void append_utf8(std::string& text, char32_t code) {
  const auto tail = [&](int shift) { text += static_cast<char>(0x80 | (code >> shift & 0x3f)); };
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += static_cast<char>(0xc0 | code >> 6);
    tail(0);
  } else if (code < 0x10000) {
    text += static_cast<char>(0xe0 | code >> 12);
    tail(6), tail(0);
  } else {
    text += static_cast<char>(0xf0 | code >> 18);
    tail(12), tail(6), tail(0);
  }
}

}  // namespace tensorgrad
