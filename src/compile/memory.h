// Errors for lack of memory. They list the largest tensors, as the user knows them, and the total
// that the program needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device.h"
#include "schedule/plan.h"
#include "tensorgrad/array.h"
#include "tensorgrad/completion.h"
#include "tensorgrad/error.h"

namespace tensorgrad::detail {

struct Tenant {
  std::string text;  // "l1.W f32[3,16]", "f32[32,16] of matmul in l1, at train.cpp:12"
  std::int64_t bytes = 0;
};

std::vector<Tenant> tenants(const schedule::Layout& layout);
// For the arena: the tensors that are alive when most of it is in use.
std::vector<Tenant> tenants(const schedule::Plan& plan);

// Allocates device memory. If there is none, the error lists what `largest` returns; `plan` is null
// before there is one. Both must exist until then.
Completion<std::shared_ptr<runtime::Buffer>> allocate(runtime::Device& device, ir::Space space,
                                                      std::int64_t elements,
                                                      const schedule::Plan* plan,
                                                      std::function<std::vector<Tenant>()> largest);

// Allocates an array of that type and lets `fill` write its bytes. `what` names it in the error if
// the host lacks memory.
Array host_array(const ir::Type& type, std::string_view what,
                 const std::function<void(std::span<std::byte>)>& fill);

OutOfMemoryError no_host_memory(const ir::Type& type, std::string_view what);

// The name of a space in errors.
const char* word(ir::Space space);

// Adds the largest tenants, the total that the program needs (if there is a plan) and a hint to an
// error.
OutOfMemoryError explained(const OutOfMemoryError& error, std::vector<Tenant> tenants,
                           const schedule::Plan* plan, const std::string& hint);

}  // namespace tensorgrad::detail
