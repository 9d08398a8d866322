// Kernels of kind `attention` and `attention_gradient`. Queries are taken some at a time; the scores of a block of
// queries and a block of keys stay in cache and never reach memory. Products are those of the micro-kernel.
#include <algorithm>
#include <cmath>
#include <limits>

#include "codegen/cpu/compiled.h"
#include "codegen/cpu/micro_kernel.h"
#include "codegen/cpu/row_math.h"

namespace tensorgrad::cpu {

namespace {

using ir::AttentionShape;

constexpr std::int64_t kQueries = 16 * kPanelRows, kKeys = 192;  // of a block
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::int64_t kManyTasks = 16;      // heads that keep all threads busy without being cut
constexpr std::int64_t kTaskWork = 1 << 16;  // multiplications that are worth handing to a thread

std::int64_t round_up(std::int64_t n, std::int64_t to) { return ceil_div(n, to) * to; }

// Pieces of one stretch of scratch memory. Asked for sizes first, it counts; then it hands them out.
class Carver {
 public:
  float* take(std::int64_t count) {
    float* const out = base_ ? base_ + used_ : nullptr;
    used_ += round_up(count, 16);
    return out;
  }
  void begin() {
    base_ = scratch_floats(static_cast<std::size_t>(used_));
    used_ = 0;
  }

 private:
  float* base_ = nullptr;
  std::int64_t used_ = 0;
};

// Rows of an operand [batch, heads, positions, size], copied out of memory for the micro-kernel.
class Rows {
 public:
  Rows(const ir::Load& load, std::int64_t positions, std::int64_t size) : reader_(load), positions_(positions), size_(size) {}
  std::int64_t size() const { return size_; }

  // Rows first .. first + n - 1, one after the other; zeros up to `padded` rows.
  void copy(const Memory& memory, std::int64_t head, std::int64_t first, std::int64_t n, std::int64_t padded, float* to) const {
    for (std::int64_t i = 0; i < n; ++i) read(memory, head, first + i, to + i * size_);
    std::fill_n(to + n * size_, (padded - n) * size_, 0.0f);
  }

 private:
  void read(const Memory& memory, std::int64_t head, std::int64_t row, float* to) const {
    for (std::int64_t at = 0; at < size_; at += kBlock) {
      const int n = static_cast<int>(std::min<std::int64_t>(kBlock, size_ - at));
      const float* from = reader_.read(memory, (head * positions_ + row) * size_ + at, n, to + at);
      if (from != to + at) std::copy_n(from, n, to + at);
    }
  }

  Reader reader_;
  std::int64_t positions_, size_;
};

// Rows [n, size] as the right operand of a product over n: panels of columns.
void pack_columns(const float* rows, std::int64_t n, std::int64_t size, std::int64_t NR, float* to) {
  for (std::int64_t c = 0; c < size; c += NR) {
    const std::int64_t width = std::min(NR, size - c);
    for (std::int64_t i = 0; i < n; ++i, to += NR) {
      std::copy_n(rows + i * size + c, width, to);
      std::fill_n(to + width, NR - width, 0.0f);
    }
  }
}

// Rows [n, size] turned around, as the right operand of a product over size.
void pack_turned(const float* rows, std::int64_t n, std::int64_t size, std::int64_t NR, float* to) {
  for (std::int64_t r = 0; r < n; r += NR) {
    const std::int64_t width = std::min(NR, n - r);
    for (std::int64_t d = 0; d < size; ++d, to += NR) {
      for (std::int64_t j = 0; j < width; ++j) to[j] = rows[(r + j) * size + d];
      std::fill_n(to + width, NR - width, 0.0f);
    }
  }
}

// c (+)= a b for M rows (padded to panels) and the first K rows of b, of which `packed` lie in a panel.
void product(const float* a, std::int64_t row, std::int64_t step, std::int64_t M, const float* b, std::int64_t K, std::int64_t packed,
             std::int64_t N, std::int64_t NR, float* c, std::int64_t stride, bool first) {
  for (std::int64_t j = 0; j * NR < N; ++j)
    for (std::int64_t i = 0; i * kPanelRows < M; ++i)
      micro_kernel({a + i * kPanelRows * row, row, step}, {b + j * NR * packed, NR}, K, c + i * kPanelRows * stride + j * NR, stride, first);
}

struct Common {
  AttentionShape s;
  Rows q, k, v;
  std::vector<Reader> start;  // at most one
  ir::Place place;
  float scale;
  std::int64_t NR, D, V;      // sizes of heads, padded to panels
  std::int64_t width;         // of a block of scores

  explicit Common(const ir::Kernel& kernel)
      : s(kernel.attention),
        q(kernel.loads[0], s.T, s.D),
        k(kernel.loads[1], s.S, s.D),
        v(kernel.loads[2], s.S, s.V),
        place(kernel.stores[0].place),
        scale(static_cast<float>(s.scale)),
        NR(panel_columns()),
        D(round_up(s.D, NR)),
        V(round_up(s.V, NR)),
        width(round_up(round_up(std::min(kKeys, s.S), kPanelRows), NR)) {
    if (s.cached) start.emplace_back(kernel.loads.back());
  }

  std::int64_t first_position(const Memory& memory) const {
    if (!s.cached) return s.S - s.T;
    float bits = 0;
    const float* at = start[0].read(memory, 0, 1, &bits);
    return *reinterpret_cast<const std::int32_t*>(at);
  }

  // Keys of a block from `key` on that query t sees.
  std::int64_t visible(std::int64_t start_at, std::int64_t t, std::int64_t key, std::int64_t keys) const {
    return s.causal ? std::clamp<std::int64_t>(start_at + t + 1 - key, 0, keys) : keys;
  }
};

class Attention : public Compiled {
 public:
  explicit Attention(const ir::Kernel& kernel) : c_(kernel) {}

  void run(const Memory& memory, Executor& executor) const override {
    const AttentionShape& s = c_.s;
    if (s.B * s.H * s.T == 0) return;
    const std::int64_t rows = s.B * s.H >= kManyTasks ? s.T : std::min(s.T, kQueries), blocks = ceil_div(s.T, rows);
    const std::int64_t units = s.B * s.H * blocks, work = std::max<std::int64_t>(1, rows * s.S * (s.D + s.V));
    const std::int64_t together = std::max<std::int64_t>(1, kTaskWork / work);
    const std::int64_t start = c_.first_position(memory);
    executor.run(ceil_div(units, together), [&](std::int64_t task) {
      for (std::int64_t u = task * together; u < std::min(units, (task + 1) * together); ++u)
        head(memory, u / blocks, u % blocks * rows, std::min(s.T, (u % blocks + 1) * rows), start);
    });
  }

 private:
  // Queries begin .. end - 1 of one head.
  void head(const Memory& memory, std::int64_t h, std::int64_t begin, std::int64_t end, std::int64_t start) const {
    const AttentionShape& s = c_.s;
    const std::int64_t group = h / s.H * s.G + h % s.H / (s.H / s.G);
    const std::int64_t most = std::min(kQueries, round_up(end - begin, kPanelRows));
    const std::int64_t reach = c_.visible(start, end - 1, 0, s.S), blocks = std::max<std::int64_t>(1, ceil_div(reach, kKeys));
    float *rows = nullptr, *keys = nullptr, *values = nullptr, *q = nullptr, *scores = nullptr, *o = nullptr, *top = nullptr, *sum = nullptr;
    Carver carver;
    for (int pass = 0; pass < 2; ++pass) {
      rows = carver.take(kKeys * std::max(s.D, s.V));
      keys = carver.take(blocks * c_.width * s.D);
      values = carver.take(blocks * kKeys * c_.V);
      q = carver.take(most * s.D);
      scores = carver.take(most * c_.width);
      o = carver.take(most * c_.V);
      top = carver.take(most);
      sum = carver.take(most);
      if (pass == 0) carver.begin();
    }
    for (std::int64_t b = 0; b * kKeys < reach; ++b) {
      const std::int64_t n = std::min(kKeys, reach - b * kKeys);
      c_.k.copy(memory, group, b * kKeys, n, n, rows);
      pack_turned(rows, n, s.D, c_.NR, keys + b * c_.width * s.D);
      c_.v.copy(memory, group, b * kKeys, n, n, rows);
      pack_columns(rows, n, s.V, c_.NR, values + b * kKeys * c_.V);
    }
    for (std::int64_t t = begin; t < end; t += kQueries) {
      const std::int64_t n = std::min(kQueries, end - t), M = round_up(n, kPanelRows);
      c_.q.copy(memory, h, t, n, M, q);
      std::fill_n(o, M * c_.V, 0.0f);
      std::fill_n(top, n, -std::numeric_limits<float>::infinity());
      std::fill_n(sum, n, 0.0f);
      const std::int64_t seen = c_.visible(start, t + n - 1, 0, s.S);
      for (std::int64_t key = 0; key < seen; key += kKeys) {
        const std::int64_t count = std::min(kKeys, seen - key), packed = std::min(kKeys, reach - key), b = key / kKeys;
        product(q, s.D, 1, M, keys + b * c_.width * s.D, s.D, s.D, count, c_.NR, scores, c_.width, true);
        for (std::int64_t i = 0; i < n; ++i) {
          float* const row = scores + i * c_.width;
          const std::int64_t visible = c_.visible(start, t + i, key, count);
          const float best = std::max(top[i], scale_row(row, visible, c_.scale));
          if (best == -kInfinity && std::none_of(row, row + visible, [](float x) { return std::isnan(x); })) {
            std::fill_n(row, visible, 0.0f);  // nothing to weigh so far
          } else if (visible > 0) {
            const float factor = std::exp(top[i] - best);
            sum[i] = sum[i] * factor + exp_row(row, visible, best);
            if (factor != 1)
              for (std::int64_t d = 0; d < c_.V; ++d) o[i * c_.V + d] *= factor;
            top[i] = best;
          }
          std::fill(row + visible, row + count, 0.0f);
        }
        for (std::int64_t i = n; i < M; ++i) std::fill_n(scores + i * c_.width, count, 0.0f);
        product(scores, c_.width, 1, M, values + b * kKeys * c_.V, count, packed, s.V, c_.NR, o, c_.V, false);
      }
      finish(memory, h, t, n, start, o, top, sum);
    }
  }

  void finish(const Memory& memory, std::int64_t h, std::int64_t t, std::int64_t n, std::int64_t start, const float* o, const float* top,
              const float* sum) const {
    const AttentionShape& s = c_.s;
    float* const out = memory.at(c_.place);
    for (std::int64_t i = 0; i < n; ++i) {
      float* const to = out + ((h / s.H * s.T + t + i) * s.H + h % s.H) * s.V;
      const bool any = c_.visible(start, t + i, 0, s.S) > 0;
      const float by = any ? 1 / sum[i] : 0;
      for (std::int64_t d = 0; d < s.V; ++d) to[d] = o[i * c_.V + d] * by;
      out[s.lse() + h * s.T + t + i] = any ? top[i] + std::log(sum[i]) : 0;
    }
  }

  Common c_;
};

// All heads that share keys are one unit of work: their gradients of k and v are added in order.
class AttentionGradient : public Compiled {
 public:
  explicit AttentionGradient(const ir::Kernel& kernel)
      : c_(kernel), out_(kernel.loads[3], c_.s.T, c_.s.V), lse_(kernel.loads[4], c_.s.T, 1), g_(kernel.loads[5], c_.s.T, c_.s.V) {}

  void run(const Memory& memory, Executor& executor) const override {
    const AttentionShape& s = c_.s;
    const std::int64_t units = s.B * s.G, work = std::max<std::int64_t>(1, s.H / std::max<std::int64_t>(1, s.G) * s.T * s.S * (s.D + s.V));
    const std::int64_t together = std::max<std::int64_t>(1, kTaskWork / work);
    const std::int64_t start = s.B * s.H * s.T > 0 ? c_.first_position(memory) : 0;
    executor.run(ceil_div(units, together), [&](std::int64_t task) {
      for (std::int64_t u = task * together; u < std::min(units, (task + 1) * together); ++u) group(memory, u, start);
    });
  }

 private:
  void group(const Memory& memory, std::int64_t g, std::int64_t start) const {
    const AttentionShape& s = c_.s;
    const std::int64_t reach = s.T > 0 ? c_.visible(start, s.T - 1, 0, s.S) : 0, blocks = ceil_div(reach, kKeys);
    const std::int64_t most = std::min(kQueries, round_up(s.T, kPanelRows));
    float *rows = nullptr, *k_turned = nullptr, *k_columns = nullptr, *v_turned = nullptr, *dk = nullptr, *dv = nullptr;
    float *q = nullptr, *q_columns = nullptr, *gy = nullptr, *gy_columns = nullptr, *w = nullptr, *dw = nullptr, *dq = nullptr;
    float *lse = nullptr, *mean = nullptr;
    Carver carver;
    for (int pass = 0; pass < 2; ++pass) {
      rows = carver.take(std::max(kKeys, kQueries) * std::max(s.D, s.V));
      k_turned = carver.take(blocks * c_.width * s.D);
      v_turned = carver.take(blocks * c_.width * s.V);
      k_columns = carver.take(blocks * kKeys * c_.D);
      dk = carver.take(blocks * c_.width * c_.D);
      dv = carver.take(blocks * c_.width * c_.V);
      q = carver.take(most * s.D);
      q_columns = carver.take(most * c_.D);
      gy = carver.take(most * s.V);
      gy_columns = carver.take(most * c_.V);
      w = carver.take(most * c_.width);
      dw = carver.take(most * c_.width);
      dq = carver.take(most * c_.D);
      lse = carver.take(most);
      mean = carver.take(most);
      if (pass == 0) carver.begin();
    }
    for (std::int64_t b = 0; b < blocks; ++b) {
      const std::int64_t n = std::min(kKeys, reach - b * kKeys);
      c_.k.copy(memory, g, b * kKeys, n, n, rows);
      pack_turned(rows, n, s.D, c_.NR, k_turned + b * c_.width * s.D);
      pack_columns(rows, n, s.D, c_.NR, k_columns + b * kKeys * c_.D);
      c_.v.copy(memory, g, b * kKeys, n, n, rows);
      pack_turned(rows, n, s.V, c_.NR, v_turned + b * c_.width * s.V);
    }
    std::fill_n(dk, blocks * c_.width * c_.D, 0.0f);
    std::fill_n(dv, blocks * c_.width * c_.V, 0.0f);
    const std::int64_t heads = s.H / s.G;
    for (std::int64_t i = 0; i < heads; ++i) {
      const std::int64_t h = g / s.G * s.H + g % s.G * heads + i;
      for (std::int64_t t = 0; t < s.T; t += kQueries) {
        const std::int64_t n = std::min(kQueries, s.T - t), M = round_up(n, kPanelRows);
        c_.q.copy(memory, h, t, n, M, q);
        pack_columns(q, n, s.D, c_.NR, q_columns);
        g_.copy(memory, h, t, n, M, gy);
        pack_columns(gy, n, s.V, c_.NR, gy_columns);
        lse_.copy(memory, h, t, n, n, lse);
        out_.copy(memory, h, t, n, n, rows);
        for (std::int64_t r = 0; r < n; ++r) mean[r] = dot_row(rows + r * s.V, gy + r * s.V, s.V);
        std::fill_n(dq, M * c_.D, 0.0f);
        const std::int64_t seen = c_.visible(start, t + n - 1, 0, s.S);
        for (std::int64_t key = 0; key < seen; key += kKeys) {
          const std::int64_t b = key / kKeys, count = std::min(kKeys, seen - key), packed = std::min(kKeys, reach - key);
          product(q, s.D, 1, M, k_turned + b * c_.width * s.D, s.D, s.D, count, c_.NR, w, c_.width, true);
          product(gy, s.V, 1, M, v_turned + b * c_.width * s.V, s.V, s.V, count, c_.NR, dw, c_.width, true);
          for (std::int64_t r = 0; r < n; ++r)
            weights(w + r * c_.width, dw + r * c_.width, c_.visible(start, t + r, key, count), lse[r], mean[r]);
          product(w, 1, c_.width, count, gy_columns, n, n, s.V, c_.NR, dv + b * c_.width * c_.V, c_.V, false);
          product(dw, 1, c_.width, count, q_columns, n, n, s.D, c_.NR, dk + b * c_.width * c_.D, c_.D, false);
          for (std::int64_t r = n; r < M; ++r) std::fill_n(dw + r * c_.width, count, 0.0f);
          product(dw, c_.width, 1, M, k_columns + b * kKeys * c_.D, count, packed, s.D, c_.NR, dq, c_.D, false);
        }
        store(memory, s.dq(), h / s.H * s.T + t, h % s.H * s.D, n, dq, c_.D, s.D);
      }
    }
    for (std::int64_t b = 0; b * kKeys < s.S; ++b) {
      const std::int64_t n = std::min(kKeys, s.S - b * kKeys), known = std::clamp<std::int64_t>(reach - b * kKeys, 0, n);
      const std::int64_t row = g / s.G * s.S + b * kKeys;
      store(memory, s.dk(), row, g % s.G * s.D, known, dk + b * c_.width * c_.D, c_.D, s.D);
      store(memory, s.dv(), row, g % s.G * s.V, known, dv + b * c_.width * c_.V, c_.V, s.V);
      store(memory, s.dk(), row + known, g % s.G * s.D, n - known, nullptr, 0, s.D);
      store(memory, s.dv(), row + known, g % s.G * s.V, n - known, nullptr, 0, s.V);
    }
  }

  // From scores and g v^T to the weights, and to the gradient of q k^T; zero where a key is not seen.
  void weights(float* w, float* dw, std::int64_t visible, float lse, float mean) const {
    scale_row(w, visible, c_.scale);
    exp_row(w, visible, lse);
    for (std::int64_t j = 0; j < visible; ++j) dw[j] = w[j] * (dw[j] - mean) * c_.scale;
    std::fill(w + visible, w + c_.width, 0.0f);
    std::fill(dw + visible, dw + c_.width, 0.0f);
  }

  // Rows of a packed part; zeros where `from` is null.
  void store(const Memory& memory, const ir::PackedPart& part, std::int64_t row, std::int64_t column, std::int64_t n, const float* from,
             std::int64_t stride, std::int64_t size) const {
    float* to = memory.at(c_.place) + part.offset + row * part.row + column;
    for (std::int64_t i = 0; i < n; ++i, to += part.row) {
      if (from) std::copy_n(from + i * stride, size, to);
      else std::fill_n(to, size, 0.0f);
    }
  }

  Common c_;
  Rows out_, lse_, g_;
};

}  // namespace

std::unique_ptr<Compiled> compile_attention(const ir::Kernel& kernel) { return std::make_unique<Attention>(kernel); }
std::unique_ptr<Compiled> compile_attention_gradient(const ir::Kernel& kernel) { return std::make_unique<AttentionGradient>(kernel); }

}  // namespace tensorgrad::cpu
