#!/usr/bin/env python3
"""Writes src/io/unicode_tables.h: which characters are letters, numbers and white space, as ranges.

    python3 tools/unicode_tables.py        # from the version of Unicode that this Python knows

Letters are the categories L*, numbers N*. White space is Unicode's property of that name, which is what `\\s` means in
the regular expressions of byte-level BPE: separators (Z*), tab to carriage return, and U+0085; not U+001C to U+001F.
"""
import pathlib
import unicodedata

TARGET = pathlib.Path(__file__).parent.parent / "src/io/unicode_tables.h"


def kind(code):
    category = unicodedata.category(chr(code))
    if category[0] == "L":
        return "kLetter"
    if category[0] == "N":
        return "kNumber"
    if category[0] == "Z" or 9 <= code <= 13 or code == 0x85:
        return "kSpace"
    return None


def ranges():
    found = []
    for code in range(0x110000):
        name = kind(code)
        if name is None:
            continue
        if found and found[-1][2] == name and found[-1][1] == code - 1:
            found[-1][1] = code
        else:
            found.append([code, code, name])
    return found


def main():
    entries = [f"{{{first:#x}, {last:#x}, {name}}}," for first, last, name in ranges()]
    lines, line = [], ""
    for entry in entries:
        if line and len(line) + 1 + len(entry) > 96:
            lines.append(line)
            line = ""
        line += (" " if line else "") + entry
    lines.append(line)
    TARGET.write_text(f"""\
// Letters, numbers and white space of Unicode {unicodedata.unidata_version}, in order; all other characters are none
// of these. Written by tools/unicode_tables.py.
#pragma once

#include "io/unicode.h"

namespace tensorgrad::io {{

struct CharacterRange {{
  char32_t first, last;
  CharacterKind kind;
}};

// clang-format off
inline constexpr CharacterRange kCharacterRanges[] = {{
""" + "".join(f"  {line}\n" for line in lines) + """\
};
// clang-format on

}  // namespace tensorgrad::io
""")


if __name__ == "__main__":
    main()
