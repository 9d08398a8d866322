// How GPT-2 cuts a text before byte pairs are merged: special tokens first, then words by
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// A byte that is not UTF-8 counts as neither letter, number nor space. A text may come in pieces;
// then only what no continuation can change is cut off.
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
  // Raises a UserError when one is empty or given twice.
  explicit SpecialTokens(std::vector<std::string> texts);

  const std::vector<std::string>& texts() const { return texts_; }

  struct Place {
    std::size_t at;
    std::int32_t index;  // of texts(); -1: none
  };
  // The first special token from `from` on, the longest of those that begin there. Without `last`,
  // the place may also be one where the text ends too early to know; its index is -1. The end of
  // the text when there is none.
  Place find(std::string_view text, std::size_t from, bool last) const;

 private:
  std::vector<std::string> texts_;
  std::array<std::vector<std::int32_t>, 256> by_first_byte_;  // the longest first
};

// How long the word is that begins a text that is not empty; 0: it depends on what follows.
std::size_t word_length(std::string_view text, bool last);

// Walks over words and special tokens.
class Splitter {
 public:
  Splitter(std::string_view text, bool last, const SpecialTokens& special);

  struct Part {
    std::string_view text;
    std::int32_t special;  // its index; -1: a word
  };
  // None: the rest, if there is any, depends on what follows.
  std::optional<Part> next();
  // How many bytes the parts so far have.
  std::size_t consumed() const { return at_; }

 private:
  std::string_view text_;
  bool last_;
  const SpecialTokens& special_;
  std::size_t at_ = 0;
  SpecialTokens::Place stop_;  // where the words end
};

}  // namespace tensorgrad::io
