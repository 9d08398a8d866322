// Sorting by key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tensorgrad {

// The indices of the keys in ascending order of the keys. Equal keys keep their order.
std::vector<std::size_t> order_by(const std::vector<std::int64_t>& keys);

}  // namespace tensorgrad
