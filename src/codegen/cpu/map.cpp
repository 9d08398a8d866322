// Kernels of kind `map` and `scan`: a program over the space, stored element by element.
#include <algorithm>

#include "codegen/cpu/compiled.h"

namespace tensorgrad::cpu {

namespace {

constexpr std::int64_t kTask = 16 * kBlock;  // elements

class Map : public Compiled {
 public:
  explicit Map(const ir::Kernel& kernel)
      : program_(kernel), place_(kernel.store.place), count_(kernel.space.count()) {}

  void run(const Memory& memory, Executor& executor) const override {
    float* const out = memory.at(place_);
    executor.run(ceil_div(count_, kTask), [&](std::int64_t task) {
      float* const scratch = scratch_floats(program_.scratch());
      const std::int64_t end = std::min(count_, (task + 1) * kTask);
      for (std::int64_t begin = task * kTask; begin < end; begin += kBlock) {
        const int n = static_cast<int>(std::min<std::int64_t>(kBlock, end - begin));
        const float* value = program_.run(memory, begin, n, scratch);
        std::copy_n(value, n, out + begin);
      }
    });
  }

 private:
  BlockProgram program_;
  ir::Place place_;
  std::int64_t count_;
};

// A running sum along each row; rows side by side.
class Scan : public Compiled {
 public:
  explicit Scan(const ir::Kernel& kernel)
      : program_(kernel),
        place_(kernel.store.place),
        map_(kernel.store.map),
        length_(kernel.space.back()),
        rows_(length_ ? kernel.space.count() / length_ : 0),
        reverse_(kernel.reverse),
        real_(kernel.store.dtype == DType::f32) {}

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
    T* const out = reinterpret_cast<T*>(memory.at(place_)) + map_.address_of_linear(row * length_, no_fill);
    const std::int64_t stride = map_.stride(map_.shape().rank() - 1);
    Sum sum = 0;
    const std::int64_t blocks = ceil_div(length_, kBlock);
    for (std::int64_t b = 0; b < blocks; ++b) {
      const std::int64_t begin = (reverse_ ? blocks - 1 - b : b) * kBlock;
      const int n = static_cast<int>(std::min<std::int64_t>(kBlock, length_ - begin));
      const T* value = reinterpret_cast<const T*>(program_.run(memory, row * length_ + begin, n, scratch));
      for (int i = 0; i < n; ++i) {
        const int j = reverse_ ? n - 1 - i : i;
        sum += static_cast<Sum>(value[j]);
        out[(begin + j) * stride] = static_cast<T>(sum);
      }
    }
  }

  BlockProgram program_;
  ir::Place place_;
  ir::IndexMap map_;
  std::int64_t length_, rows_;
  bool reverse_, real_;
};

}  // namespace

std::unique_ptr<Compiled> compile_map(const ir::Kernel& kernel) { return std::make_unique<Map>(kernel); }
std::unique_ptr<Compiled> compile_scan(const ir::Kernel& kernel) { return std::make_unique<Scan>(kernel); }

}  // namespace tensorgrad::cpu
