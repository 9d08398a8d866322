// Directories of reference values for tests: copies of the fixtures with something changed, and
// new ones written case by case.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "tensorgrad/safetensors.h"
#include "tests/support/run_tool.h"

namespace tensorgrad {

inline const std::filesystem::path kFixtures =
    std::filesystem::path(TENSORGRAD_SOURCE_DIR) / "tests/fixtures";
inline const std::filesystem::path kMoreFixtures =
    std::filesystem::path(TENSORGRAD_SOURCE_DIR) / "tests/fixtures_more";

// A folder that is removed with the object.
class ReferenceDirectory {
 public:
  ReferenceDirectory();
  ~ReferenceDirectory();
  ReferenceDirectory(const ReferenceDirectory&) = delete;
  ReferenceDirectory& operator=(const ReferenceDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }
  void copy_from(const std::filesystem::path& directory) const;
  void write(const std::string& file, const std::string& text) const;
  // Reads, changes and writes a file.
  void change_json(const std::string& file,
                   const std::function<void(nlohmann::ordered_json&)>& change) const;
  void change_tensors(const std::string& file,
                      const std::function<void(NamedArrays&)>& change) const;

  // ops.json and ops.safetensors with one case called `one`; tensors by their names in it.
  void write_case(const std::string& description, const NamedArrays& tensors) const;

 private:
  std::filesystem::path path_;
};

struct VerifyRun {
  ToolRun tool;
  nlohmann::ordered_json done;                          // the last line
  std::map<std::string, nlohmann::ordered_json> cases;  // the others, by case
  // The names of the failed cases, with commas.
  std::string failed() const;
};

// tg verify --json.
VerifyRun run_verify(const std::filesystem::path& directory, const std::string& options = "");

Array floats(const Shape& shape, std::vector<float> values);
Array ints(const Shape& shape, std::vector<std::int32_t> values);

}  // namespace tensorgrad
