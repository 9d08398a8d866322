// The fastest tiles measured on this machine's adapters, stored in a file. If the file is missing,
// damaged, of another version or not writable, the only cost is measuring again.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace tensorgrad::webgpu {

class Choices {
 public:
  // Reads the file, if there is one. Without a path, nothing is stored.
  explicit Choices(std::filesystem::path file = {});

  // `adapter` includes the driver and its version; `key` identifies the exact shader.
  std::optional<std::string> find(const std::string& adapter, const std::string& key) const;
  // `about` describes the kernel for people who open the file.
  void add(const std::string& adapter, const std::string& key, const std::string& choice,
           const std::string& about);
  // Writes the added choices, merged with those that other processes have written meanwhile.
  void save();

  // In cache_folder(); empty if there is no such folder.
  static std::filesystem::path default_file();

 private:
  struct Choice {
    std::string value, about;
  };
  using Table = std::map<std::string, std::map<std::string, Choice>>;  // by adapter and key
  static Table read(const std::filesystem::path& file);
  static void write(const std::filesystem::path& file, const Table& table);

  std::filesystem::path file_;
  Table known_, added_;
};

}  // namespace tensorgrad::webgpu
