// Tables of errors: a row causes an error and has its exact text. In the text, `@` is the file and
// line of the row's lambda, which the row gives as __LINE__.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::errors {

// Returns the text of the error of exactly this kind that the call throws; fails the test
// otherwise.
template <class Kind = UserError>
std::string text_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Kind& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "an error of another kind: " << error.what();
    return "";
  }
  ADD_FAILURE() << "no error";
  return "";
}

// `text` with "file.cpp:line" for each `@`.
std::string at_line(const std::string& text, const char* file, int line);

struct Row {
  const char* name;
  std::string text;
  int line;  // of the call below
  std::function<void()> call;
};

// Not a macro, because all lines of a macro have the same number.
void expect_errors(const std::vector<Row>& rows, const char* file = __builtin_FILE());

}  // namespace tensorgrad::errors
