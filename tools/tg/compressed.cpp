#include "compressed.h"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <optional>

namespace tensorgrad::tool {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kLongestText = std::int64_t{8} << 20;  // xz takes a second per megabyte

// Quotes a word for the shell.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// Number of bytes that a command prints; nothing if it fails.
std::optional<std::int64_t> bytes_printed(const std::string& command) {
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (!pipe) return {};
  std::array<char, 1 << 14> buffer;
  std::int64_t bytes = 0;
  while (const std::size_t read = std::fread(buffer.data(), 1, buffer.size(), pipe))
    bytes += static_cast<std::int64_t>(read);
  if (::pclose(pipe) != 0 || bytes == 0) return {};
  return bytes;
}

}  // namespace

std::vector<CompressedText> compressed_text(const std::string& file, std::int64_t last_bytes) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(file, error);
  if (error || size > kLongestText || last_bytes < 1) return {};
  const std::int64_t before = static_cast<std::int64_t>(size) - last_bytes;
  if (before < 0) return {};
  std::vector<CompressedText> all;
  // xz -6e has a dictionary of kLongestText; a larger one would only take memory.
  for (const char* program : {"gzip -9", "xz -6e"}) {
    const auto compressed = [&](std::int64_t bytes) {
      return bytes_printed(fmt::format("head -c {} 2>/dev/null < {} | {} 2>/dev/null", bytes,
                                       quoted(file), program));
    };
    const auto whole = compressed(before + last_bytes), rest = compressed(before);
    // The shell reports a failure of the program, but not of head. If head fails, both sizes are
    // equal.
    if (!whole || !rest || *whole <= *rest) continue;
    const std::string name(program, std::string_view(program).find(' '));
    all.push_back(
        {name, 8.0 * static_cast<double>(*whole - *rest) / static_cast<double>(last_bytes)});
  }
  return all;
}

}  // namespace tensorgrad::tool
