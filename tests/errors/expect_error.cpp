#include "tests/errors/expect_error.h"

#include <set>

namespace tensorgrad::errors {

std::string at_line(const std::string& text, const char* file, int line) {
  const std::string path = file;
  const std::string place = path.substr(path.find_last_of('/') + 1) + ":" + std::to_string(line);
  std::string out;
  for (const char c : text) c == '@' ? out += place : out += c;
  return out;
}

void expect_errors(const std::vector<Row>& rows, const char* file) {
  std::set<std::string> names;
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    EXPECT_TRUE(names.insert(row.name).second) << "two rows of this name";
    EXPECT_EQ(text_of(row.call), at_line(row.text, file, row.line));
  }
}

}  // namespace tensorgrad::errors
