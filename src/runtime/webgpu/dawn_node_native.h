// Dawn as npm's package `webgpu` carries it: an add-on for Node, `dawn.node`. It exports none of
// Dawn's C functions, but its symbol table lists them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace tensorgrad::webgpu {

// Finds a function by its name; null if there is none.
using FindFunction = std::function<void*(const char* name)>;

// Whether the file is an add-on for Node, by its name.
bool is_node_addon(const std::string& path);

// Loads an add-on and returns how to find Dawn's C functions in it. Loads a file once, and never
// unloads it. Throws a
// DeviceError if the file is not Dawn for this machine, or has lost its symbol table.
FindFunction load_dawn_node(const std::string& path);

// The functions that load_dawn_node() needs and where they are in the file. Throws like it, but
// also reads files for other machines.
std::map<std::string, std::uint64_t> dawn_node_entries(const std::string& path);

// The path of an add-on that was loaded, given the name under which the system lists it. Returns
// other names unchanged.
std::string original_path(const std::string& listed);

}  // namespace tensorgrad::webgpu
