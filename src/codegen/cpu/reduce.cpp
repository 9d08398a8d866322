// Kernels of kind `reduce` and `arg_reduce`. Long reductions are cut into chunks of fixed size;
// the parts are combined in order, in double, and rounded once.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "codegen/cpu/compiled.h"

namespace tensorgrad::cpu {

using ir::Combine;

namespace {

constexpr std::int64_t kChunk = 64 * kBlock;  // elements of one row that one task takes
constexpr std::int64_t kChunkRows = 256;      // rows that one task adds up, when they are leading
constexpr std::int64_t kTask = 16 * kBlock;   // elements of short rows that one task takes

// Sums of at most kBlock values: eight running sums, joined pairwise.
double sum_block(const float* x, int n) {
  float lane[8] = {};
  int i = 0;
  for (; i + 8 <= n; i += 8)
    for (int j = 0; j < 8; ++j) lane[j] += x[i + j];
  double tail = 0;
  for (; i < n; ++i) tail += x[i];
  const double a = (static_cast<double>(lane[0]) + lane[4]) + (static_cast<double>(lane[2]) + lane[6]);
  const double b = (static_cast<double>(lane[1]) + lane[5]) + (static_cast<double>(lane[3]) + lane[7]);
  return (a + b) + tail;
}

// Values in double are exact for i32 too, up to sums and products that wrap; those go by integer.
template <class T>
struct Fold {
  Combine combine;

  double start() const { return ir::identity(combine, std::is_same_v<T, float> ? DType::f32 : DType::i32); }

  double join(double a, double b) const {
    switch (combine) {
      case Combine::add: return wrapped(a + b);
      case Combine::mul: return product(a, b);
      case Combine::max: return a != a || b != b ? a + b : std::max(a, b);
      case Combine::min: return a != a || b != b ? a + b : std::min(a, b);
      case Combine::none: break;
    }
    return a;
  }

  double block(double acc, const T* x, int n) const {
    if constexpr (std::is_same_v<T, float>) {
      if (combine == Combine::add) return acc + sum_block(x, n);
      if (combine == Combine::max || combine == Combine::min) {
        // Infinity minus itself and the like never arise: only order matters, and NaN wins.
        for (int i = 0; i < n; ++i) acc = join(acc, static_cast<double>(x[i]));
        return acc;
      }
    }
    for (int i = 0; i < n; ++i) acc = join(acc, static_cast<double>(x[i]));
    return acc;
  }

  static double wrapped(double v) {
    if constexpr (std::is_same_v<T, float>) return v;
    else return static_cast<double>(static_cast<std::int32_t>(static_cast<std::uint32_t>(static_cast<std::int64_t>(v))));
  }
  static double product(double a, double b) {
    if constexpr (std::is_same_v<T, float>) return a * b;
    else
      return static_cast<double>(static_cast<std::int32_t>(static_cast<std::uint32_t>(static_cast<std::int64_t>(a)) *
                                                           static_cast<std::uint32_t>(static_cast<std::int64_t>(b))));
  }
};

template <class T>
class Reduce : public Compiled {
 public:
  explicit Reduce(const ir::Kernel& kernel)
      : program_(kernel), place_(kernel.store.place), fold_{kernel.combine}, leading_(kernel.leading) {
    const int rank = kernel.space.rank();
    for (int d = 0; d < rank; ++d) {
      const bool inner = leading_ ? d < kernel.reduced : d >= rank - kernel.reduced;
      (inner ? inner_ : outer_) *= kernel.space[d];
    }
  }

  void run(const Memory& memory, Executor& executor) const override {
    if (outer_ == 0) return;
    if (inner_ == 0) {
      std::fill_n(reinterpret_cast<T*>(memory.at(place_)), outer_, static_cast<T>(fold_.start()));
    } else if (leading_) {
      columns(memory, executor);
    } else if (inner_ <= kBlock) {
      short_rows(memory, executor);
    } else {
      long_rows(memory, executor);
    }
  }

 private:
  const T* values(const Memory& memory, std::int64_t begin, int n, float* scratch) const {
    return reinterpret_cast<const T*>(program_.run(memory, begin, n, scratch));
  }

  // As many whole rows as fit a block at a time.
  void short_rows(const Memory& memory, Executor& executor) const {
    T* const out = reinterpret_cast<T*>(memory.at(place_));
    const std::int64_t per_block = kBlock / inner_, per_task = std::max<std::int64_t>(1, kTask / inner_);
    executor.run(ceil_div(outer_, per_task), [&](std::int64_t task) {
      float* const scratch = scratch_floats(program_.scratch());
      const std::int64_t end = std::min(outer_, (task + 1) * per_task);
      for (std::int64_t row = task * per_task; row < end; row += per_block) {
        const std::int64_t rows = std::min(per_block, end - row);
        const T* x = values(memory, row * inner_, static_cast<int>(rows * inner_), scratch);
        for (std::int64_t r = 0; r < rows; ++r)
          out[row + r] = static_cast<T>(fold_.block(fold_.start(), x + r * inner_, static_cast<int>(inner_)));
      }
    });
  }

  void long_rows(const Memory& memory, Executor& executor) const {
    T* const out = reinterpret_cast<T*>(memory.at(place_));
    const std::int64_t chunks = ceil_div(inner_, kChunk);
    std::vector<double> parts(static_cast<std::size_t>(outer_ * chunks));
    executor.run(outer_ * chunks, [&](std::int64_t task) {
      float* const scratch = scratch_floats(program_.scratch());
      const std::int64_t row = task / chunks, first = task % chunks * kChunk;
      const std::int64_t end = std::min(inner_, first + kChunk);
      double acc = fold_.start();
      for (std::int64_t i = first; i < end; i += kBlock) {
        const int n = static_cast<int>(std::min<std::int64_t>(kBlock, end - i));
        acc = fold_.block(acc, values(memory, row * inner_ + i, n, scratch), n);
      }
      parts[static_cast<std::size_t>(task)] = acc;
    });
    for (std::int64_t row = 0; row < outer_; ++row) {
      double acc = fold_.start();
      for (std::int64_t c = 0; c < chunks; ++c) acc = fold_.join(acc, parts[static_cast<std::size_t>(row * chunks + c)]);
      out[row] = static_cast<T>(acc);
    }
  }

  // The reduced axes lead: blocks of columns are added row by row.
  void columns(const Memory& memory, Executor& executor) const {
    T* const out = reinterpret_cast<T*>(memory.at(place_));
    const std::int64_t blocks = ceil_div(outer_, kBlock), chunks = ceil_div(inner_, kChunkRows);
    std::vector<double> parts(static_cast<std::size_t>(chunks * outer_));
    executor.run(blocks * chunks, [&](std::int64_t task) {
      float* const scratch = scratch_floats(program_.scratch());
      const std::int64_t column = task % blocks * kBlock, first = task / blocks * kChunkRows;
      const int n = static_cast<int>(std::min<std::int64_t>(kBlock, outer_ - column));
      double* const acc = parts.data() + task / blocks * outer_ + column;
      std::fill_n(acc, n, fold_.start());
      for (std::int64_t row = first; row < std::min(inner_, first + kChunkRows); ++row) {
        const T* x = values(memory, row * outer_ + column, n, scratch);
        if (std::is_same_v<T, float> && fold_.combine == Combine::add)
          for (int i = 0; i < n; ++i) acc[i] += static_cast<double>(x[i]);
        else
          for (int i = 0; i < n; ++i) acc[i] = fold_.join(acc[i], static_cast<double>(x[i]));
      }
    });
    for (std::int64_t i = 0; i < outer_; ++i) {
      double acc = parts[static_cast<std::size_t>(i)];
      for (std::int64_t c = 1; c < chunks; ++c) acc = fold_.join(acc, parts[static_cast<std::size_t>(c * outer_ + i)]);
      out[i] = static_cast<T>(acc);
    }
  }

  BlockProgram program_;
  ir::Place place_;
  Fold<T> fold_;
  bool leading_;
  std::int64_t inner_ = 1, outer_ = 1;
};

// The first best element of each row; NaN is best of all, as in PyTorch.
template <class T>
class ArgReduce : public Compiled {
 public:
  explicit ArgReduce(const ir::Kernel& kernel)
      : program_(kernel),
        place_(kernel.store.place),
        inner_(kernel.space.back()),
        outer_(kernel.space.count() / std::max<std::int64_t>(1, inner_)),
        largest_(kernel.combine == Combine::max) {}

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
      const T* x = reinterpret_cast<const T*>(program_.run(memory, row * inner_ + begin, n, scratch));
      for (int i = 0; i < n; ++i) {
        const bool better = where < 0 || (best == best && (x[i] != x[i] || (largest_ ? x[i] > best : x[i] < best)));
        if (better) best = x[i], where = begin + i;
      }
    }
    return static_cast<std::int32_t>(where);
  }

  BlockProgram program_;
  ir::Place place_;
  std::int64_t inner_, outer_;
  bool largest_;
};

}  // namespace

std::unique_ptr<Compiled> compile_reduce(const ir::Kernel& kernel) {
  if (kernel.store.dtype == DType::f32) return std::make_unique<Reduce<float>>(kernel);
  return std::make_unique<Reduce<std::int32_t>>(kernel);
}

std::unique_ptr<Compiled> compile_arg_reduce(const ir::Kernel& kernel) {
  const DType dtype = kernel.program.code.back().dtype;
  if (dtype == DType::f32) return std::make_unique<ArgReduce<float>>(kernel);
  return std::make_unique<ArgReduce<std::int32_t>>(kernel);
}

}  // namespace tensorgrad::cpu
