// Kernels that add rows or elements by id. Each result element is owned by one task, which adds
// in the order of the ids.
#include <algorithm>
#include <vector>

#include "codegen/cpu/compiled.h"
#include "support/integers.h"

namespace tensorgrad::cpu {

namespace {

void check(std::int32_t id, std::int64_t extent, ir::NodeId node) {
  if (id < 0 || id >= extent) throw IndexError{id, extent, node};
}

// Reads `count` elements of a load from `begin`, block by block: f(position, value).
template <class F>
void each_element(const Reader& reader, const Memory& memory, std::int64_t begin,
                  std::int64_t count, float* block, F f) {
  for (std::int64_t i = 0; i < count; i += kBlock) {
    const int n = static_cast<int>(std::min<std::int64_t>(kBlock, count - i));
    const float* x = reader.read(memory, begin + i, n, block);
    for (int j = 0; j < n; ++j) f(i + j, x[j]);
  }
}

std::int32_t as_id(float bits) { return *reinterpret_cast<const std::int32_t*>(&bits); }

// Tasks own ranges of columns: row by row, in order.
class SegmentSum : public Compiled {
 public:
  explicit SegmentSum(const ir::Kernel& kernel)
      : ids_(kernel.loads[0]),
        values_(kernel.loads[1]),
        place_(kernel.stores[0].place),
        node_(kernel.stores[0].node),
        P_(kernel.length),
        D_(kernel.lines),
        rows_(kernel.extent) {}

  void run(const Memory& memory, Executor& executor) const override {
    float* const out = memory.at(place_);
    std::fill_n(out, rows_ * D_, 0.0f);
    std::vector<std::int32_t> ids(usize(P_));
    each_element(ids_, memory, 0, P_, scratch_floats(kBlock), [&](std::int64_t p, float bits) {
      ids[usize(p)] = as_id(bits);
      check(ids[usize(p)], rows_, node_);
    });
    constexpr std::int64_t kColumns = 64;
    executor.run(ceil_div(D_, kColumns), [&](std::int64_t task) {
      float* const block = scratch_floats(kBlock);
      const std::int64_t first = task * kColumns;
      const int n = static_cast<int>(std::min(kColumns, D_ - first));
      for (std::int64_t p = 0; p < P_; ++p) {
        const float* x = values_.read(memory, p * D_ + first, n, block);
        add_into(out + ids[usize(p)] * D_ + first, x, n);
      }
    });
  }

 private:
  Reader ids_, values_;
  ir::Place place_;
  ir::NodeId node_;
  std::int64_t P_, D_, rows_;
};

class ScatterAdd : public Compiled {
 public:
  explicit ScatterAdd(const ir::Kernel& kernel)
      : ids_(kernel.loads[0]),
        values_(kernel.loads[1]),
        place_(kernel.stores[0].place),
        node_(kernel.stores[0].node),
        map_(kernel.store_map),
        length_(kernel.length),
        rows_(kernel.lines),
        extent_(kernel.extent),
        stride_(map_.stride(map_.shape().rank() - 1)) {}

  void run(const Memory& memory, Executor& executor) const override {
    float* const out = memory.at(place_);
    std::fill_n(out, map_.shape().count(), 0.0f);
    executor.run(rows_, [&](std::int64_t row) {
      float* const block = scratch_floats(2 * kBlock);
      double no_fill = 0;
      float* const to = out + map_.address_of_linear(row * extent_, no_fill);
      for (std::int64_t i = 0; i < length_; i += kBlock) {
        const int n = static_cast<int>(std::min<std::int64_t>(kBlock, length_ - i));
        const float* ids = ids_.read(memory, row * length_ + i, n, block);
        const float* x = values_.read(memory, row * length_ + i, n, block + kBlock);
        for (int j = 0; j < n; ++j) {
          const std::int32_t id = as_id(ids[j]);
          check(id, extent_, node_);
          to[id * stride_] += x[j];
        }
      }
    });
  }

 private:
  Reader ids_, values_;
  ir::Place place_;
  ir::NodeId node_;
  ir::IndexMap map_;
  std::int64_t length_, rows_, extent_, stride_;
};

}  // namespace

std::unique_ptr<Compiled> compile_segment_sum(const ir::Kernel& kernel) {
  return std::make_unique<SegmentSum>(kernel);
}
std::unique_ptr<Compiled> compile_scatter_add(const ir::Kernel& kernel) {
  return std::make_unique<ScatterAdd>(kernel);
}

}  // namespace tensorgrad::cpu
