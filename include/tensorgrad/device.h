// The devices that programs can run on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tensorgrad {

// The type of a matrix element.
enum class MatrixComponent : std::uint8_t { float32, float16, uint32, int32, uint8, int8 };

// A shape that the matrix units of a GPU multiply: [M, K] by [K, N].
struct MatrixShape {
  MatrixComponent component{};  // of the operands
  MatrixComponent result{};     // of the sums
  int M = 0, N = 0, K = 0;

  bool operator==(const MatrixShape&) const = default;
};

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
  bool shader_f16 = false;             // shaders can compute with 16-bit floats
  bool subgroups = false;
  int subgroup_min = 0, subgroup_max = 0;  // invocations of a subgroup; 0 without subgroups
  std::vector<MatrixShape> matrix_shapes;  // empty without matrix units
  bool timestamps = false;                 // kernels can be timed individually

  // CPU only: the vector instructions in use ("AVX2", "NEON"; "AMX": AVX-512 and the tile unit).
  std::string simd;
};

// Lists the devices: "cpu", then "webgpu:0", "webgpu:1", ..., and "webgpu", which is short for the
// first GPU. Without a GPU, the `problem` of "webgpu" says why. The environment variable
// TENSORGRAD_DEVICE sets what "auto" chooses.
std::vector<DeviceInfo> devices();

}  // namespace tensorgrad
