#include "tests/layout/include_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <sstream>

namespace tensorgrad::layout {
namespace {

constexpr auto kUnknown = std::size(kFolders);

// Position in kFolders; kUnknown if it is missing.
std::size_t rank(std::string_view folder) {
  return static_cast<std::size_t>(std::find(std::begin(kFolders), std::end(kFolders), folder) -
                                  std::begin(kFolders));
}

std::string_view first_part(std::string_view path) { return path.substr(0, path.find('/')); }

// A copy with blanked comments, so that lines keep their numbers.
std::string without_comments(std::string_view text) {
  std::string out(text);
  for (std::size_t i = 0; i + 1 < out.size(); ++i) {
    const bool block = out[i] == '/' && out[i + 1] == '*';
    if (!block && !(out[i] == '/' && out[i + 1] == '/')) continue;
    std::size_t end = block ? out.find("*/", i + 2) : out.find('\n', i);
    end = end == std::string::npos ? out.size() : end + (block ? 2 : 0);
    for (; i < end; ++i) {
      if (out[i] != '\n') out[i] = ' ';
    }
    --i;
  }
  return out;
}

}  // namespace

std::vector<Include> includes_of(std::string_view text) {
  std::vector<Include> found;
  std::istringstream lines(without_comments(text));
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    // Only the first word after '#' and the text between the quotes or brackets count.
    const std::size_t hash = line.find_first_not_of(" \t");
    if (hash == line.npos || line[hash] != '#') continue;
    const std::size_t word = line.find_first_not_of(" \t", hash + 1);
    if (word == line.npos || line.compare(word, 7, "include") != 0) continue;
    const std::size_t open = line.find_first_of("\"<", word);
    if (open == line.npos) continue;
    const std::size_t close = line.find_first_of("\">", open + 1);
    found.push_back({number, line.substr(open + 1, close - open - 1), line[open] == '"'});
  }
  return found;
}

std::vector<std::string> check_source(std::string_view path, std::string_view text) {
  std::vector<std::string> broken;
  const std::string_view folder = first_part(path.substr(std::string_view("src/").size()));
  if (rank(folder) == kUnknown) {
    return {fmt::format("{}:1: folder src/{} has no place in the order; add it to kFolders", path,
                        folder)};
  }
  for (const Include& include : includes_of(text)) {
    const std::string_view target = first_part(include.path);
    if (!include.quoted || target == "tensorgrad") continue;
    if (rank(target) == kUnknown) {
      broken.push_back(fmt::format(
          "{}:{}: \"{}\" does not start with a folder of src/; write \"{}/...\" for our own "
          "headers and <...> for others",
          path, include.line, include.path, folder));
    } else if (target == "reference" && folder != "reference") {
      broken.push_back(fmt::format("{}:{}: only tests may include the oracle (\"{}\")", path,
                                   include.line, include.path));
    } else if (rank(target) > rank(folder)) {
      broken.push_back(fmt::format("{}:{}: {} may not include {}, which comes after it (\"{}\")",
                                   path, include.line, folder, target, include.path));
    }
  }
  return broken;
}

std::vector<std::string> check_public_header(std::string_view path, std::string_view text) {
  std::vector<std::string> broken;
  for (const Include& include : includes_of(text)) {
    const bool ours = first_part(include.path) == "tensorgrad";
    // The headers of the C++ library have neither folder nor extension. Those of C are for c.h.
    const bool of_c = include.path == "stddef.h" || include.path == "stdint.h";
    const bool standard =
        !include.quoted && (of_c || include.path.find_first_of("./") == std::string::npos);
    if (include.path == "iostream") {
      broken.push_back(
          fmt::format("{}:{}: public headers do not include <iostream>", path, include.line));
    } else if (!ours && !standard) {
      broken.push_back(
          fmt::format("{}:{}: \"{}\" is neither of the C++ library nor below tensorgrad/", path,
                      include.line, include.path));
    }
  }
  return broken;
}

std::vector<std::string> check_markdown(std::string_view path, std::string_view text) {
  std::vector<std::string> broken;
  std::istringstream lines{std::string(text)};
  std::string line;
  bool code = false;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (line.starts_with("```")) code = !code;
    // Characters, not bytes: continuation bytes of UTF-8 do not count.
    const auto width = std::count_if(line.begin(), line.end(), [](char c) {
      return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
    });
    if (!code && !line.starts_with("|") && width > kMarkdownColumns)
      broken.push_back(fmt::format("{}:{}: {} columns; prose is wrapped at {}", path, number, width,
                                   kMarkdownColumns));
  }
  return broken;
}

std::vector<std::string> folders_not_named(std::string_view text,
                                           const std::vector<std::string>& folders) {
  const auto part_of_a_word = [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == '-';
  };
  std::vector<std::string> missing;
  for (const std::string& folder : folders) {
    std::size_t at = text.find(folder + "/");
    while (at != text.npos && at > 0 && part_of_a_word(static_cast<unsigned char>(text[at - 1]))) {
      at = text.find(folder + "/", at + 1);
    }
    if (at == text.npos) missing.push_back(folder);
  }
  return missing;
}

}  // namespace tensorgrad::layout
