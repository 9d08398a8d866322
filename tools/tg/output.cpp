#include "output.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

namespace tensorgrad::tool {

namespace {

int lost = 0;  // errno of the first failure on stdout

// Size of the UTF-8 character that `text` begins with; 0 if it begins with none.
std::size_t character_size(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  const std::size_t size = first < 0x80                     ? 1
                           : first >= 0xc2 && first <= 0xdf ? 2
                           : first >= 0xe0 && first <= 0xef ? 3
                           : first >= 0xf0 && first <= 0xf4 ? 4
                                                            : 0;
  if (size > text.size()) return 0;
  for (std::size_t i = 1; i < size; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  // Overlong forms, surrogates, and codes above U+10FFFF.
  if (size > 2) {
    const unsigned second = byte(1);
    if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f)) return 0;
    if ((first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f)) return 0;
  }
  return size;
}

// C0 except newline and tab, DEL, and C1, which is C2 80 to C2 9F in UTF-8.
bool is_control(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1)
    return (first < 0x20 && first != '\n' && first != '\t') || first == 0x7f;
  return first == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0;
}

}  // namespace

void open_standard_streams() {
  for (int fd = 0; fd <= 2; ++fd)
    if (::fcntl(fd, F_GETFD) < 0 && errno == EBADF) ::open("/dev/null", O_RDWR);
}

void outlive_reader() { std::signal(SIGPIPE, SIG_IGN); }

void print_text(std::FILE* to, std::string_view text) {
  if (to == stdout && lost) return;
  errno = 0;
  const bool whole = std::fwrite(text.data(), 1, text.size(), to) == text.size();
  if (whole && std::fflush(to) == 0) return;
  if (to == stdout) lost = errno ? errno : EIO;
}

int output_error() { return lost; }

bool reader_left() {
  pollfd out{.fd = fileno(stdout), .events = 0, .revents = 0};
  return poll(&out, 1, 0) > 0 && (out.revents & POLLERR);
}

bool is_terminal(std::FILE* stream) { return isatty(fileno(stream)) == 1; }

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t size = character_size(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(size, 1));
    if (size > 0 && !is_control(character))
      out += character;
    else
      for (const char c : character) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    text.remove_prefix(character.size());
  }
  return out;
}

}  // namespace tensorgrad::tool
