// The file of choices.
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/webgpu/choices.h"
#include "support/file.h"

namespace tensorgrad::webgpu {

namespace {

using Json = nlohmann::json;

constexpr const char* kFormat = "tensorgrad choices";
constexpr int kVersion = 1;

}  // namespace

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
