// Line: a cursor over one line of a Graph's text, with a reader for each type that an attribute
// field may have. Every reader skips blanks first. Text that it cannot read is a UserError that
// names the line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/fail.h"
#include "tensorgrad/shape.h"

namespace tensorgrad::ir {

// More elements than any tensor has. The parser rejects larger integers, so that sums of sizes
// cannot overflow in a type rule.
inline constexpr std::int64_t kMostElements = std::int64_t{1} << 40;
bool too_large(const Shape& shape);

class Line {
 public:
  Line(std::string_view text, int number) : rest_(text), number_(number) {}

  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    user_error("graph text, line {}: {}", number_,
               fmt::format(format, std::forward<Args>(args)...));
  }
  [[noreturn]] void fail_expected(std::string_view what);

  // Whether only blanks and a comment are left.
  bool at_end();
  void expect_end();

  bool peek(char c);
  bool accept(char c);
  void expect(char c);
  bool accept(std::string_view word);
  // Reads a word of letters, digits and underscores. `what` is the expected thing, for the error.
  std::string_view word(std::string_view what);

  void read(std::int64_t& value);
  void read(int& value);
  void read(bool& value);
  void read(double& value);
  void read(std::string& value);  // quoted
  void read(DType& value);
  void read(Shape& value);
  void read(std::vector<int>& value);
  // Reads a quoted name, or a name that needs no quotes.
  void read_bare(std::string& value);

 private:
  void skip_blanks();
  template <class Is>
  std::size_t count_while(Is is) const;
  std::string_view take(std::size_t count);
  template <class Item>
  void list(Item item);
  double decimal();
  double nan();
  char escaped();

  std::string_view rest_;
  int number_;
};

}  // namespace tensorgrad::ir
