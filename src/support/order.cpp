#include "support/order.h"

#include <algorithm>
#include <numeric>

namespace tensorgrad {

std::vector<std::size_t> order_by(const std::vector<std::int64_t>& keys) {
  std::vector<std::size_t> order(keys.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return keys[a] < keys[b]; });
  return order;
}

}  // namespace tensorgrad
