// The result of stage `emit` for a kernel: one compute shader, or several that run in order.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ir/kernel.h"

namespace tensorgrad::wgsl {

// Device limits. The defaults hold on every WebGPU device.
struct Target {
  std::int64_t invocations = 256;  // per workgroup
  std::int64_t workgroup_bytes = 16384;
  std::int64_t workgroups = 65535;  // per dimension
  std::int64_t bindings = 8;
  int tag = 0;  // identifies the program in fault records
};

// Memory that a shader binds. The spaces of a kernel come first. The others exist only on devices:
// `scratch` passes partial results from one shader of a kernel to the next, `faults` records bad
// ids.
enum class Region : std::uint8_t {
  parameters,
  gradients,
  state,
  inputs,
  outputs,
  arena,
  arena_1,
  arena_2,
  arena_3,
  scratch,
  faults
};
inline constexpr int kRegions = ir::kSpaces + 2;
const char* name(Region region);

struct Binding {
  Region region = Region::arena;
  bool writable = false;
};

struct Shader {
  std::string name;  // short, for messages and profiles
  std::string wgsl;
  std::vector<Binding> bindings;  // @group(0) @binding(0), ...
  std::array<std::uint32_t, 3> workgroups{1, 1, 1};
  std::int64_t scratch_elements = 0;
};

// Emits the kernels of a program, in order, as shaders. Kernels of one stage share a shader where
// possible. The second shader of a kernel runs with the next stage if nothing depends on it
// earlier.
//
// The first bad id is recorded in `faults` as (tag << 24 | node + 1, id). Kernels that write
// parameters or state skip their stores when a fault is recorded. `guarded`: some kernel of the
// program checks ids.
std::vector<Shader> emit(std::span<const ir::Kernel> kernels, const Target& target, bool guarded);

// Whether a kernel may record a fault.
bool checks_ids(const ir::Kernel& kernel);

}  // namespace tensorgrad::wgsl
