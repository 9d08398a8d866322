#include "schedule/arena.h"

#include <algorithm>
#include <limits>
#include <map>
#include <queue>

#include "schedule/layout.h"
#include "support/integers.h"
#include "support/order.h"

namespace tensorgrad::schedule {

namespace {

// Placing blocks in an order other than by time compares all pairs of blocks.
constexpr std::size_t kMostBlocksCompared = 8192;

// The lowest offset, at or after `at`, where that many elements fit inside one piece or start one.
std::int64_t inside_piece(std::int64_t at, std::int64_t size, std::int64_t piece) {
  return at % piece + size <= piece ? at : round_up(at, piece);
}

// A list of free memory without an upper bound.
class FreeList {
 public:
  explicit FreeList(std::int64_t piece) : piece_(piece) {}

  // Allocates from the lowest gap that is large enough.
  std::int64_t allocate(std::int64_t size) {
    for (auto gap = gaps_.begin();; ++gap) {
      const auto [begin, end] = *gap;
      const std::int64_t at = inside_piece(begin, size, piece_);
      if (at + size > end) continue;
      gaps_.erase(gap);
      if (begin < at) gaps_.emplace(begin, at);
      if (at + size < end) gaps_.emplace(at + size, end);
      return at;
    }
  }

  void release(std::int64_t begin, std::int64_t size) {
    if (size == 0) return;
    std::int64_t end = begin + size;
    auto next = gaps_.lower_bound(begin);
    if (next != gaps_.end() && next->first == end) {
      end = next->second;
      next = gaps_.erase(next);
    }
    if (next != gaps_.begin() && std::prev(next)->second == begin)
      std::prev(next)->second = end;
    else
      gaps_.emplace(begin, end);
  }

 private:
  std::int64_t piece_;
  std::map<std::int64_t, std::int64_t> gaps_{{0, std::numeric_limits<std::int64_t>::max()}};
};

// First fit in order of time.
Packing first_fit_in_time(const std::vector<Block>& blocks, std::int64_t piece) {
  std::vector<std::int64_t> born;
  for (const Block& block : blocks) born.push_back(block.born);
  Packing out;
  out.offsets.assign(blocks.size(), 0);
  FreeList memory(piece);
  using Death = std::pair<int, std::size_t>;  // stage, block
  std::priority_queue<Death, std::vector<Death>, std::greater<>> alive;
  for (const std::size_t i : order_by(born)) {
    for (; !alive.empty() && alive.top().first < blocks[i].born; alive.pop()) {
      const std::size_t dead = alive.top().second;
      memory.release(out.offsets[dead], aligned(blocks[dead].elements));
    }
    const std::int64_t size = aligned(blocks[i].elements);
    out.offsets[i] = memory.allocate(size);
    out.elements = std::max(out.elements, out.offsets[i] + size);
    alive.emplace(blocks[i].dies, i);
  }
  return out;
}

// Places the blocks in the given order, each in the lowest gap between the blocks whose lifetimes
// overlap with its own.
Packing first_fit(const std::vector<Block>& blocks, const std::vector<std::size_t>& order,
                  std::int64_t piece) {
  Packing out;
  out.offsets.assign(blocks.size(), 0);
  std::vector<std::size_t> placed;  // sorted by offset
  for (const std::size_t i : order) {
    const std::int64_t size = aligned(blocks[i].elements);
    std::int64_t offset = 0;
    for (const std::size_t other : placed) {
      const Block& b = blocks[other];
      if (b.born > blocks[i].dies || blocks[i].born > b.dies) continue;
      if (offset + size <= out.offsets[other]) break;
      offset =
          std::max(offset, inside_piece(out.offsets[other] + aligned(b.elements), size, piece));
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
  Packing best = first_fit_in_time(blocks, piece);
  if (blocks.size() > kMostBlocksCompared) return best;
  const std::int64_t least = most_alive(blocks).elements;
  // The largest key comes first.
  const auto try_by = [&](std::int64_t (*key)(const Block&)) {
    if (best.elements == least) return;
    std::vector<std::int64_t> keys;
    for (const Block& block : blocks) keys.push_back(-key(block));
    Packing other = first_fit(blocks, order_by(keys), piece);
    if (other.elements < best.elements) best = std::move(other);
  };
  try_by([](const Block& b) { return b.elements; });
  try_by([](const Block& b) { return b.elements * (b.dies - b.born + 1); });
  try_by([](const Block& b) { return static_cast<std::int64_t>(b.dies - b.born); });
  return best;
}

Peak most_alive(const std::vector<Block>& blocks) {
  std::map<int, std::int64_t> change;  // change in live elements, by stage
  for (const Block& b : blocks) {
    change[b.born] += aligned(b.elements);
    change[b.dies + 1] -= aligned(b.elements);
  }
  Peak most;
  std::int64_t alive = 0;
  for (const auto& [stage, more] : change) {
    alive += more;
    if (alive > most.elements) most = {alive, stage};
  }
  return most;
}

}  // namespace tensorgrad::schedule
