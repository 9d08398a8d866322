// The file of choices.
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <fstream>

#include "runtime/webgpu/choices.h"
#include "support/file.h"
#include "support/json.h"
#include "support/json_text.h"

namespace tensorgrad::webgpu {

namespace {

constexpr const char* kFormat = "tensorgrad choices";
constexpr int kVersion = 1, kDepth = 4;

}  // namespace

Choices::Table Choices::read(const std::filesystem::path& file) {
  Table out;
  try {
    const JsonDocument document = parse_json(read_file(file), kDepth);
    const Json& root = document.root();
    const Json *format = root.find("format"), *version = root.find("version"),
               *adapters = root.find("adapters");
    const bool ours = format && format->text() == kFormat && version &&
                      version->integer() == kVersion && adapters;
    if (!ours) return {};
    for (const auto& [adapter, table] : adapters->members())
      for (const auto& [key, choice] : table.members()) {
        const Json *tiles = choice.find("tiles"), *kernel = choice.find("kernel");
        if (!tiles || !tiles->is_text() || !kernel || !kernel->is_text()) return {};
        out[std::string(adapter)][std::string(key)] = {std::string(tiles->text()),
                                                       std::string(kernel->text())};
      }
  } catch (const UserError&) {  // missing, unreadable, or not JSON
    return {};
  }
  return out;
}

// Writes to a temporary file and renames it, so that readers see the old file or the new one. If
// writing fails, the choices are measured again next time.
void Choices::write(const std::filesystem::path& file, const Table& table) {
  JsonText json;
  json.begin('{').field("format", kFormat).field("version", kVersion);
  json.key("adapters").begin('{');
  for (const auto& [adapter, choices] : table) {
    json.key(adapter).begin('{');
    for (const auto& [key, choice] : choices)
      json.key(key).begin('{').field("tiles", choice.value).field("kernel", choice.about).end('}');
    json.end('}');
  }
  json.end('}').end('}');
  std::error_code failed;
  std::filesystem::create_directories(file.parent_path(), failed);
  std::filesystem::path half = file;
  static std::atomic<int> next{0};  // for devices of one process; the time distinguishes processes
  half +=
      fmt::format(".{}-{}", std::chrono::steady_clock::now().time_since_epoch().count(), next++);
  {
    std::ofstream out(half, std::ios::binary);
    out << json.text() << '\n';
    if (!out.flush()) failed = std::make_error_code(std::errc::io_error);
  }
  if (!failed) std::filesystem::rename(half, file, failed);
  if (failed) std::filesystem::remove(half, failed);
}

}  // namespace tensorgrad::webgpu
