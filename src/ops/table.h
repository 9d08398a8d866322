// The table of all primitives: the families one after the other, each listed by its own file.
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

// The record of that name, or null.
const ir::Primitive* find_primitive(std::string_view name);

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
