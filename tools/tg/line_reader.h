// Reads lines that people type. At a terminal, if the tool was built with libedit, lines can be
// edited and the arrow keys recall earlier lines, also from earlier sessions.
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace tensorgrad::tool {

class LineReader {
 public:
  // The prompt is shown only at a terminal. Edited lines are kept in the file `history` of the
  // cache folder: $TENSORGRAD_CACHE, $XDG_CACHE_HOME/tensorgrad or ~/.cache/tensorgrad.
  explicit LineReader(std::string prompt);
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  // Returns a line without its newline; nothing at the end of the input.
  std::optional<std::string> read();

 private:
  class Editor;

  std::string prompt_;
  std::unique_ptr<Editor> editor_;  // null: plain reading
};

}  // namespace tensorgrad::tool
