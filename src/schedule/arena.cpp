#include "schedule/arena.h"

#include <algorithm>
#include <numeric>

#include "schedule/layout.h"
#include "support/integers.h"

namespace tensorgrad::schedule {

namespace {

// Each block, in the given order, goes into the lowest gap between those that live at the same
// time.
Packing first_fit(const std::vector<Block>& blocks, const std::vector<std::size_t>& order,
                  std::int64_t piece) {
  Packing out;
  out.offsets.assign(blocks.size(), 0);
  std::vector<std::size_t> placed;  // by offset
  for (const std::size_t i : order) {
    const std::int64_t size = aligned(blocks[i].elements);
    const auto inside = [&](std::int64_t at) {
      return at % piece + size <= piece ? at : round_up(at, piece);
    };
    std::int64_t offset = 0;
    for (const std::size_t other : placed) {
      const Block& b = blocks[other];
      if (b.born > blocks[i].dies || blocks[i].born > b.dies) continue;
      if (offset + size <= out.offsets[other]) break;
      offset = std::max(offset, inside(out.offsets[other] + aligned(b.elements)));
    }
    out.offsets[i] = offset;
    out.elements = std::max(out.elements, offset + size);
    const auto behind =
        std::upper_bound(placed.begin(), placed.end(), offset,
                         [&](std::int64_t o, std::size_t p) { return o < out.offsets[p]; });
    placed.insert(behind, i);
  }
  return out;
}

}  // namespace

Packing pack(const std::vector<Block>& blocks, std::int64_t piece) {
  std::vector<std::size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  Packing best = first_fit(blocks, order, piece);
  const auto try_by = [&](auto key) {
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return key(blocks[a]) > key(blocks[b]); });
    Packing other = first_fit(blocks, order, piece);
    if (other.elements < best.elements) best = std::move(other);
  };
  try_by([](const Block& b) { return b.elements; });
  try_by([](const Block& b) { return b.elements * (b.dies - b.born + 1); });
  try_by([](const Block& b) { return static_cast<std::int64_t>(b.dies - b.born); });
  return best;
}

Peak most_alive(const std::vector<Block>& blocks) {
  Peak most;
  for (const Block& at : blocks) {  // the peak is reached where something is born
    std::int64_t alive = 0;
    for (const Block& b : blocks)
      if (b.born <= at.born && at.born <= b.dies) alive += aligned(b.elements);
    if (alive > most.elements) most = {alive, at.born};
  }
  return most;
}

}  // namespace tensorgrad::schedule
