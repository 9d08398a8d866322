// The WebGPU adapters of this machine, with the data needed to choose one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/webgpu/library.h"
#include "tensorgrad/device.h"

namespace tensorgrad::webgpu {

struct Limits {
  std::uint64_t buffer_bytes = 0;         // maximum size of one buffer
  std::uint64_t binding_bytes = 0;        // maximum size of a storage binding
  std::uint64_t uniform_bytes = 0;        // maximum size of a uniform binding
  std::uint32_t binding_alignment = 256;  // of binding offsets
  std::uint32_t storage_buffers = 8;      // per kernel
  std::uint32_t workgroup_bytes = 0;
  std::uint32_t workgroup_invocations = 0;
  std::uint32_t workgroup_size[3] = {};
  std::uint32_t workgroups = 0;  // per dimension of a dispatch
};

struct AdapterInfo {
  std::string name;  // from the driver
  std::string vendor;
  std::string driver;   // the driver's description, with its version
  std::string backend;  // "vulkan", "metal", "d3d12", ...
  std::string type;     // "discrete", "integrated", "software", "unknown"
  bool software = false;
  bool subgroups = false;  // without them the sizes below are 0
  bool timestamps = false;
  bool shader_f16 = false;
  std::vector<MatrixShape> matrix_shapes;  // that subgroups multiply; empty without the feature
  std::uint32_t subgroup_min = 0, subgroup_max = 0;
  Limits limits;
};

// Hardware adapters come first. Returns an empty list if there are none; throws a DeviceError if
// there is no library.
std::vector<AdapterInfo> adapters();

// The index of the first hardware adapter; nothing if there is no library or no such adapter.
std::optional<std::size_t> first_hardware();

// The reason why adapters() is empty, with a hint.
std::string why_no_adapter();

DeviceInfo info_of(const AdapterInfo& adapter, std::string name);

// --- for Gpu ------------------------------------------------------------------------------------

// The instance of this process. Never destroyed: drivers have problems with that at exit.
api::Instance instance(const Library& library);

struct FoundAdapter {
  Handle<api::AdapterImpl> adapter;
  AdapterInfo info;
};
// The adapters of the platform, hardware first.
std::vector<FoundAdapter> find_adapters(const Library& library);

// The adapter with this index in adapters(); null if there is none.
Handle<api::AdapterImpl> adapter_at(const Library& library, std::size_t index);

AdapterInfo describe(const Library& library, api::Adapter adapter);
Limits limits_from(const api::Limits& limits);

}  // namespace tensorgrad::webgpu
