// Attention and its gradient by definition: all scores, row by row.
#include "ir/sequence.h"
#include "reference/evaluate.h"
#include "support/integers.h"

namespace tensorgrad::reference {

namespace {

using ir::AttentionShape;
using ir::Node;

AttentionShape shape_of(const Node& node, Inputs in, bool cached) {
  const Shape &q = in[0]->type.shape, &k = in[1]->type.shape, &v = in[2]->type.shape;
  for (std::size_t i = 0; i < 3; ++i) {
    expect_dtype(node, *in[i], DType::f32);
    expect(in[i]->type.shape.rank() == 4, node, "operand {} is {}", i, in[i]->type.shape.text());
  }
  const auto& attrs = node.as<ir::AttentionAttrs>();
  return {.B = q[0],
          .H = q[1],
          .G = k[1],
          .T = q[2],
          .S = k[2],
          .D = q[3],
          .V = v[3],
          .causal = attrs.causal,
          .cached = cached,
          .scale = attrs.scale};
}

// One head of one sequence, and the row of scores of one query.
struct Head {
  const AttentionShape& s;
  const double *q, *k, *v;
  std::int64_t start;

  Head(const AttentionShape& shape, Inputs in, std::int64_t b, std::int64_t h, std::int64_t first)
      : s(shape), q(in[0]->data.data() + (b * s.H + h) * s.T * s.D), start(first) {
    const std::int64_t g = b * s.G + h / (s.H / s.G);
    k = in[1]->data.data() + g * s.S * s.D;
    v = in[2]->data.data() + g * s.S * s.V;
  }

  std::int64_t visible(std::int64_t t) const {
    return s.causal ? std::clamp<std::int64_t>(start + t + 1, 0, s.S) : s.S;
  }

  // Computes the weights of the keys that query t sees. Returns log-sum-exp of the scores.
  double weights(std::int64_t t, std::vector<double>& w) const {
    w.assign(usize(visible(t)), 0);
    double top = -HUGE_VAL, sum = 0;
    for (std::size_t j = 0; j < w.size(); ++j) {
      for (std::int64_t d = 0; d < s.D; ++d)
        w[j] += s.scale * q[t * s.D + d] * k[static_cast<std::int64_t>(j) * s.D + d];
      top = std::max(top, w[j]);
    }
    for (double& x : w) sum += x = std::exp(x - top);
    for (double& x : w) x /= sum;
    return w.empty() ? 0 : top + std::log(sum);
  }
};

// The position of the first query. By default, the last query is at the position of the last key.
std::int64_t start_of(const Node& node, const AttentionShape& s, Inputs in) {
  if (!s.cached) return s.S - s.T;
  expect_dtype(node, *in.back(), DType::i32);
  return static_cast<std::int64_t>(in.back()->data.at(0));
}

template <class F>
void each_head(const AttentionShape& s, F f) {
  for (std::int64_t b = 0; b < s.B; ++b)
    for (std::int64_t h = 0; h < s.H; ++h) f(b, h);
}

Value attention(const Node& node, Inputs in) {
  const AttentionShape s = shape_of(node, in, in.size() == 4);
  const std::int64_t start = start_of(node, s, in);
  Value out = make_value(DType::f32, {s.result_elements()});
  std::vector<double> w;
  each_head(s, [&](std::int64_t b, std::int64_t h) {
    const Head head(s, in, b, h, start);
    for (std::int64_t t = 0; t < s.T; ++t) {
      out.data[usize(s.lse() + (b * s.H + h) * s.T + t)] = head.weights(t, w);
      double* const row = out.data.data() + ((b * s.T + t) * s.H + h) * s.V;
      for (std::size_t j = 0; j < w.size(); ++j)
        for (std::int64_t d = 0; d < s.V; ++d)
          row[d] += w[j] * head.v[static_cast<std::int64_t>(j) * s.V + d];
    }
  });
  return out;
}

// dv = w^T g; dw = g v^T; ds = w (dw - sum(w dw)); dq = scale ds k, dk = scale ds^T q
Value attention_gradient(const Node& node, Inputs in) {
  const AttentionShape s = shape_of(node, in, in.size() == 6);
  const std::int64_t start = start_of(node, s, in);
  expect_dtype(node, *in[4], DType::f32);
  Value out = make_value(DType::f32, {s.gradient_elements()});
  const auto part = [&](const ir::PackedPart& p, std::int64_t b, std::int64_t positions,
                        std::int64_t t, std::int64_t at) {
    return out.data.data() + p.offset + (b * positions + t) * p.row + at;
  };
  std::vector<double> w, dw;
  each_head(s, [&](std::int64_t b, std::int64_t h) {
    const Head head(s, in, b, h, start);
    const std::int64_t group = h / (s.H / s.G);
    for (std::int64_t t = 0; t < s.T; ++t) {
      head.weights(t, w);
      const double* const g = in[4]->data.data() + ((b * s.H + h) * s.T + t) * s.V;
      dw.assign(w.size(), 0);
      double mean = 0;
      for (std::size_t j = 0; j < w.size(); ++j) {
        const auto key = static_cast<std::int64_t>(j);
        double* const dv = part(s.dv(), b, s.S, key, group * s.V);
        for (std::int64_t d = 0; d < s.V; ++d)
          dw[j] += g[d] * head.v[key * s.V + d], dv[d] += w[j] * g[d];
        mean += w[j] * dw[j];
      }
      double* const dq = part(s.dq(), b, s.T, t, h * s.D);
      for (std::size_t j = 0; j < w.size(); ++j) {
        const auto key = static_cast<std::int64_t>(j);
        const double ds = s.scale * w[j] * (dw[j] - mean);
        double* const dk = part(s.dk(), b, s.S, key, group * s.D);
        for (std::int64_t d = 0; d < s.D; ++d) {
          dq[d] += ds * head.k[key * s.D + d];
          dk[d] += ds * head.q[t * s.D + d];
        }
      }
    }
  });
  return out;
}

constexpr Evaluation kTable[] = {{"attention", -1, attention},
                                 {"attention_gradient", -1, attention_gradient}};

}  // namespace

std::span<const Evaluation> attention_table() { return kTable; }

}  // namespace tensorgrad::reference
