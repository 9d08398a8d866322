// What was found to be fastest on this machine's adapters, kept in a file between programs. A file
// that is missing, torn, of another version or not writable costs nothing but measuring again.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace tensorgrad::webgpu {

class Choices {
 public:
  // Reads the file, if there is one. Without a path nothing is kept.
  explicit Choices(std::filesystem::path file = {});

  // `adapter` names a driver and its version, too; `key` names the exact shader.
  std::optional<std::string> find(const std::string& adapter, const std::string& key) const;
  // `about` is for people who open the file.
  void add(const std::string& adapter, const std::string& key, const std::string& choice,
           const std::string& about);
  // Writes what was added since, together with what others have written meanwhile.
  void save();

  // In cache_folder(); empty where there is none.
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
