// Byte pairs computed by plain Python: tests/fixtures_more/bpe, written by bpe_reference.py.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace tensorgrad {

inline const std::filesystem::path kBpe =
    std::filesystem::path(TENSORGRAD_SOURCE_DIR) / "tests/fixtures_more/bpe";

inline std::string file_text(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline const nlohmann::json& bpe_cases() {
  static const nlohmann::json cases = nlohmann::json::parse(file_text(kBpe / "cases.json"));
  return cases;
}

inline std::string from_hex(std::string_view hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  return bytes;
}

inline std::string text_of(const nlohmann::json& one) {
  return from_hex(one["text"].get<std::string>());
}

}  // namespace tensorgrad
