// Adds the place to errors about files: "model.safetensors: tensor 'x': dtype is missing".
#pragma once

#include <filesystem>
#include <new>
#include <stdexcept>
#include <string_view>

#include "support/fail.h"
#include "support/file.h"

namespace tensorgrad::io {

// Runs `f` and prefixes its UserErrors with `where`. A ReadError already names its file.
template <class F>
auto named(std::string_view where, F&& f) {
  try {
    return f();
  } catch (const ReadError&) {
    throw;
  } catch (const UserError& error) {
    user_error("{}: {}", where, error.what());
  }
}

// The same for a whole file. Also reports contents that are too large for memory.
template <class F>
auto named_file(const std::filesystem::path& path, F&& f) {
  try {
    return named(path.string(), f);
  } catch (const std::bad_alloc&) {
    too_large_for_memory(path);
  } catch (const std::length_error&) {
    too_large_for_memory(path);
  }
}

}  // namespace tensorgrad::io
