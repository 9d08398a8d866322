// Reads tensors of a device into arrays of the host.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "runtime/device.h"
#include "tensorgrad/array.h"
#include "tensorgrad/completion.h"

namespace tensorgrad::detail {

// Where a tensor lies on the device.
struct ArrayPlace {
  std::string name;  // of the array
  std::string what;  // names it in the error if the host lacks memory
  std::shared_ptr<const runtime::Buffer> buffer;
  std::int64_t offset = 0;  // in elements
  ir::Type type;
};

// Reads one array after the other: leave the buffers unchanged until all are read. The device must
// outlive the completion.
Completion<NamedArrays> read_arrays(runtime::Device& device, std::vector<ArrayPlace> places);

}  // namespace tensorgrad::detail
