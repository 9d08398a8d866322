#include "runtime/webgpu/choices.h"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/cache_folder.h"
#include "support/file.h"

namespace tensorgrad::webgpu {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "tensorgrad choices";
constexpr int kVersion = 1;

}  // namespace

Choices::Choices(std::filesystem::path file) : file_(std::move(file)), known_(read(file_)) {}

std::filesystem::path Choices::default_file() {
  const std::filesystem::path folder = cache_folder();
  return folder.empty() ? folder : folder / "choices.json";
}

std::optional<std::string> Choices::find(const std::string& adapter, const std::string& key) const {
  const auto on = known_.find(adapter);
  if (on == known_.end()) return {};
  const auto found = on->second.find(key);
  if (found == on->second.end()) return {};
  return found->second.value;
}

void Choices::add(const std::string& adapter, const std::string& key, const std::string& choice,
                  const std::string& about) {
  known_[adapter][key] = added_[adapter][key] = {choice, about};
}

void Choices::save() {
  if (added_.empty() || file_.empty()) return;
  Table all = read(file_);
  for (auto& [adapter, table] : added_)
    for (auto& [key, choice] : table) all[adapter][key] = std::move(choice);
  added_.clear();
  write(file_, all);
}

Choices::Table Choices::read(const std::filesystem::path& file) {
  Table out;
  try {
    const Json root = Json::parse(read_file(file));
    if (root.at("format") != kFormat || root.at("version") != kVersion) return {};
    for (const auto& [adapter, table] : root.at("adapters").items())
      for (const auto& [key, choice] : table.items())
        out[adapter][key] = {choice.at("tiles"), choice.at("kernel")};
  } catch (const UserError&) {  // missing or unreadable
    return {};
  } catch (const Json::exception&) {  // another format
    return {};
  }
  return out;
}

// Writes to a temporary file and renames it, so that readers see the old file or the new one. If
// writing fails, the choices are measured again next time.
void Choices::write(const std::filesystem::path& file, const Table& table) {
  Json adapters = Json::object();
  for (const auto& [adapter, choices] : table)
    for (const auto& [key, choice] : choices)
      adapters[adapter][key] = {{"tiles", choice.value}, {"kernel", choice.about}};
  const Json root = {{"format", kFormat}, {"version", kVersion}, {"adapters", adapters}};
  std::error_code failed;
  std::filesystem::create_directories(file.parent_path(), failed);
  std::filesystem::path half = file;
  static std::atomic<int> next{0};  // for devices of one process; the time distinguishes processes
  half +=
      fmt::format(".{}-{}", std::chrono::steady_clock::now().time_since_epoch().count(), next++);
  {
    std::ofstream out(half, std::ios::binary);
    out << root.dump(1, ' ', false, Json::error_handler_t::replace) << '\n';
    if (!out.flush()) failed = std::make_error_code(std::errc::io_error);
  }
  if (!failed) std::filesystem::rename(half, file, failed);
  if (failed) std::filesystem::remove(half, failed);
}

}  // namespace tensorgrad::webgpu
