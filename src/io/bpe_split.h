// GPT-2's pre-tokenizer: cuts a text at special tokens first, then into words by
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// A byte that is not UTF-8 counts as neither letter, number nor space. A text may arrive in pieces;
// then only parts that no continuation can change are cut off.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tensorgrad::io {

class SpecialTokens {
 public:
  SpecialTokens() = default;
  // Throws a UserError if a text is empty or given twice.
  explicit SpecialTokens(std::vector<std::string> texts);

  const std::vector<std::string>& texts() const { return texts_; }

  struct Place {
    std::size_t at;
    std::int32_t index;  // in texts(); -1: none
  };
  // Finds the first special token at or after `from`; of several that begin there, the longest. If
  // there is none, `at` is the end of the text and `index` is -1. Without `last`, `at` may also be
  // the place where the text may end inside a special token; `index` is -1 then, too.
  Place find(std::string_view text, std::size_t from, bool last) const;

 private:
  std::vector<std::string> texts_;
  std::array<std::vector<std::int32_t>, 256> by_first_byte_;  // the longest first
};

// Length of the word at the beginning of a non-empty text; 0: it depends on the text that follows.
std::size_t word_length(std::string_view text, bool last);

// Iterates over words and special tokens.
class Splitter {
 public:
  Splitter(std::string_view text, bool last, const SpecialTokens& special);

  struct Part {
    std::string_view text;
    std::int32_t special;  // index of the special token; -1: a word
  };
  // Returns nothing if the rest is empty or depends on the text that follows.
  std::optional<Part> next();
  // Total bytes of the parts so far.
  std::size_t consumed() const { return at_; }

 private:
  std::string_view text_;
  bool last_;
  const SpecialTokens& special_;
  std::size_t at_ = 0;
  SpecialTokens::Place stop_;  // the next special token, where the words end
};

}  // namespace tensorgrad::io
