// Kernels of kind `attention` and `attention_gradient`. Queries are processed in blocks
// (attention_block.h): the scores of a block of queries and a block of keys stay in cache and are
// never written to memory. This file locates or copies operands and splits the work into tasks.
#include <algorithm>

#include "codegen/cpu/attention_block.h"
#include "codegen/cpu/compiled.h"
#include "codegen/cpu/operand_rows.h"
#include "support/integers.h"

namespace tensorgrad::cpu {

namespace {

using ir::AttentionShape;

constexpr std::int64_t kTaskWork = 1 << 18;  // multiplications that are worth a task
constexpr std::int64_t kTaskQueries = 4 * kBlockQueries;
constexpr std::int64_t kCrowded =
    512;  // floats; rows a multiple of this apart share few cache sets

std::int64_t round_up(std::int64_t n, std::int64_t to) { return ceil_div(n, to) * to; }

// Units of `work` multiplications per task.
std::int64_t together(std::int64_t work) {
  return std::max<std::int64_t>(1, kTaskWork / std::max<std::int64_t>(1, work));
}

// A bump allocator over one scratch buffer. The first pass only counts sizes; the second one hands
// out memory.
class BumpAllocator {
 public:
  float* take(std::int64_t count) {
    float* const out = base_ ? base_ + used_ : nullptr;
    used_ += round_up(count, 16);
    return out;
  }
  void begin() {
    base_ = scratch_floats(usize(used_));
    used_ = 0;
  }

 private:
  float* base_ = nullptr;
  std::int64_t used_ = 0;
};

// An operand [batch, heads, positions, size].
class Heads {
 public:
  Heads(const ir::Load& load, std::int64_t size)
      : rows_(load), size_(size), width_(round_up(size, kRowUnit)) {}

  std::int64_t width() const { return width_; }  // of a copied row, zero-padded

  // Positions first .. first + n - 1 of a head: in place, or copied to `to`; rows are padded to
  // whole units if `units`. A copy pays off if the rows are read `times` often, and sooner if their
  // stride makes them compete for cache sets.
  FloatRows read(const Memory& memory, bool units, std::int64_t times, std::int64_t b,
                 std::int64_t h, std::int64_t first, std::int64_t n, float* to) const {
    const bool often = times > (rows_.stride() % kCrowded == 0 ? 1 : 8);
    if (rows_.in_place() && !often && (!units || size_ == width_))
      return {rows_.read(memory, 0, size_, to, b, h, first), rows_.stride()};
    for (std::int64_t i = 0; i < n; ++i) {
      float* const row = to + i * width_;
      const float* const from = rows_.read(memory, 0, size_, row, b, h, first + i);
      if (from != row) std::copy_n(from, size_, row);
      std::fill(row + size_, row + width_, 0.0f);
    }
    return {to, width_};
  }

 private:
  OperandRows rows_;
  std::int64_t size_, width_;
};

struct Common {
  AttentionShape s;
  Heads q, k, v;
  std::vector<Reader> start;  // at most one
  ir::Place place;

  Common(const ir::Kernel& kernel, const ir::AttentionCore& core)
      : s(core.shape),
        q(kernel.loads[0], s.D),
        k(kernel.loads[1], s.D),
        v(kernel.loads[2], s.V),
        place(core.store.place) {
    if (s.cached) start.emplace_back(kernel.loads.back());
  }

  std::int64_t first_position(const Memory& memory) const {
    if (!s.cached) return s.S - s.T;
    float bits = 0;
    const float* at = start[0].read(memory, 0, 1, &bits);
    return *reinterpret_cast<const std::int32_t*>(at);
  }

  // The number of keys that query t sees.
  std::int64_t visible(std::int64_t start_at, std::int64_t t) const {
    return s.causal ? std::clamp<std::int64_t>(start_at + t + 1, 0, s.S) : s.S;
  }

  // Queries t .. t + n - 1, and the keys in begin .. end - 1 that they see.
  AttentionBlock block(std::int64_t start_at, std::int64_t t, std::int64_t n, std::int64_t begin,
                       std::int64_t end) const {
    AttentionBlock out{};
    out.n = n, out.D = s.D, out.V = s.V;
    out.keys = std::clamp<std::int64_t>(visible(start_at, t + n - 1) - begin, 0, end - begin);
    out.causal = s.causal;
    out.visible = std::clamp(start_at + t + 1 - begin, -kBlockQueries, end - begin);
    out.scale = static_cast<float>(s.scale);
    return out;
  }
};

class Attention : public Compiled {
 public:
  Attention(const ir::Kernel& kernel, const ir::AttentionKernel& core)
      : c_(kernel, core), queries_(core.variant.queries) {}

  void run(const Memory& memory, Executor& executor) const override {
    const AttentionShape& s = c_.s;
    if (s.B * s.H * s.T == 0) return;
    const std::int64_t rows = queries_, blocks = ceil_div(s.T, rows);
    const std::int64_t units = s.B * s.H * blocks, some = together(rows * s.S * (s.D + s.V));
    const std::int64_t start = c_.first_position(memory);
    executor.run(ceil_div(units, some), [&](std::int64_t task) {
      for (std::int64_t u = task * some; u < std::min(units, (task + 1) * some); ++u)
        head(memory, u / blocks, u % blocks * rows, std::min(s.T, (u % blocks + 1) * rows), start);
    });
  }

 private:
  // Queries begin .. end - 1 of one head.
  void head(const Memory& memory, std::int64_t head, std::int64_t begin, std::int64_t end,
            std::int64_t start) const {
    const AttentionShape& s = c_.s;
    const std::int64_t b = head / s.H, h = head % s.H, g = h / (s.H / s.G),
                       reach = c_.visible(start, end - 1);
    const std::int64_t times = ceil_div(end - begin, kBlockQueries);
    float *keys = nullptr, *values = nullptr, *queries = nullptr, *work = nullptr;
    BumpAllocator carver;
    for (int pass = 0; pass < 2; ++pass) {
      keys = carver.take(reach * c_.k.width());
      values = carver.take(reach * c_.v.width());
      queries = carver.take(kBlockQueries * c_.q.width());
      work = carver.take(attention_work(s.D, s.V));
      if (pass == 0) carver.begin();
    }
    const FloatRows k = c_.k.read(memory, false, times, b, g, 0, reach, keys);
    const FloatRows v = c_.v.read(memory, true, times, b, g, 0, reach, values);
    float* const out = memory.at(c_.place);
    for (std::int64_t t = begin; t < end; t += kBlockQueries) {
      const std::int64_t n = std::min(kBlockQueries, end - t);
      AttentionBlock block = c_.block(start, t, n, 0, s.S);
      block.q = c_.q.read(memory, false, 1, b, h, t, n, queries);
      block.k = k, block.v = v, block.work = work;
      attention_forward(block, out + ((b * s.T + t) * s.H + h) * s.V, s.H * s.V,
                        out + s.lse() + head * s.T + t);
    }
  }

  Common c_;
  std::int64_t queries_;  // queries of one head per task
};

// All heads that share keys form one unit of work: their gradients of k and v are added in order.
// Where there are few units, each is split into parts by keys. The dq of each part is kept, and the
// parts are added in order afterwards.
class AttentionGradient : public Compiled {
 public:
  AttentionGradient(const ir::Kernel& kernel, const ir::AttentionGradientKernel& core)
      : c_(kernel, core),
        out_(kernel.loads[3], c_.s.V),
        g_(kernel.loads[5], c_.s.V),
        lse_(kernel.loads[4]) {
    const std::int64_t S = c_.s.S, keys = core.variant.keys;
    keys_ = std::max(kBlockKeys, keys == S ? S : round_up(keys, kBlockKeys));
    parts_ = std::max<std::int64_t>(1, ceil_div(S, keys_));
  }

  void run(const Memory& memory, Executor& executor) const override {
    const AttentionShape& s = c_.s;
    const std::int64_t units = s.B * s.G * parts_,
                       start = s.B * s.H * s.T > 0 ? c_.first_position(memory) : 0;
    if (units == 0) return;
    const std::int64_t part = s.B * s.H * s.T * c_.q.width(),
                       some = together(s.H / s.G * s.T * keys_ * (s.D + s.V));
    float* const sums = parts_ == 1 ? nullptr : scratch_floats(usize(parts_ * part), kParts);
    executor.run(ceil_div(units, some), [&](std::int64_t task) {
      for (std::int64_t u = task * some; u < std::min(units, (task + 1) * some); ++u)
        group(memory, u / parts_, u % parts_ * keys_, start,
              sums ? sums + u % parts_ * part : nullptr);
    });
    if (sums) add_parts(memory, executor, sums, part);
  }

 private:
  static constexpr int kParts = 1;  // scratch of the thread that runs the kernel

  // Keys first .. first + keys_ - 1 of one group. dq goes to memory, or to `sums` [B, H, T, D] if
  // there are other parts.
  void group(const Memory& memory, std::int64_t group, std::int64_t first, std::int64_t start,
             float* sums) const {
    const AttentionShape& s = c_.s;
    const std::int64_t b = group / s.G, g = group % s.G, heads = s.H / s.G, D = c_.k.width(),
                       V = c_.v.width();
    const std::int64_t last = std::min(s.S, first + keys_);
    const std::int64_t reach =
        s.T > 0 ? std::clamp(c_.visible(start, s.T - 1), first, last) - first : 0;
    const std::int64_t times = heads * ceil_div(s.T, kBlockQueries);
    float *keys = nullptr, *values = nullptr, *dk = nullptr, *dv = nullptr, *q = nullptr,
          *gy = nullptr, *out = nullptr, *dq = nullptr;
    float *lse = nullptr, *work = nullptr;
    BumpAllocator carver;
    for (int pass = 0; pass < 2; ++pass) {
      keys = carver.take(reach * D);
      values = carver.take(reach * V);
      dk = carver.take(reach * D);
      dv = carver.take(reach * V);
      q = carver.take(kBlockQueries * D);
      gy = carver.take(kBlockQueries * V);
      out = carver.take(kBlockQueries * V);
      dq = carver.take(kBlockQueries * D);
      lse = carver.take(kBlockQueries);
      work = carver.take(attention_work(s.D, s.V));
      if (pass == 0) carver.begin();
    }
    const FloatRows k = c_.k.read(memory, true, times, b, g, first, reach, keys),
                    v = c_.v.read(memory, false, times, b, g, first, reach, values);
    const std::int64_t row = b * s.S + first;
    const FloatSums to_k = sums_of(memory, s.dk(), row, g * s.D, s.D, dk),
                    to_v = sums_of(memory, s.dv(), row, g * s.V, s.V, dv);
    for (std::int64_t i = 0; i < reach; ++i) {
      std::fill_n(to_k.data + i * to_k.stride, D, 0.0f);
      std::fill_n(to_v.data + i * to_v.stride, V, 0.0f);
    }
    for (std::int64_t h = g * heads; h < (g + 1) * heads; ++h)
      for (std::int64_t t = 0; t < s.T; t += kBlockQueries) {
        const std::int64_t n = std::min(kBlockQueries, s.T - t);
        AttentionBlock block = c_.block(start, t, n, first, last);
        block.q = c_.q.read(memory, true, 1, b, h, t, n, q);
        block.k = k, block.v = v, block.work = work;
        AttentionBack back{};
        back.gy = g_.read(memory, true, 1, b, h, t, n, gy);
        back.out = out_.read(memory, false, 1, b, h, t, n, out);
        back.lse = lse_.read(memory, t, n, lse, b, h);
        back.dk = to_k, back.dv = to_v;
        back.dq = sums ? FloatSums{sums + ((b * s.H + h) * s.T + t) * D, D}
                       : sums_of(memory, s.dq(), b * s.T + t, h * s.D, s.D, dq);
        attention_backward(block, back);
        if (back.dq.data == dq) store(memory, s.dq(), b * s.T + t, h * s.D, n, dq, D, s.D);
      }
    if (to_k.data == dk) store(memory, s.dk(), row, g * s.D, reach, dk, D, s.D);
    if (to_v.data == dv) store(memory, s.dv(), row, g * s.V, reach, dv, V, s.V);
    store(memory, s.dk(), row + reach, g * s.D, last - first - reach, nullptr, 0, s.D);
    store(memory, s.dv(), row + reach, g * s.V, last - first - reach, nullptr, 0, s.V);
  }

  // One task per block of queries of one head.
  void add_parts(const Memory& memory, Executor& executor, float* sums, std::int64_t part) const {
    const AttentionShape& s = c_.s;
    const std::int64_t D = c_.q.width(), blocks = ceil_div(s.T, kTaskQueries);
    executor.run(s.B * s.H * blocks, [&](std::int64_t task) {
      const std::int64_t head = task / blocks, t = task % blocks * kTaskQueries,
                         n = std::min(kTaskQueries, s.T - t);
      float* const sum = sums + (head * s.T + t) * D;
      for (std::int64_t p = 1; p < parts_; ++p)
        for (std::int64_t i = 0; i < n * D; ++i) sum[i] += sum[p * part + i];
      store(memory, s.dq(), head / s.H * s.T + t, head % s.H * s.D, n, sum, D, s.D);
    });
  }

  // Where to accumulate the rows of a packed part: in the result, unless that requires padded rows
  // or makes rows compete for cache sets.
  FloatSums sums_of(const Memory& memory, const ir::PackedPart& part, std::int64_t row,
                    std::int64_t column, std::int64_t size, float* scratch) const {
    if (size % kRowUnit == 0 && part.row % kCrowded != 0)
      return {memory.at(c_.place) + part.offset + row * part.row + column, part.row};
    return {scratch, round_up(size, kRowUnit)};
  }

  // Writes rows of a packed part; zeros where `from` is null.
  void store(const Memory& memory, const ir::PackedPart& part, std::int64_t row,
             std::int64_t column, std::int64_t n, const float* from, std::int64_t stride,
             std::int64_t size) const {
    float* to = memory.at(c_.place) + part.offset + row * part.row + column;
    for (std::int64_t i = 0; i < n; ++i, to += part.row) {
      if (from)
        std::copy_n(from + i * stride, size, to);
      else
        std::fill_n(to, size, 0.0f);
    }
  }

  Common c_;
  Heads out_, g_;
  OperandRows lse_;
  std::int64_t keys_, parts_;  // keys per part
};

}  // namespace

std::unique_ptr<Compiled> compile_core(const ir::Kernel& kernel, const ir::AttentionKernel& core) {
  return std::make_unique<Attention>(kernel, core);
}
std::unique_ptr<Compiled> compile_core(const ir::Kernel& kernel,
                                       const ir::AttentionGradientKernel& core) {
  return std::make_unique<AttentionGradient>(kernel, core);
}

}  // namespace tensorgrad::cpu
