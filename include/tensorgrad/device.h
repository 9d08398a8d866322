// The devices that programs can run on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tensorgrad {

// A device and what it can do.
struct DeviceInfo {
  std::string name;         // a value for TrainingOptions::device
  std::string description;  // human-readable
  bool available = false;
  bool chosen_by_auto = false;
  std::string problem;  // why it is not available, and the command that fixes it

  // GPU only.
  std::string backend;                 // what WebGPU runs on: "vulkan", "metal" or "d3d12"
  bool software = false;               // driver that computes on the CPU; "auto" does not choose it
  std::int64_t max_buffer_bytes = 0;   // largest buffer
  std::int64_t max_binding_bytes = 0;  // largest part of a buffer that a kernel can access
  bool subgroups = false;
  bool timestamps = false;  // kernels can be timed individually

  // CPU only: the vector instructions in use ("AVX2", "NEON"; "AMX": AVX-512 and the tile unit).
  std::string simd;
};

// Lists the devices: "cpu", then "webgpu:0", "webgpu:1", ..., and "webgpu", which is short for the
// first GPU. Without a GPU, the `problem` of "webgpu" says why. The environment variable
// TENSORGRAD_DEVICE sets what "auto" chooses.
std::vector<DeviceInfo> devices();

}  // namespace tensorgrad
