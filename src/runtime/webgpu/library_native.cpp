#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>

#include "runtime/webgpu/dawn_node_native.h"
#include "runtime/webgpu/library.h"
#include "support/fail.h"

// Set by the build; an unknown place is an empty string.
#ifndef TENSORGRAD_WEBGPU_INSTALLED
#define TENSORGRAD_WEBGPU_INSTALLED ""
#endif
#ifndef TENSORGRAD_WEBGPU_FETCHED
#define TENSORGRAD_WEBGPU_FETCHED ""
#endif

namespace tensorgrad::webgpu {

namespace fs = std::filesystem;

namespace {

constexpr const char* kFile = "dawn.node";
constexpr const char* kSystemFile = "libwebgpu_dawn.so";  // a Dawn that exports its functions

// The path of the program or shared library that this code is part of.
fs::path own_path() {
  Dl_info info{};
  if (!dladdr(reinterpret_cast<const void*>(&library_places), &info) || !info.dli_fname) return {};
  std::error_code error;
  // A program that was started by its bare name is listed under that name.
  fs::path path = fs::path(info.dli_fname).has_parent_path()
                      ? fs::canonical(info.dli_fname, error)
                      : fs::canonical("/proc/self/exe", error);
  return error ? fs::path() : path;
}

// The loaded file that holds this address.
std::string file_of(const void* address) {
  Dl_info info{};
  return dladdr(address, &info) && info.dli_fname ? original_path(info.dli_fname) : "";
}

// Throws a DeviceError if `find` does not know one of the functions.
template <class Find>
Library with_functions(const std::string& path, Find find) {
  Library library;
  library.path = path;
  const char* missing = nullptr;
#define TENSORGRAD_WEBGPU_FIND(name, result, arguments)                          \
  library.call.name = reinterpret_cast<result(*) arguments>(find("wgpu" #name)); \
  if (!library.call.name && !missing) missing = "wgpu" #name;
  {
    using namespace api;
    TENSORGRAD_WEBGPU_FUNCTIONS(TENSORGRAD_WEBGPU_FIND)
  }
#undef TENSORGRAD_WEBGPU_FIND
  if (missing)
    throw DeviceError(
        fmt::format("webgpu: {} is another library or an old version: it has no {}\n"
                    "  hint: Dawn of 2026 is expected; ./tg webgpu gets it",
                    path, missing));
  return library;
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
  throw DeviceError(
      fmt::format("webgpu: the library {} was not found\n"
                  "  hint: run ./tg webgpu in tensorgrad's source tree, or name it in "
                  "TENSORGRAD_WEBGPU_LIBRARY",
                  kFile));
}

Library load_library(const std::string& path) {
  if (is_node_addon(path)) return with_functions(path, load_dawn_node(path));
  // Never closed, because it has its own threads. Local, because it exports symbols of its
  // dependencies.
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    throw DeviceError(
        fmt::format("webgpu: cannot load the library: {}\n  hint: ./tg webgpu gets it", dlerror()));
  try {
    return with_functions(path, [&](const char* name) { return dlsym(handle, name); });
  } catch (const DeviceError&) {
    dlclose(handle);
    throw;
  }
}

namespace {

// The library that the system has, if it is suitable.
std::optional<Library> installed_on_system() {
  try {
    return load_library(kSystemFile);
  } catch (const DeviceError&) {  // there is none, or it is another version
    return {};
  }
}

Library find_library() {
  const char* named = std::getenv("TENSORGRAD_WEBGPU_LIBRARY");
  if (named && *named) return load_library(named);
  if (auto found = installed_on_system()) return *std::move(found);
  return load_library(first_of(library_places()));
}

}  // namespace

const Library& library() {
  static std::mutex mutex;
  static std::optional<Library> loaded;
  std::lock_guard lock(mutex);
  if (!loaded) loaded = find_library();
  return *loaded;
}

const Library& library_of_program(const std::string& path, void* get_proc_address) {
  static std::mutex mutex;
  static std::map<std::string, Library> known;
  void* const linked = dlsym(RTLD_DEFAULT, "wgpuCreateInstance");
  if (path.empty() && !get_proc_address && !linked) return library();
  const std::string key = get_proc_address
                              ? fmt::format("wgpuGetProcAddress at {}", get_proc_address)
                          : path.empty() ? file_of(linked)
                                         : path;
  std::lock_guard lock(mutex);
  if (const auto found = known.find(key); found != known.end()) return found->second;
  if (get_proc_address) {
    const auto find = reinterpret_cast<void* (*)(api::StringView)>(get_proc_address);
    return known[key] =
               with_functions(key, [&](const char* name) { return find(std::string_view(name)); });
  }
  if (!path.empty()) return known[key] = load_library(path);
  return known[key] =
             with_functions(key, [&](const char* name) { return dlsym(RTLD_DEFAULT, name); });
}

std::string file_of(const Library& library) {
  return file_of(reinterpret_cast<const void*>(library.call.DeviceAddRef));
}

// Dawn's handles point at objects that start with the address of their vtable.
std::string maker_of(const void* handle) {
  return file_of(*static_cast<const void* const*>(handle));
}

}  // namespace tensorgrad::webgpu
