// The table of all primitives. Each file of the folder lists one family.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "ir/primitive.h"

namespace tensorgrad::ops {

struct Family {
  std::string_view name;
  std::span<const ir::Primitive* const> primitives;
};

std::span<const Family> families();

// Returns the record with that name, or null.
const ir::Primitive* find_primitive(std::string_view name);
// Returns the record of an op that the compiler knows by id; not for OpId::other.
const ir::Primitive& primitive(ir::OpId id);
// Returns the record of a leaf.
const ir::Primitive& leaf_primitive(ir::Core kind);

// One function per file of the folder.
std::span<const ir::Primitive* const> leaf_family();
std::span<const ir::Primitive* const> elementwise_family();
std::span<const ir::Primitive* const> compare_family();
std::span<const ir::Primitive* const> movement_family();
std::span<const ir::Primitive* const> reduce_family();
std::span<const ir::Primitive* const> matmul_family();
std::span<const ir::Primitive* const> gather_family();
std::span<const ir::Primitive* const> window_family();
std::span<const ir::Primitive* const> conv1d_family();
std::span<const ir::Primitive* const> random_family();
std::span<const ir::Primitive* const> composite_family();
std::span<const ir::Primitive* const> attention_family();
std::span<const ir::Primitive* const> state_space_family();

}  // namespace tensorgrad::ops
