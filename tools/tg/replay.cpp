// Reads a directory of reference values, and runs one case.
#include "replay.h"

#include <algorithm>
#include <filesystem>

#include "io/named.h"
#include "read_json.h"
#include "support/fail.h"
#include "support/file.h"

namespace tensorgrad::tool {

namespace {

namespace fs = std::filesystem;

Json read_json(const fs::path& path) {
  const Json json = io::named(path.string(), [&] { return parse_json(read_file(path)); });
  if (!json.is_object()) user_error("{}: not a JSON object", path.string());
  return json;
}

std::shared_ptr<const TensorFile> read_tensors(fs::path path) {
  path.replace_extension(".safetensors");
  return std::make_shared<const TensorFile>(read_safetensors(path));
}

void add_op_cases(const fs::path& path, std::vector<ReferenceCase>& cases) {
  const Json json = read_json(path);
  const auto list = json.find("cases");
  if (list == json.end() || !list->is_array())
    user_error("{}: there is no list 'cases'", path.string());
  const auto file = read_tensors(path);
  for (std::size_t i = 0; i < list->size(); ++i) {
    const Json& item = (*list)[i];
    for (const char* key : {"case", "op"})
      if (!item.is_object() || !item.contains(key) || !item[key].is_string())
        user_error("{}: cases[{}] has no string '{}'", path.string(), i, key);
    const std::string name = item["case"];
    cases.push_back({name, CaseKind::op, item, name + "/", file});
  }
}

}  // namespace

const Array& ReferenceCase::tensor(const std::string& own_name) const {
  const auto found = file->tensors.find(prefix + own_name);
  if (found == file->tensors.end()) user_error("the tensor {}{} is missing", prefix, own_name);
  return found->second;
}

NamedArrays ReferenceCase::tensors(const std::string& start) const {
  const std::string whole = prefix + start;
  NamedArrays out;
  for (auto at = file->tensors.lower_bound(whole);
       at != file->tensors.end() && at->first.compare(0, whole.size(), whole) == 0; ++at)
    out.emplace(at->first.substr(whole.size()), at->second);
  return out;
}

std::vector<ReferenceCase> read_reference_directory(const std::string& directory) {
  std::error_code error;
  fs::directory_iterator entry(directory, error);
  std::vector<fs::path> runs;
  fs::path ops;
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const fs::path& path = entry->path();
    const std::string stem = path.stem().string();
    const bool is_run = stem.rfind("train_", 0) == 0;
    if (!is_run && stem != "ops") continue;
    if (path.extension() == ".json") {
      if (is_run)
        runs.push_back(path);
      else
        ops = path;
    } else if (path.extension() == ".safetensors") {
      if (file_type_at(fs::path(path).replace_extension(".json")) == fs::file_type::not_found)
        user_error("{}: there is no {}.json beside it", path.string(), stem);
    }
  }
  if (error) user_error("{}: cannot read the directory: {}", directory, error.message());
  std::sort(runs.begin(), runs.end());

  std::vector<ReferenceCase> cases;
  if (!ops.empty()) add_op_cases(ops, cases);
  for (const fs::path& path : runs)
    cases.push_back(
        {path.stem().string(), CaseKind::train, read_json(path), "", read_tensors(path)});
  if (cases.empty())
    user_error("{}: no cases: there is neither an ops.json with cases nor a train_*.json",
               directory);
  return cases;
}

Verdict replay(const ReferenceCase& reference, const DeviceOptions& where,
               const Tolerance& tolerance) {
  Verdict verdict;
  try {
    Comparison comparison;
    if (reference.kind == CaseKind::op)
      replay_op(reference, where, tolerance, comparison);
    else
      replay_training(reference, where, tolerance, comparison, verdict.notes);
    verdict.worst = comparison.worst();
    verdict.ok = verdict.worst <= 1;
    if (!verdict.ok) verdict.reason = comparison.where() + " is too far from the reference";
  } catch (const Unsupported& unsupported) {
    verdict.skipped = true;
    verdict.reason = unsupported.reason;
  } catch (const Json::exception& error) {  // part of the description has the wrong type
    verdict.worst = std::numeric_limits<double>::infinity();
    verdict.reason = reason(error);
  } catch (const std::exception& error) {
    verdict.worst = std::numeric_limits<double>::infinity();
    verdict.reason = error.what();
  }
  return verdict;
}

}  // namespace tensorgrad::tool
