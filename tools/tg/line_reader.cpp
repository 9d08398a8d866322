#include "line_reader.h"

#include <iostream>

#include "output.h"

#ifdef TENSORGRAD_LIBEDIT
#include <histedit.h>

#include <clocale>
#include <cstdlib>
#include <filesystem>

#include "support/cache_folder.h"
#include "support/integers.h"
#endif

namespace tensorgrad::tool {

#ifdef TENSORGRAD_LIBEDIT

namespace {

constexpr int kHistoryLines = 1000;

// The locale determines the characters of a line. Without a locale they would be bytes, so use
// UTF-8.
void use_characters() {
  std::setlocale(LC_CTYPE, "");
  if (MB_CUR_MAX == 1) std::setlocale(LC_CTYPE, "C.UTF-8");
}

std::string history_file() {
  const std::filesystem::path folder = cache_folder();
  if (folder.empty()) return "";
  std::error_code ignored;  // then there is no history
  std::filesystem::create_directories(folder, ignored);
  return (folder / "history").string();
}

}  // namespace

class LineReader::Editor {
 public:
  explicit Editor(const std::string& prompt) : prompt_(prompt), file_(history_file()) {
    use_characters();
    history_ = history_init();
    history(history_, &event_, H_SETSIZE, kHistoryLines);
    history(history_, &event_, H_SETUNIQUE, 1);
    if (!file_.empty()) history(history_, &event_, H_LOAD, file_.c_str());
    edit_ = el_init("tg", stdin, stdout, stderr);
    el_set(edit_, EL_CLIENTDATA, this);
    el_set(edit_, EL_PROMPT, &Editor::prompt_of);
    el_set(edit_, EL_EDITOR, "emacs");
    el_set(edit_, EL_SIGNAL, 1);  // ctrl-C leaves the terminal as it was
    el_set(edit_, EL_HIST, &::history, history_);
    el_source(edit_, nullptr);  // ~/.editrc
  }
  ~Editor() {
    el_end(edit_);
    history_end(history_);
  }
  Editor(const Editor&) = delete;
  Editor& operator=(const Editor&) = delete;

  std::optional<std::string> read() {
    int size = 0;
    const char* text = el_gets(edit_, &size);
    if (!text || size <= 0) return {};
    std::string line(text, usize(size));
    if (line.ends_with('\n')) line.pop_back();
    if (!line.empty()) {
      history(history_, &event_, H_ENTER, line.c_str());
      if (!file_.empty()) history(history_, &event_, H_SAVE, file_.c_str());
    }
    return line;
  }

 private:
  static char* prompt_of(EditLine* edit) {
    Editor* self = nullptr;
    el_get(edit, EL_CLIENTDATA, &self);
    return self->prompt_.data();
  }

  std::string prompt_, file_;
  HistEvent event_{};
  ::History* history_ = nullptr;
  EditLine* edit_ = nullptr;
};

#else

class LineReader::Editor {
 public:
  explicit Editor(const std::string&) {}
  std::optional<std::string> read() { return {}; }
};

#endif

LineReader::LineReader(std::string prompt) : prompt_(std::move(prompt)) {
#ifdef TENSORGRAD_LIBEDIT
  if (is_terminal(stdin) && is_terminal(stdout)) editor_ = std::make_unique<Editor>(prompt_);
#endif
}

LineReader::~LineReader() = default;

std::optional<std::string> LineReader::read() {
  if (editor_) return editor_->read();
  if (is_terminal(stdin)) print_to(stderr, "{}", prompt_);
  std::string line;
  if (!std::getline(std::cin, line)) return {};
  return line;
}

}  // namespace tensorgrad::tool
