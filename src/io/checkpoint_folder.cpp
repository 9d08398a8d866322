// The folder of a run: file names, removal of old checkpoints, and the newest readable one.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <system_error>
#include <utility>

#include "support/fail.h"
#include "support/file.h"
#include "support/text.h"
#include "tensorgrad/checkpoint.h"

namespace tensorgrad {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kBefore = "step-", kAfter = ".safetensors";

std::string file_name(std::int64_t step) { return fmt::format("{}{:08}{}", kBefore, step, kAfter); }

// Parses the step from a name made by file_name().
std::optional<std::int64_t> step_of(std::string_view name) {
  if (name.size() < kBefore.size() + kAfter.size()) return {};
  std::int64_t step = -1;
  std::from_chars(name.data() + kBefore.size(), name.data() + name.size() - kAfter.size(), step);
  if (step < 0 || file_name(step) != name) return {};
  return step;
}

}  // namespace

CheckpointFolder::CheckpointFolder(fs::path folder, int keep)
    : folder_(std::move(folder)), keep_(keep) {
  if (keep < 1) user_error("{}: at least one checkpoint must be kept: {}", folder_.string(), keep);
}

std::vector<fs::path> CheckpointFolder::files() const {
  std::vector<std::pair<std::int64_t, fs::path>> found;
  std::error_code error, unknown;
  fs::directory_iterator entry(folder_, error);
  if (error == std::errc::no_such_file_or_directory) return {};
  for (; !error && entry != fs::directory_iterator(); entry.increment(error))
    if (const auto step = step_of(entry->path().filename().string());
        step && entry->is_regular_file(unknown))
      found.emplace_back(*step, entry->path());
  if (error) user_error("{}: cannot read: {}", folder_.string(), error.message());
  std::sort(found.begin(), found.end());
  std::vector<fs::path> paths;
  for (auto& [step, path] : found) paths.push_back(std::move(path));
  return paths;
}

fs::path CheckpointFolder::save(const Checkpoint& checkpoint) const {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) user_error("{}: cannot create the folder: {}", folder_.string(), error.message());
  remove_unfinished(folder_);  // first, because they may fill the disk
  const fs::path path = folder_ / file_name(checkpoint.step);
  save_checkpoint(path, checkpoint);
  // Keeps the last `keep_` files up to this step. Newer files are neither removed nor counted:
  // training resumed from here because they are unreadable or because the user chose to. A file
  // that cannot be removed is tried again next time.
  const std::vector<fs::path> all = files();
  const auto own = std::find(all.begin(), all.end(), path);
  if (own == all.end()) return path;
  for (auto old = all.begin(); own - old >= keep_; ++old) fs::remove(*old, error);
  return path;
}

std::optional<CheckpointFolder::Found> CheckpointFolder::newest(CheckpointPart part) const {
  std::vector<fs::path> all = files();
  std::vector<std::string> unreadable;
  for (auto path = all.rbegin(); path != all.rend(); ++path) {
    try {
      Checkpoint checkpoint = load_checkpoint(*path, part);
      return Found{*path, std::move(checkpoint), std::move(unreadable)};
    } catch (const ReadError&) {
      throw;  // the file may be good, so an older one must not replace it
    } catch (const UserError& error) {
      unreadable.push_back(error.what());
    }
  }
  if (unreadable.empty()) return {};
  user_error("{}: no checkpoint in it can be read:\n  {}", folder_.string(),
             join(unreadable, "\n  "));
}

}  // namespace tensorgrad
