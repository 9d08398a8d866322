// The parser of JSON: one function per kind of value. The grammar is RFC 8259; a byte order mark
// before it is skipped.
#include <algorithm>
#include <clocale>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>

#include "support/fail.h"
#include "support/json.h"
#include "support/utf8.h"

namespace tensorgrad {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The nearest double; infinite if there is none. from_chars is missing in em++ 3.1.6.
double nearest_double(std::string_view number) {
  std::string copy(number);
  const std::size_t point = copy.find('.');
  if (point != copy.npos) copy.replace(point, 1, std::localeconv()->decimal_point);
  return std::strtod(copy.c_str(), nullptr);
}

}  // namespace

class JsonReader {
 public:
  explicit JsonReader(std::string_view text) : text_(text) {}

  JsonDocument read(int depth) && {
    if (!std::in_range<std::uint32_t>(text_.size()))
      user_error("not JSON: the text has {} bytes, at most {} are allowed", text_.size(),
                 std::numeric_limits<std::uint32_t>::max());
    document_.texts_.reset(new char[text_.size()]);
    out_ = document_.texts_.get();
    if (text_.starts_with("\xef\xbb\xbf")) at_ = 3;
    value(depth);
    if (at_ < text_.size()) expected("the end");
    return std::move(document_);
  }

 private:
  using Kind = Json::Kind;
  using Value = JsonDocument::Value;

  // ---- errors at the current byte

  [[noreturn]] void fail(const std::string& what) const {
    std::size_t line = 1, column = 1;
    for (const char c : text_.substr(0, at_)) {
      if (c == '\n')
        ++line, column = 1;
      else if ((c & 0xc0) != 0x80)  // columns are characters
        ++column;
    }
    user_error("not JSON: line {}, column {}: {}", line, column, what);
  }

  [[noreturn]] void expected(const char* what) const {
    constexpr std::size_t kMost = 20;  // bytes that the error quotes
    std::string_view found = text_.substr(at_);
    if (found.size() > kMost) {
      found = found.substr(0, kMost);
      found.remove_suffix(incomplete_tail(found));
    }
    fail(fmt::format("expected {}, found {}", what, found.empty() ? "the end" : shown(found)));
  }

  // ---- characters

  // The next byte. A NUL, which is an error everywhere, also stands for the end.
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  bool take(char wanted) {
    if (peek() != wanted) return false;
    ++at_;
    return true;
  }

  void skip_space() {
    while (peek() == ' ' || peek() == '\n' || peek() == '\r' || peek() == '\t') ++at_;
  }

  // ---- values

  Value& add(Kind kind) {
    Value& value = document_.values_.emplace_back();
    value.kind_ = kind;
    return value;
  }

  // A value with the white space around it.
  void value(int depth) {
    skip_space();
    switch (peek()) {
      case '{':
      case '[':
        if (depth == 0) user_error("nested too deeply");
        container(depth - 1);
        break;
      case '"':
        text();
        break;
      case 't':
        word("true", Kind::truth).bits_ = 1;
        break;
      case 'f':
        word("false", Kind::truth);
        break;
      case 'n':
        word("null", Kind::null);
        break;
      default:
        number();
    }
    skip_space();
  }

  Value& word(std::string_view wanted, Kind kind) {
    if (!text_.substr(at_).starts_with(wanted)) expected("a value");
    at_ += wanted.size();
    return add(kind);
  }

  void container(int depth) {
    const std::size_t own = document_.values_.size(), first_name = names_.size();
    const bool is_object = take('{');
    if (!is_object) ++at_;
    add(is_object ? Kind::object : Kind::list);
    const char end = is_object ? '}' : ']';
    std::size_t size = 0;
    skip_space();
    if (!take(end)) {
      do {
        if (is_object) name();
        value(depth);
        ++size;
      } while (take(','));
      if (!take(end)) expected(is_object ? "',' or '}'" : "',' or ']'");
    }
    Value& made = document_.values_[own];
    made.size_ = size;
    made.values_ = static_cast<std::uint32_t>(document_.values_.size() - own);
    check_names(first_name);
  }

  void name() {
    skip_space();
    if (peek() != '"') expected("a name in quotes");
    names_.push_back(document_.values_.size());
    text();
    skip_space();
    if (!take(':')) expected("':'");
  }

  // Throws if two of the names from `first` on are equal, and forgets them.
  void check_names(std::size_t first) {
    const auto begin = names_.begin() + static_cast<std::ptrdiff_t>(first);
    const auto name = [this](std::size_t index) { return document_.values_[index].text(); };
    const auto less = [&](std::size_t a, std::size_t b) { return name(a) < name(b); };
    std::make_heap(begin, names_.end(), less);  // a fifth of std::sort's code
    std::sort_heap(begin, names_.end(), less);
    for (auto at = begin; at != names_.end() && at + 1 != names_.end(); ++at)
      if (name(at[0]) == name(at[1])) user_error("{} occurs twice", shown(name(*at)));
    names_.resize(first);
  }

  void number() {
    const std::size_t begin = at_;
    const bool negative = take('-');
    if (!is_digit(peek())) negative ? expected("a digit") : expected("a value");
    std::uint64_t whole = 0;
    bool fits = true;  // into an integer
    if (!take('0'))
      for (; is_digit(peek()); ++at_) {
        const auto digit = static_cast<std::uint64_t>(peek() - '0');
        fits = fits && whole <= (std::numeric_limits<std::uint64_t>::max() - digit) / 10;
        whole = 10 * whole + digit;
      }
    if (negative) fits = fits && whole <= std::uint64_t{1} << 63;
    if (take('.')) digits(), fits = false;
    if (take('e') || take('E')) {
      if (!take('+')) take('-');
      digits(), fits = false;
    }
    Value& made = add(fits ? Kind::integer : Kind::real);
    if (fits) {
      made.negative_ = negative && whole != 0;
      made.bits_ = negative ? 0 - whole : whole;
    } else {
      made.real_ = nearest_double(text_.substr(begin, at_ - begin));
      if (std::isinf(made.real_)) at_ = begin, fail("the number is too large");
    }
  }

  void digits() {
    if (!is_digit(peek())) expected("a digit");
    while (is_digit(peek())) ++at_;
  }

  // ---- texts

  void text() {
    ++at_;
    const char* begin = out_;
    while (!take('"')) {
      if (at_ == text_.size()) expected("'\"'");
      if (peek() == '\\') {
        escape();
        continue;
      }
      const Character character = character_at(text_, at_);
      if (!character.valid) fail("not UTF-8");
      if (character.code < ' ') fail("a control character in a text must be escaped");
      for (std::size_t i = 0; i < character.bytes; ++i) *out_++ = text_[at_++];
    }
    Value& made = add(Kind::text);
    made.text_ = begin;
    made.size_ = static_cast<std::size_t>(out_ - begin);
  }

  void escape() {
    constexpr std::string_view kShort = "\"\\/bfnrt", kMeaning = "\"\\/\b\f\n\r\t";
    const std::size_t begin = at_++;
    if (take('u')) {
      std::string character;
      append_utf8(character, code_after(begin));
      out_ = std::copy(character.begin(), character.end(), out_);
      return;
    }
    const std::size_t found = at_ < text_.size() ? kShort.find(peek()) : kShort.npos;
    if (found == kShort.npos) at_ = begin, expected("an escape such as \\n or \\u0041");
    ++at_;
    *out_++ = kMeaning[found];
  }

  // The character of "\u0041" or of a surrogate pair, whose "\u" at `begin` is read.
  char32_t code_after(std::size_t begin) {
    constexpr char32_t kHigh = 0xd800, kLow = 0xdc00, kHalves = 1024;  // of each kind
    char32_t code = hexadecimal();
    if (code - kHigh >= 2 * kHalves) return code;
    const bool is_pair = code < kLow && take('\\') && take('u');
    const char32_t low = is_pair ? hexadecimal() - kLow : kHalves;
    if (low >= kHalves) at_ = begin, fail("an unpaired surrogate");
    return 0x10000 + (code - kHigh) * kHalves + low;
  }

  char32_t hexadecimal() {
    char32_t code = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      const char c = peek(), letter = static_cast<char>(c | 0x20);
      if (is_digit(c))
        code = code << 4 | static_cast<char32_t>(c - '0');
      else if (letter >= 'a' && letter <= 'f')
        code = code << 4 | static_cast<char32_t>(letter - 'a' + 10);
      else
        expected("four hexadecimal digits");
    }
    return code;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  JsonDocument document_;
  char* out_ = nullptr;             // behind the last decoded character
  std::vector<std::size_t> names_;  // of unfinished objects, as indices of values
};

JsonDocument parse_json(std::string_view text, int depth) { return JsonReader(text).read(depth); }

}  // namespace tensorgrad
