#include "support/cache_folder.h"

#include <cstdlib>

namespace tensorgrad {

namespace {

std::filesystem::path from_environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

}  // namespace

std::filesystem::path cache_folder() {
  if (const auto own = from_environment("TENSORGRAD_CACHE"); !own.empty()) return own;
  if (const auto caches = from_environment("XDG_CACHE_HOME"); !caches.empty())
    return caches / "tensorgrad";
  if (const auto home = from_environment("HOME"); !home.empty())
    return home / ".cache" / "tensorgrad";
  return {};
}

}  // namespace tensorgrad
