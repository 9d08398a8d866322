// Who needs the memory that a program does not get: errors for lack of room name the largest tensors, as the
// user knows them, and what the whole program needs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/plan.h"
#include "tensorgrad/error.h"

namespace tensorgrad::detail {

struct Tenant {
  std::string text;  // "l1.W f32[3,16]", "f32[32,16] of matmul in l1, at train.cpp:12"
  std::int64_t bytes = 0;
};

std::vector<Tenant> tenants(const schedule::Layout& layout);
// Of the arena: those that live when most of it is in use.
std::vector<Tenant> tenants(const schedule::Plan& plan);

// What a space is called in errors.
const char* word(ir::Space space);

// The same error, with the largest tenants, what the program needs (if there is a plan) and a hint added.
OutOfMemoryError explained(const OutOfMemoryError& error, std::vector<Tenant> tenants, const schedule::Plan* plan,
                           const std::string& hint);

}  // namespace tensorgrad::detail
