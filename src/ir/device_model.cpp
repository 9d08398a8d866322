#include "ir/device_model.h"

namespace tensorgrad::ir {

namespace {

constexpr DeviceModel kGpu = {
    .name = "gpu",
    .apart = {.from = std::int64_t{1} << 26, .below = std::int64_t{1} << 30},
    .side_by_side = {.elements = std::int64_t{1} << 22,
                     .operations = std::int64_t{1} << 30,
                     .kernels = 4},
};

// These numbers are the GPU's: nobody has measured the CPU's yet.
constexpr DeviceModel kCpu = {
    .name = "cpu",
    .apart = kGpu.apart,
    .side_by_side = kGpu.side_by_side,
};

}  // namespace

const DeviceModel& cpu_model() { return kCpu; }
const DeviceModel& gpu_model() { return kGpu; }

}  // namespace tensorgrad::ir
