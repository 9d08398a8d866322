#include "io/bpe_split.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "io/byte_characters.h"
#include "io/unicode.h"
#include "support/fail.h"
#include "support/integers.h"
#include "support/json.h"
#include "support/utf8.h"

namespace tensorgrad::io {
namespace {

// What is at a position of a text: a character of some kind, the end, or nothing known yet.
struct Seen {
  enum What { character, end, unknown } what = character;
  CharacterKind kind = kOther;
  std::size_t bytes = 0;

  bool is(CharacterKind wanted) const { return what == character && kind == wanted; }
};

class Reader {
 public:
  Reader(std::string_view text, bool last) : text_(text), last_(last) {}

  Seen at(std::size_t place) const {
    if (place == text_.size()) return {last_ ? Seen::end : Seen::unknown};
    const Character character = character_at(text_, place);
    if (character.incomplete && !last_) return {Seen::unknown};
    return {Seen::character, character.valid ? kind_of(character.code) : kOther, character.bytes};
  }

  // Returns the end of the run of this kind that begins at `from`; `behind` is what follows the
  // run.
  std::size_t run_end(std::size_t from, CharacterKind kind, Seen& behind) const {
    for (behind = at(from); behind.is(kind); behind = at(from)) from += behind.bytes;
    return from;
  }

 private:
  std::string_view text_;
  bool last_;
};

constexpr std::string_view kEndings[] = {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"};

// Length of the white space at the beginning of the text. If a word follows, the last space is left
// out: it begins the word, or is a part of its own.
std::size_t space_length(const Reader& reader) {
  std::size_t end = 0, last_begin = 0;
  Seen seen = reader.at(0);
  for (; seen.is(kSpace); seen = reader.at(end)) {
    last_begin = end;
    end += seen.bytes;
  }
  if (seen.what == Seen::unknown) return 0;
  return seen.what == Seen::end || last_begin == 0 ? end : last_begin;
}

}  // namespace

SpecialTokens::SpecialTokens(std::vector<std::string> texts) : texts_(std::move(texts)) {
  std::unordered_set<std::string_view> known;
  for (std::size_t i = 0; i < texts_.size(); ++i) {
    const std::string& text = texts_[i];
    if (text.empty()) user_error("a special token is empty");
    if (!known.insert(text).second)
      user_error("special token {} is given twice", shown(printable(text)));
    by_first_byte_[static_cast<unsigned char>(text[0])].push_back(static_cast<std::int32_t>(i));
  }
  for (std::vector<std::int32_t>& tokens : by_first_byte_)
    std::sort(tokens.begin(), tokens.end(), [this](std::int32_t a, std::int32_t b) {
      const std::size_t x = texts_[usize(a)].size(), y = texts_[usize(b)].size();
      return x != y ? x > y : a < b;
    });
}

SpecialTokens::Place SpecialTokens::find(std::string_view text, std::size_t from, bool last) const {
  if (texts_.empty()) return {text.size(), -1};
  for (std::size_t at = from; at < text.size(); ++at) {
    for (const std::int32_t index : by_first_byte_[static_cast<unsigned char>(text[at])]) {
      const std::string_view token = texts_[usize(index)];
      const std::string_view there = text.substr(at, token.size());
      if (there == token) return {at, index};
      if (!last && there.size() < token.size() && token.substr(0, there.size()) == there)
        return {at, -1};
    }
  }
  return {text.size(), -1};
}

std::size_t word_length(std::string_view text, bool last) {
  const Reader reader(text, last);
  if (text[0] == '\'') {
    for (const std::string_view ending : kEndings) {
      const std::string_view there = text.substr(0, ending.size());
      if (there == ending) return ending.size();
      if (!last && there.size() < ending.size() && ending.substr(0, there.size()) == there)
        return 0;
    }
  }
  const std::size_t begin = text[0] == ' ' ? 1 : 0;  // a word may have one space in front
  Seen seen = reader.at(begin);
  if (seen.what == Seen::unknown) return 0;
  if (seen.what == Seen::end || seen.kind == kSpace) return space_length(reader);
  const std::size_t end = reader.run_end(begin, seen.kind, seen);
  return seen.what == Seen::unknown ? 0 : end;
}

Splitter::Splitter(std::string_view text, bool last, const SpecialTokens& special)
    : text_(text), last_(last), special_(special), stop_(special.find(text, 0, last)) {}

std::optional<Splitter::Part> Splitter::next() {
  std::size_t length = 0;
  std::int32_t index = -1;
  if (at_ < stop_.at) {
    length = word_length(text_.substr(at_, stop_.at - at_), last_ || stop_.index >= 0);
  } else if (stop_.index >= 0) {
    index = stop_.index;
    length = special_.texts()[usize(index)].size();
    stop_ = special_.find(text_, at_ + length, last_);
  }
  if (length == 0) return std::nullopt;
  const Part part{text_.substr(at_, length), index};
  at_ += length;
  return part;
}

}  // namespace tensorgrad::io
