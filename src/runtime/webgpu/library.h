// The WebGPU library: found and loaded at run time, so that programs start and run without it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/webgpu/functions.h"

namespace tensorgrad::webgpu {

struct Library {
  std::string path;
  api::Functions call;
};

// The library of this process: TENSORGRAD_WEBGPU_LIBRARY, or a suitable libwebgpu_dawn.so of the
// system, or the first existing one of library_places(). Loaded once and never unloaded. If it is
// missing, throws a DeviceError that says how to get it; the next call tries again.
const Library& library();

// The first of these paths that exists. Throws a DeviceError if none does.
std::string first_of(const std::vector<std::string>& places);

// Loads the library at this path: a Dawn that exports its functions, or npm's dawn.node. Throws a
// DeviceError that names the library if it is not one that we can call. Calls nothing before that.
Library load_library(const std::string& path);

// The library that created a device of the program: the one at this path, or the one with this
// wgpuGetProcAddress. With neither, the one that the program is linked with, or else library().
// Never unloaded.
const Library& library_of_program(const std::string& path, void* get_proc_address);

// The file of the functions, and the file whose object a handle points at; empty if unknown.
std::string file_of(const Library& library);
std::string maker_of(const void* handle);

// The search path of the library, in order: lib/tensorgrad beside the folder of the running
// program, that program's folder, the installation folder of the package, the folder of ./tg
// webgpu.
std::vector<std::string> library_places();

// Owns one reference to an object of the library.
template <class Object>
using Handle = std::unique_ptr<Object, void (*)(Object*)>;

}  // namespace tensorgrad::webgpu
