// Kernels of kind `selective_scan` and its gradient. A task is one block of channels of one
// sequence. It walks along the sequence chunk by chunk, and holds the states of at most one chunk.
// Operands are copied into rows of kScanChannels floats, whatever their index maps are.
#include <algorithm>

#include "codegen/cpu/compiled.h"
#include "codegen/cpu/operand_rows.h"
#include "codegen/cpu/selective_scan_lanes.h"
#include "support/integers.h"

namespace tensorgrad::cpu {

namespace {

using ir::SelectiveScanShape;

constexpr std::int64_t K = kScanChannels;

// Scratch memory of a task, split into arrays aligned to whole vectors.
class Arrays {
 public:
  explicit Arrays(float* next) : next_(next) {}
  float* take(std::int64_t count) {
    float* const out = next_;
    next_ += ceil_div(count, K) * K;
    return out;
  }

 private:
  float* next_;
};

// One block of channels of one sequence.
struct Block {
  std::int64_t b, first, width;
};

class Scan : public Compiled {
 protected:
  Scan(const ir::Kernel& kernel, const ir::SelectiveScanCore& core)
      : s_(core.shape), chunk_(std::min(s_.chunk, s_.L)), place_(core.store.place) {
    for (const ir::Load& load : kernel.loads) readers_.emplace_back(load), rows_.emplace_back(load);
  }

  std::int64_t blocks() const { return ceil_div(s_.E, K); }
  Block block(std::int64_t task) const {
    const std::int64_t first = task % blocks() * K;
    return {task / blocks(), first, std::min(K, s_.E - first)};
  }

  // Inputs of both directions: operands of the whole sequence, and of one chunk.
  struct Operands {
    float *A, *D, *u, *delta, *B, *C, *line;
  };
  std::int64_t operand_floats() const {
    return (2 * s_.N + 4 + 2 * chunk_) * K + 2 * chunk_ * s_.N;
  }

  Operands read_sequence(const Memory& memory, const Block& at, Arrays& arrays) const {
    Operands o{};
    o.line = arrays.take(std::max<std::int64_t>(1, s_.N) * K);
    o.A = arrays.take(s_.N * K);
    o.D = arrays.take(K);
    o.u = arrays.take(chunk_ * K);
    o.delta = arrays.take(chunk_ * K);
    o.B = arrays.take(chunk_ * s_.N);
    o.C = arrays.take(chunk_ * s_.N);
    read_states(memory, kA, at.first * s_.N, at, o.line, o.A);
    scan_decay(o.A, s_.N * K, o.A);
    pad(readers_[kD].read(memory, at.first, static_cast<int>(at.width), o.line), at.width, o.D);
    return o;
  }

  // Reads steps first .. first + T - 1; delta becomes softplus(delta).
  ScanSteps read_steps(const Memory& memory, const Block& at, std::int64_t first, std::int64_t T,
                       const Operands& o, float* slope) const {
    read_channels(memory, kU, at, first, T, o.line, o.u);
    read_channels(memory, kDelta, at, first, T, o.line, o.delta);
    scan_softplus(o.delta, T * K, o.delta, slope);
    for (const auto& [operand, to] : {std::pair(kB, o.B), std::pair(kC, o.C)})
      for (std::int64_t t = 0; t < T; ++t)
        std::copy_n(rows_[operand].read(memory, 0, s_.N, o.line, at.b, first + t), s_.N,
                    to + t * s_.N);
    return {T, s_.N, at.width, s_.zoh, o.u, o.delta, o.A, o.B, o.C, o.D};
  }

  // Reads rows of an operand [B, L, E].
  void read_channels(const Memory& memory, std::size_t operand, const Block& at, std::int64_t first,
                     std::int64_t T, float* line, float* to) const {
    for (std::int64_t t = 0; t < T; ++t)
      pad(rows_[operand].read(memory, at.first, at.width, line, at.b, first + t), at.width,
          to + t * K);
  }

  // Reads [width, N] of an operand from `begin` on -> [N, channels].
  void read_states(const Memory& memory, std::size_t operand, std::int64_t begin, const Block& at,
                   float* line, float* to) const {
    const float* const from =
        readers_[operand].read(memory, begin, static_cast<int>(at.width * s_.N), line);
    scan_turn(from, s_.N, at.width, s_.N, to, K);
    for (std::int64_t n = 0; n < s_.N; ++n) std::fill_n(to + n * K + at.width, K - at.width, 0.0f);
  }

  // [N, channels] -> [width, N]
  void write_states(const float* from, const Block& at, float* to) const {
    scan_turn(from, K, s_.N, at.width, to, s_.N);
  }

  // Writes rows of a result [B, L, E] that starts at `to`.
  void write_channels(const float* from, const Block& at, std::int64_t first, std::int64_t T,
                      float* to) const {
    for (std::int64_t t = 0; t < T; ++t)
      std::copy_n(from + t * K, at.width, to + (at.b * s_.L + first + t) * s_.E + at.first);
  }

  static void pad(const float* from, std::int64_t width, float* to) {
    std::copy_n(from, width, to);
    std::fill_n(to + width, K - width, 0.0f);
  }

  static constexpr std::size_t kU = 0, kDelta = 1, kA = 2, kB = 3, kC = 4, kD = 5, kStates = 6,
                               kG = 7;

  SelectiveScanShape s_;
  std::int64_t chunk_;
  std::vector<Reader> readers_;
  std::vector<OperandRows> rows_;
  ir::Place place_;
};

class SelectiveScan : public Scan {
 public:
  SelectiveScan(const ir::Kernel& kernel, const ir::SelectiveScanKernel& core)
      : Scan(kernel, core) {}

  void run(const Memory& memory, Executor& executor) const override {
    float* const out = memory.at(place_);
    executor.run(s_.B * blocks(), [&](std::int64_t task) {
      const Block at = block(task);
      Arrays arrays(scratch_floats(usize(operand_floats() + s_.N * K + chunk_ * K)));
      const Operands operands = read_sequence(memory, at, arrays);
      float* const h = arrays.take(s_.N * K);
      float* const y = arrays.take(chunk_ * K);
      std::fill_n(h, s_.N * K, 0.0f);
      for (std::int64_t c = 0; c < s_.chunks(); ++c) {
        const std::int64_t first = c * s_.chunk, T = std::min(s_.chunk, s_.L - first);
        if (c > 0)
          write_states(h, at,
                       out + s_.states() + ((at.b * s_.kept() + c - 1) * s_.E + at.first) * s_.N);
        scan_forward(read_steps(memory, at, first, T, operands, nullptr), h, y);
        write_channels(y, at, first, T, out);
      }
    });
  }
};

// dB and dC are sums over all channels: each task writes the sums of its block, which are then
// added in order.
class SelectiveScanGradient : public Scan {
 public:
  SelectiveScanGradient(const ir::Kernel& kernel, const ir::SelectiveScanGradientKernel& core)
      : Scan(kernel, core) {}

  void run(const Memory& memory, Executor& executor) const override {
    float* const out = memory.at(place_);
    const std::int64_t part = s_.L * s_.N;
    float* const parts = scratch_floats(usize(2 * s_.B * blocks() * part), kParts);
    executor.run(s_.B * blocks(), [&](std::int64_t task) {
      walk_back(memory, block(task), out, parts + 2 * task * part, parts + (2 * task + 1) * part);
    });
    const std::int64_t runs = ceil_div(part, kBlock);
    executor.run(2 * s_.B * runs, [&](std::int64_t task) {
      const std::int64_t b = task / runs / 2, which = task / runs % 2, first = task % runs * kBlock;
      const std::int64_t count = std::min<std::int64_t>(kBlock, part - first);
      double sums[kBlock] = {};
      for (std::int64_t k = 0; k < blocks(); ++k) {
        const float* const from = parts + (2 * (b * blocks() + k) + which) * part + first;
        for (std::int64_t i = 0; i < count; ++i) sums[i] += static_cast<double>(from[i]);
      }
      float* const to = out + (which == 0 ? s_.dB() : s_.dC()) + b * part + first;
      for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(sums[i]);
    });
  }

 private:
  static constexpr int kParts = 1;  // scratch of the thread that runs the kernel

  void walk_back(const Memory& memory, const Block& at, float* out, float* dB, float* dC) const {
    Arrays arrays(scratch_floats(
        usize(operand_floats() + 3 * s_.N * K + 4 * chunk_ * K + scan_work(chunk_))));
    const Operands operands = read_sequence(memory, at, arrays);
    float *const h = arrays.take(s_.N * K), *const later = arrays.take(s_.N * K),
                 *const dA = arrays.take(s_.N * K);
    float *const dy = arrays.take(chunk_ * K), *const slope = arrays.take(chunk_ * K);
    float *const du = arrays.take(chunk_ * K), *const ddelta = arrays.take(chunk_ * K);
    float* const work = arrays.take(scan_work(chunk_));
    std::fill_n(later, s_.N * K, 0.0f);
    std::fill_n(dA, s_.N * K, 0.0f);
    for (std::int64_t c = s_.chunks() - 1; c >= 0; --c) {
      const std::int64_t first = c * s_.chunk, T = std::min(s_.chunk, s_.L - first);
      const ScanSteps steps = read_steps(memory, at, first, T, operands, slope);
      read_channels(memory, kG, at, first, T, operands.line, dy);
      if (c > 0)
        read_states(memory, kStates, ((at.b * s_.kept() + c - 1) * s_.E + at.first) * s_.N, at,
                    operands.line, h);
      else
        std::fill_n(h, s_.N * K, 0.0f);
      scan_backward(
          steps, {dy, slope, h, later, dA, du, ddelta, dB + first * s_.N, dC + first * s_.N, work});
      write_channels(du, at, first, T, out);
      write_channels(ddelta, at, first, T, out + s_.ddelta());
    }
    write_states(dA, at, out + s_.dA() + (at.b * s_.E + at.first) * s_.N);
  }
};

}  // namespace

std::unique_ptr<Compiled> compile_core(const ir::Kernel& kernel,
                                       const ir::SelectiveScanKernel& core) {
  return std::make_unique<SelectiveScan>(kernel, core);
}
std::unique_ptr<Compiled> compile_core(const ir::Kernel& kernel,
                                       const ir::SelectiveScanGradientKernel& core) {
  return std::make_unique<SelectiveScanGradient>(kernel, core);
}

}  // namespace tensorgrad::cpu
