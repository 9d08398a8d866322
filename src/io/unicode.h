// Classifies characters.
#pragma once

#include <cstdint>

namespace tensorgrad::io {

// The kinds that byte-level BPE distinguishes. An unscoped enum, because the table has 800 rows.
enum CharacterKind : std::uint8_t { kLetter, kNumber, kSpace, kOther };

CharacterKind kind_of(char32_t code);

}  // namespace tensorgrad::io
