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

// The library of this process: the one that TENSORGRAD_WEBGPU_LIBRARY names, or else the first that
// is there of those that library_places() lists. Loaded once and never unloaded. A DeviceError says
// what is missing and how to get it; the next call tries again.
const Library& library();

// The first of these paths that exists. A DeviceError if none does.
std::string first_of(const std::vector<std::string>& places);

// Loads the library at this path. A DeviceError if it is none or not one that we know how to call.
Library load_library(const std::string& path);

// The library that made a device of the program's own: the one at this path, or that whose
// wgpuGetProcAddress this is. With neither, the one that the program is linked with, or else
// library(). Never unloaded.
const Library& library_of_program(const std::string& path, void* get_proc_address);

// The file that the functions are in, and the one whose object a handle points at; empty where that
// cannot be told.
std::string file_of(const Library& library);
std::string maker_of(const void* handle);

// Where the library is looked for, in this order: in lib/tensorgrad beside the folder of the
// running program, in that program's folder, where the package was installed, where ./tg put it.
std::vector<std::string> library_places();

// Owns one reference to an object of the library.
template <class Object>
using Handle = std::unique_ptr<Object, void (*)(Object*)>;

}  // namespace tensorgrad::webgpu
