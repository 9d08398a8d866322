#include "io/unicode.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "io/unicode_tables.h"

namespace tensorgrad::io {
namespace {

CharacterKind searched_kind(char32_t code) {
  const auto range = std::lower_bound(
      std::begin(kCharacterRanges), std::end(kCharacterRanges), code,
      [](const CharacterRange& entry, char32_t wanted) { return entry.last < wanted; });
  return range != std::end(kCharacterRanges) && range->first <= code ? range->kind : kOther;
}

constexpr char32_t kTableSize = 0x800;  // codes that UTF-8 encodes in one or two bytes

std::array<CharacterKind, kTableSize> make_table() {
  std::array<CharacterKind, kTableSize> table;
  for (char32_t code = 0; code < kTableSize; ++code) table[code] = searched_kind(code);
  return table;
}

}  // namespace

CharacterKind kind_of(char32_t code) {
  static const std::array<CharacterKind, kTableSize> table = make_table();
  return code < kTableSize ? table[code] : searched_kind(code);
}

}  // namespace tensorgrad::io
