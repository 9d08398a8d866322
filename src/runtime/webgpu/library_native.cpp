#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <optional>

#include "runtime/webgpu/library.h"
#include "support/fail.h"

// Set by the build; a place that is not known is an empty string.
#ifndef TENSORGRAD_WEBGPU_INSTALLED
#define TENSORGRAD_WEBGPU_INSTALLED ""
#endif
#ifndef TENSORGRAD_WEBGPU_FETCHED
#define TENSORGRAD_WEBGPU_FETCHED ""
#endif

namespace tensorgrad::webgpu {

namespace fs = std::filesystem;

namespace {

constexpr const char* kFile = "libwebgpu_wrapper.so";

// The path of the program or shared library that this code is part of.
fs::path own_path() {
  Dl_info info{};
  if (!dladdr(reinterpret_cast<const void*>(&library_places), &info) || !info.dli_fname) return {};
  std::error_code error;
  // A program that was started by its bare name is listed by that name.
  fs::path path = fs::path(info.dli_fname).has_parent_path()
                      ? fs::canonical(info.dli_fname, error)
                      : fs::canonical("/proc/self/exe", error);
  return error ? fs::path() : path;
}

}  // namespace

std::vector<std::string> library_places() {
  std::vector<std::string> places;
  if (const fs::path own = own_path(); !own.empty()) {
    places.push_back(own.parent_path().parent_path() / "lib/tensorgrad" / kFile);
    places.push_back(own.parent_path() / kFile);
  }
  if (*TENSORGRAD_WEBGPU_INSTALLED) places.push_back(fs::path(TENSORGRAD_WEBGPU_INSTALLED) / kFile);
  if (*TENSORGRAD_WEBGPU_FETCHED) places.push_back(fs::path(TENSORGRAD_WEBGPU_FETCHED) / kFile);
  return places;
}

std::string first_of(const std::vector<std::string>& places) {
  for (const std::string& place : places) {
    std::error_code error;
    if (fs::exists(place, error)) return place;
  }
  throw DeviceError(fmt::format(
      "webgpu: the library {} was not found\n"
      "  hint: run ./tg webgpu in tensorgrad's source tree, or name it in TG_WEBGPU_LIBRARY",
      kFile));
}

Library load_library(const std::string& path) {
  // Never closed: it has threads of its own. Local: it brings along the symbols of its own parts.
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) throw DeviceError(fmt::format("webgpu: cannot load the library: {}", dlerror()));
  Library library;
  library.path = path;
  const char* missing = nullptr;
#define TENSORGRAD_WEBGPU_FIND(name, result, arguments)                                   \
  library.call.name = reinterpret_cast<result(*) arguments>(dlsym(handle, "wgpu" #name)); \
  if (!library.call.name && !missing) missing = "wgpu" #name;
  {
    using namespace api;
    TENSORGRAD_WEBGPU_FUNCTIONS(TENSORGRAD_WEBGPU_FIND)
  }
#undef TENSORGRAD_WEBGPU_FIND
  if (missing) {
    dlclose(handle);
    throw DeviceError(
        fmt::format("webgpu: {} is not the library that is needed, or too old: it has no {}\n"
                    "  hint: Dawn of spring 2025 is expected; ./tg webgpu gets it",
                    path, missing));
  }
  return library;
}

const Library& library() {
  static std::mutex mutex;
  static std::optional<Library> loaded;
  std::lock_guard lock(mutex);
  if (!loaded) {
    const char* named = std::getenv("TG_WEBGPU_LIBRARY");
    loaded = load_library(named && *named ? named : first_of(library_places()));
  }
  return *loaded;
}

}  // namespace tensorgrad::webgpu
