#include "tests/train/reference_directory.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>

namespace tensorgrad {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

ReferenceDirectory::ReferenceDirectory() {
  std::string name = testing::TempDir() + "tg_verify_XXXXXX";
  path_ = mkdtemp(name.data());
}

ReferenceDirectory::~ReferenceDirectory() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

void ReferenceDirectory::copy_from(const fs::path& directory) const {
  for (const fs::directory_entry& entry : fs::directory_iterator(directory))
    if (entry.is_regular_file()) fs::copy_file(entry.path(), path_ / entry.path().filename());
}

void ReferenceDirectory::write(const std::string& file, const std::string& text) const {
  std::ofstream(path_ / file, std::ios::binary) << text;
}

void ReferenceDirectory::change_json(const std::string& file,
                                     const std::function<void(Json&)>& change) const {
  Json json = Json::parse(std::ifstream(path_ / file));
  change(json);
  write(file, json.dump());
}

void ReferenceDirectory::change_tensors(const std::string& file,
                                        const std::function<void(NamedArrays&)>& change) const {
  TensorFile tensors = read_safetensors(path_ / file);
  change(tensors.tensors);
  write_safetensors(path_ / file, tensors);
}

void ReferenceDirectory::write_case(const std::string& description,
                                    const NamedArrays& tensors) const {
  Json one = Json::parse(description);
  one["case"] = "one";
  write("ops.json", Json{{"cases", Json::array({one})}}.dump());
  TensorFile file;
  for (const auto& [name, array] : tensors) file.tensors.emplace("one/" + name, array);
  write_safetensors(path_ / "ops.safetensors", file);
}

std::string VerifyRun::failed() const {
  std::string names;
  for (const auto& [name, line] : cases)
    if (line.contains("ok") && !line["ok"].get<bool>()) names += (names.empty() ? "" : ",") + name;
  return names;
}

VerifyRun run_verify(const fs::path& directory, const std::string& options) {
  VerifyRun run{.tool = run_tool("verify '" + directory.string() + "' --json " + options)};
  for (const Json& line : json_lines(run.tool)) {
    if (line.contains("event"))
      run.done = line;
    else
      run.cases.emplace(line.at("case").get<std::string>(), line);
  }
  return run;
}

Array floats(const Shape& shape, std::vector<float> values) { return {shape, std::move(values)}; }
Array ints(const Shape& shape, std::vector<std::int32_t> values) {
  return {shape, std::move(values)};
}

}  // namespace tensorgrad
