// The rules about includes, as functions over the text of one file. A violation is reported as
// "file:line: message".
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tensorgrad::layout {

// The folders under src/, in the order data flows: each may include itself and those before it.
inline constexpr std::string_view kFolders[] = {
    "support", "ir",     "ops",      "reference", "trace",   "autodiff",
    "optim",   "passes", "schedule", "kernels",   "codegen", "runtime",
    "compile", "nn",     "io",       "text",      "c"};

struct Include {
  int line;          // from 1
  std::string path;  // as written, without its quotes or brackets
  bool quoted;       // "path" rather than <path>
};

// Every #include of `text` outside of comments.
std::vector<Include> includes_of(std::string_view text);

// Rules for a file of src/; `path` is relative to the root: src/ir/graph.h.
std::vector<std::string> check_source(std::string_view path, std::string_view text);

// Rules for a file of include/.
std::vector<std::string> check_public_header(std::string_view path, std::string_view text);

// Prose of a Markdown file fits these columns; tables and code are exempt.
inline constexpr int kMarkdownColumns = 100;
std::vector<std::string> check_markdown(std::string_view path, std::string_view text);

// Those of `folders` that `text` (of HACKING.md) does not mention as "name/".
std::vector<std::string> folders_not_named(std::string_view text,
                                           const std::vector<std::string>& folders);

}  // namespace tensorgrad::layout
