// DeviceModel: the costs and limits of one kind of device, as data. Stages that choose (which
// matmuls to join, which kernels run side by side, which variant of a kernel) ask the model of the
// device that the program is compiled for. A number that was measured on one device stands in that
// device's model alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tensorgrad::ir {

struct DeviceModel {
  std::string_view name;

  // Passes `products` and `side_by_side`: matmuls of this many operations each run better one by
  // one than joined. Each of them fills the device, and smaller tiles share out better; larger ones
  // gain more from reading an operand once.
  struct Apart {
    std::int64_t from = 0, below = 0;  // operations
    constexpr bool contains(std::int64_t operations) const {
      return operations >= from && operations < below;
    }
  } apart;

  // Stage `fuse`, order of the groups: a kernel beyond one of these fills the device by itself.
  // Smaller ones that do not depend on each other run side by side.
  struct SideBySide {
    std::int64_t elements = 0;    // of each node
    std::int64_t operations = 0;  // of each matmul
    std::size_t kernels = 1;      // at most this many together
  } side_by_side;
};

// Processors with vector instructions.
const DeviceModel& cpu_model();
// GPUs through WebGPU; measured on an H200.
const DeviceModel& gpu_model();

}  // namespace tensorgrad::ir
