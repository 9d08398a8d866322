// The adapters that WebGPU offers on this machine, with what a choice among them needs to know.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/webgpu/library.h"

namespace tensorgrad::webgpu {

struct Limits {
  std::uint64_t buffer_bytes = 0;  // of one buffer
  std::uint64_t binding_bytes =
      0;  // of the part of a buffer that a kernel sees through one storage binding
  std::uint64_t uniform_bytes = 0;        // the same for a uniform binding
  std::uint32_t binding_alignment = 256;  // of the offsets of bindings
  std::uint32_t storage_buffers = 8;      // per kernel
  std::uint32_t workgroup_bytes = 0;
  std::uint32_t workgroup_invocations = 0;
  std::uint32_t workgroup_size[3] = {};
  std::uint32_t workgroups = 0;  // per dimension of a dispatch
};

struct AdapterInfo {
  std::string name;  // as its driver calls it
  std::string vendor;
  std::string driver;   // the driver's own words, version included
  std::string backend;  // "vulkan", "metal", "d3d12", ...
  std::string type;     // "discrete", "integrated", "software", "unknown"
  bool software = false;
  bool subgroups = false;  // sizes below are zero without
  bool timestamps = false;
  bool shader_f16 = false;
  std::uint32_t subgroup_min = 0, subgroup_max = 0;
  Limits limits;
};

// Hardware first. Empty when there is none; a DeviceError when there is no library.
std::vector<AdapterInfo> adapters();

// The first adapter that is no software, if there is a library and such an adapter.
std::optional<std::size_t> first_hardware();

// Why adapters() is empty, and what to do about it.
std::string why_no_adapter();

// --- for Gpu ------------------------------------------------------------------------------------

// The instance of this process, never destroyed: drivers do not like it at exit.
api::Instance instance(const Library& library);

// The adapter that has this place in adapters(), null if none has.
Handle<api::AdapterImpl> adapter_at(const Library& library, std::size_t index);

AdapterInfo describe(const Library& library, api::Adapter adapter);
Limits limits_from(const api::Limits& limits);

}  // namespace tensorgrad::webgpu
