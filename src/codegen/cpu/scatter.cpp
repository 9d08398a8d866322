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

// Each task owns a range of columns and adds row by row, in order.
class SegmentSum : public Compiled {
 public:
  SegmentSum(const ir::Kernel& kernel, const ir::SegmentSumKernel& core)
      : ids_(kernel.loads[0]),
        values_(kernel.loads[1]),
        place_(core.store.place),
        elements_(core.store.elements),
        node_(core.store.node),
        P_(core.length),
        D_(core.lines),
        rows_(core.extent) {}

  void run(const Memory& memory, Executor& executor) const override {
    float* const out = memory.at(place_);
    std::fill_n(out, elements_, 0.0f);
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
  std::int64_t elements_;  // of the result
  ir::NodeId node_;
  std::int64_t P_, D_, rows_;
};

class ScatterAdd : public Compiled {
 public:
  ScatterAdd(const ir::Kernel& kernel, const ir::ScatterAddKernel& core)
      : ids_(kernel.loads[0]),
        values_(kernel.loads[1]),
        place_(core.store.place),
        elements_(core.store.elements),
        node_(core.store.node),
        map_(core.store_map),
        length_(core.length),
        rows_(core.lines),
        extent_(core.extent),
        stride_(map_.stride(map_.shape().rank() - 1)) {}

  void run(const Memory& memory, Executor& executor) const override {
    float* const out = memory.at(place_);
    std::fill_n(out, elements_, 0.0f);
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
  std::int64_t elements_;  // of the result
  ir::NodeId node_;
  ir::IndexMap map_;
  std::int64_t length_, rows_, extent_, stride_;
};

}  // namespace

std::unique_ptr<Compiled> compile_core(const ir::Kernel& kernel, const ir::SegmentSumKernel& core) {
  return std::make_unique<SegmentSum>(kernel, core);
}
std::unique_ptr<Compiled> compile_core(const ir::Kernel& kernel, const ir::ScatterAddKernel& core) {
  return std::make_unique<ScatterAdd>(kernel, core);
}

}  // namespace tensorgrad::cpu
