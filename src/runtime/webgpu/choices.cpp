#include "runtime/webgpu/choices.h"

#include "support/cache_folder.h"

namespace tensorgrad::webgpu {

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

}  // namespace tensorgrad::webgpu
