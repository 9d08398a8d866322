// The devices that programs can run on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tensorgrad {

struct DeviceInfo {
  std::string name;         // what TrainingOptions::device takes
  std::string description;  // for people
  bool available = false;
  bool chosen_by_auto = false;
  std::string problem;  // why it is not available, and the command that repairs it

  // Of GPUs.
  std::string backend;                 // what WebGPU runs on: "vulkan", "metal", "d3d12"
  bool software = false;               // a driver that computes on the CPU: never chosen by auto
  std::int64_t max_buffer_bytes = 0;   // of one buffer
  std::int64_t max_binding_bytes = 0;  // of what one kernel sees of a buffer
  bool subgroups = false;
  bool timestamps = false;  // kernels can be timed one by one

  // Of the CPU: the vector instructions in use ("AVX2", "NEON"; "AMX": AVX-512 and the tile unit).
  std::string simd;
};

// "cpu", then "webgpu:0", "webgpu:1", ... and "webgpu", which is short for the first of them; where
// there is none, "webgpu" says why.
std::vector<DeviceInfo> devices();

}  // namespace tensorgrad
