// Kernels of kind `scan` and `arg_reduce`: sequential walks along rows.
#include <algorithm>

#include "codegen/cpu/compiled.h"
#include "support/integers.h"

namespace tensorgrad::cpu {

namespace {

constexpr std::int64_t kTask = 1 << 13;  // elements

// A prefix sum along each row; rows run in parallel.
class Scan : public Compiled {
 public:
  Scan(const ir::Kernel& kernel, const ir::ScanKernel& core)
      : value_(core.store.value),
        program_(kernel.loads, core.program, std::span(&value_, 1)),
        place_(core.store.place),
        map_(core.store_map),
        length_(core.length),
        rows_(core.lines),
        reverse_(core.reverse),
        real_(core.store.dtype == DType::f32) {}

  void run(const Memory& memory, Executor& executor) const override {
    executor.run(rows_, [&](std::int64_t row) {
      if (real_)
        scan_row<float, double>(memory, row);
      else
        scan_row<std::int32_t, std::uint32_t>(memory, row);
    });
  }

 private:
  template <class T, class Sum>
  void scan_row(const Memory& memory, std::int64_t row) const {
    float* const scratch = scratch_floats(program_.scratch());
    double no_fill = 0;
    T* const out =
        reinterpret_cast<T*>(memory.at(place_)) + map_.address_of_linear(row * length_, no_fill);
    const std::int64_t stride = map_.stride(map_.shape().rank() - 1);
    Sum sum = 0;
    const std::int64_t blocks = ceil_div(length_, kBlock);
    for (std::int64_t b = 0; b < blocks; ++b) {
      const std::int64_t begin = (reverse_ ? blocks - 1 - b : b) * kBlock;
      const int n = static_cast<int>(std::min<std::int64_t>(kBlock, length_ - begin));
      const T* value = reinterpret_cast<const T*>(
          program_.run(memory, {row * length_ + begin, n, 0, 0}, scratch)[usize(value_)]);
      for (int i = 0; i < n; ++i) {
        const int j = reverse_ ? n - 1 - i : i;
        sum += static_cast<Sum>(value[j]);
        out[(begin + j) * stride] = static_cast<T>(sum);
      }
    }
  }

  ir::Reg value_;
  BlockProgram program_;
  ir::Place place_;
  ir::IndexMap map_;
  std::int64_t length_, rows_;
  bool reverse_, real_;
};

// The index of the first best element of each row; NaN ranks above all, as in PyTorch.
template <class T>
class ArgReduce : public Compiled {
 public:
  ArgReduce(const ir::Kernel& kernel, const ir::ArgReduceKernel& core)
      : value_(static_cast<ir::Reg>(core.program.code.size()) - 1),
        program_(kernel.loads, core.program, std::span(&value_, 1)),
        place_(core.store.place),
        inner_(core.length),
        outer_(core.lines),
        largest_(core.combine == ir::Combine::max) {}

  void run(const Memory& memory, Executor& executor) const override {
    auto* const out = reinterpret_cast<std::int32_t*>(memory.at(place_));
    const std::int64_t per_task = std::max<std::int64_t>(1, kTask / inner_);
    executor.run(ceil_div(outer_, per_task), [&](std::int64_t task) {
      float* const scratch = scratch_floats(program_.scratch());
      for (std::int64_t row = task * per_task; row < std::min(outer_, (task + 1) * per_task); ++row)
        out[row] = best(memory, row, scratch);
    });
  }

 private:
  std::int32_t best(const Memory& memory, std::int64_t row, float* scratch) const {
    T best{};
    std::int64_t where = -1;
    for (std::int64_t begin = 0; begin < inner_; begin += kBlock) {
      const int n = static_cast<int>(std::min<std::int64_t>(kBlock, inner_ - begin));
      const T* x = reinterpret_cast<const T*>(
          program_.run(memory, {row * inner_ + begin, n, 0, 0}, scratch)[usize(value_)]);
      for (int i = 0; i < n; ++i) {
        const bool better =
            where < 0 || (best == best && (x[i] != x[i] || (largest_ ? x[i] > best : x[i] < best)));
        if (better) best = x[i], where = begin + i;
      }
    }
    return static_cast<std::int32_t>(where);
  }

  ir::Reg value_;
  BlockProgram program_;
  ir::Place place_;
  std::int64_t inner_, outer_;
  bool largest_;
};

}  // namespace

std::unique_ptr<Compiled> compile_core(const ir::Kernel& kernel, const ir::ScanKernel& core) {
  return std::make_unique<Scan>(kernel, core);
}

std::unique_ptr<Compiled> compile_core(const ir::Kernel& kernel, const ir::ArgReduceKernel& core) {
  if (core.program.code.back().dtype == DType::f32)
    return std::make_unique<ArgReduce<float>>(kernel, core);
  return std::make_unique<ArgReduce<std::int32_t>>(kernel, core);
}

}  // namespace tensorgrad::cpu
