// All printing of the tool. Printing never throws: training continues and saves even if its output
// is lost. Lost output is recorded and becomes the exit code.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <string_view>

namespace tensorgrad::tool {

// Opens closed standard streams on /dev/null, so that no file of the tool gets their descriptors.
// Call it before anything opens a file.
void open_standard_streams();

// From now on, writing to a pipe without a reader fails instead of ending the process.
void outlive_reader();

// Writes at once. After the first failure, nothing more goes to stdout.
void print_text(std::FILE* to, std::string_view text);

template <class... Args>
void print_to(std::FILE* to, fmt::format_string<Args...> format, Args&&... args) {
  print_text(to, fmt::format(format, std::forward<Args>(args)...));
}
// Prints results to stdout.
template <class... Args>
void print_out(fmt::format_string<Args...> format, Args&&... args) {
  print_text(stdout, fmt::format(format, std::forward<Args>(args)...));
}

// The errno of the first failed write to stdout; 0 if none failed.
int output_error();

// Whether stdout is a pipe whose reader has closed it: `| head -1`.
bool reader_left();

bool is_terminal(std::FILE* stream);

// Makes arbitrary bytes safe for a terminal: control characters other than newline and tab, and
// bytes that are not UTF-8, become \x1b and the like.
std::string printable(std::string_view text);

}  // namespace tensorgrad::tool
