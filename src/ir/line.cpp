#include "ir/line.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "ir/syntax.h"
#include "support/bits.h"
#include "support/integers.h"

namespace tensorgrad::ir {

namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Parses the whole text, or fails.
bool read_decimal(std::string_view text, double& value) {
#ifdef __cpp_lib_to_chars
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
#else  // em++ 3.1.6; its strtod ignores locales
  const std::string copy(text);
  char* end = nullptr;
  value = std::strtod(copy.c_str(), &end);
  return end == copy.c_str() + copy.size() && std::isfinite(value);
#endif
}

template <class T>
bool read_hexadecimal(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

bool too_large(const Shape& shape) {
  std::int64_t room = kMostElements;
  for (const std::int64_t size : shape) {
    if (size > room) return true;
    if (size > 0) room /= size;
  }
  return false;
}

template <class Is>
std::size_t Line::count_while(Is is) const {
  const auto end = std::find_if_not(rest_.begin(), rest_.end(), is);
  return usize(end - rest_.begin());
}

std::string_view Line::take(std::size_t count) {
  const std::string_view taken = rest_.substr(0, count);
  rest_.remove_prefix(taken.size());
  return taken;
}

void Line::skip_blanks() { take(count_while(is_blank)); }

void Line::fail_expected(std::string_view what) {
  if (at_end()) fail("expected {}, found the end of the line", what);
  fail("expected {}, found {}", what, quote(rest_.substr(0, 20)));
}

bool Line::at_end() {
  skip_blanks();
  return rest_.empty() || rest_[0] == '#';
}

void Line::expect_end() {
  if (!at_end()) fail_expected("the end of the line");
}

bool Line::peek(char c) {
  skip_blanks();
  return !rest_.empty() && rest_[0] == c;
}

bool Line::accept(char c) {
  const bool is_next = peek(c);
  if (is_next) take(1);
  return is_next;
}

void Line::expect(char c) {
  if (!accept(c)) fail_expected(fmt::format("'{}'", c));
}

bool Line::accept(std::string_view word) {
  skip_blanks();
  const bool is_next = rest_.substr(0, count_while(is_word_char)) == word;
  if (is_next) take(word.size());
  return is_next;
}

std::string_view Line::word(std::string_view what) {
  skip_blanks();
  const std::string_view found = take(count_while(is_word_char));
  if (found.empty()) fail_expected(what);
  return found;
}

void Line::read(std::int64_t& value) {
  skip_blanks();
  const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
  if (error == std::errc::invalid_argument) fail_expected("a whole number");
  const std::string_view digits = take(usize(end - rest_.data()));
  if (error != std::errc() || value > kMostElements || value < -kMostElements)
    fail("the number {} is out of range", digits);
}

void Line::read(int& value) {
  std::int64_t wide = 0;
  read(wide);
  if (wide < std::numeric_limits<int>::min() || wide > std::numeric_limits<int>::max())
    fail("the number {} is out of range", wide);
  value = static_cast<int>(wide);
}

void Line::read(bool& value) {
  value = accept("true");
  if (!value && !accept("false")) fail_expected("true or false");
}

void Line::read(DType& value) {
  for (const DType dtype : {DType::f32, DType::i32, DType::boolean}) {
    if (!accept(name(dtype))) continue;
    value = dtype;
    return;
  }
  fail_expected("f32, i32 or bool");
}

void Line::read(double& value) {
  const double sign = accept('-') ? -1 : 1;
  if (accept("inf"))
    value = sign * std::numeric_limits<double>::infinity();
  else if (sign > 0 && accept("nan"))
    value = nan();
  else
    value = sign * decimal();
}

double Line::decimal() {
  if (rest_.empty() || !is_digit(rest_[0])) fail_expected("a number");
  const std::string_view text = take(count_while([](char c) {
    return is_digit(c) || c == '.' || c == 'e' || c == 'E' || c == '-' || c == '+';
  }));
  double value = 0;
  if (!read_decimal(text, value)) fail("the number {} is malformed or out of range", text);
  return value;
}

double Line::nan() {
  std::uint64_t pattern = kPlainNan;
  if (accept('(')) {
    const std::string_view digits = word("the bits of a NaN");
    if (!read_hexadecimal(digits, pattern) || !std::isnan(double_of_bits(pattern)))
      fail("{} are not the bits of a NaN", digits);
    expect(')');
  }
  return double_of_bits(pattern);
}

void Line::read(std::string& value) {
  expect('"');
  for (;;) {
    if (rest_.empty()) fail("the closing quote is missing");
    const char c = take(1)[0];
    if (c == '"') return;
    value += c == '\\' ? escaped() : c;
  }
}

char Line::escaped() {
  const std::string_view letter = take(1);
  if (letter == "\"" || letter == "\\") return letter[0];
  if (letter == "n") return '\n';
  if (letter == "t") return '\t';
  if (letter == "r") return '\r';
  if (letter != "x") fail("no such escape in a quoted name: \\{}", letter);
  const std::string_view digits = take(2);
  unsigned byte = 0;
  if (digits.size() != 2 || !read_hexadecimal(digits, byte))
    fail("\\x in a quoted name needs two hexadecimal digits");
  return static_cast<char>(byte);
}

template <class Item>
void Line::list(Item item) {
  expect('[');
  if (accept(']')) return;
  do item();
  while (accept(','));
  expect(']');
}

void Line::read(Shape& value) {
  list([&] {
    std::int64_t size = 0;
    read(size);
    if (size < 0) fail("a size is negative: {}", size);
    if (value.rank() == kMaxRank) fail("a shape has at most {} dimensions", kMaxRank);
    value.push_back(size);
  });
  if (too_large(value)) fail("the shape {} is too large", value.text());
}

void Line::read(std::vector<int>& value) {
  list([&] { read(value.emplace_back()); });
}

void Line::read_bare(std::string& value) {
  if (peek('"')) return read(value);
  value = take(count_while(is_bare_char));
  if (value.empty()) fail_expected("a name");
}

}  // namespace tensorgrad::ir
