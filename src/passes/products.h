// Pass `products`: afterwards a sum of products whose left sides are neighbouring columns of one
// matrix, and whose right sides are neighbouring parameters turned around, is one product. The
// gradient of what attention's projections read is such a sum.
#pragma once

#include <cstdint>

#include "ir/graph.h"

namespace tensorgrad::passes {

ir::Graph products(const ir::Graph& graph);

// Whether products of that many operations run better one by one than made into one: each of them
// fills a device, and smaller tiles share out better; larger ones gain more from reading an operand
// once (measured on an H200).
constexpr bool better_apart(std::int64_t operations) {
  return operations >= std::int64_t{1} << 26 && operations < std::int64_t{1} << 30;
}

}  // namespace tensorgrad::passes
