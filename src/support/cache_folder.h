#pragma once

#include <filesystem>

namespace tensorgrad {

// The folder for files that only save time: $TENSORGRAD_CACHE, $XDG_CACHE_HOME/tensorgrad or
// ~/.cache/tensorgrad. It may not exist. Empty if none of these variables is set.
std::filesystem::path cache_folder();

}  // namespace tensorgrad
