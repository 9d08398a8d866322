// State spaces by definition: computes one state after the other and keeps all of them.
#include "ir/sequence.h"
#include "reference/evaluate.h"
#include "support/integers.h"

namespace tensorgrad::reference {

namespace {

using ir::Node;
using ir::SelectiveScanShape;

SelectiveScanShape shape_of(const Node& node, Inputs in) {
  for (const Value* operand : in) expect_dtype(node, *operand, DType::f32);
  const Shape &u = in[0]->type.shape, &A = in[2]->type.shape;
  expect(u.rank() == 3 && A.rank() == 2, node, "u is {}, A_log is {}", u.text(), A.text());
  const auto& attrs = node.as<ir::SelectiveScanAttrs>();
  return {.B = u[0], .L = u[1], .E = u[2], .N = A[1], .chunk = attrs.chunk, .zoh = attrs.zoh};
}

double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// State n of channel e of sequence b: its operands at each step, and its values, starting with the
// one before the first step.
struct Line {
  const SelectiveScanShape& s;
  Inputs in;
  std::int64_t b, e, n;
  double A;
  std::vector<double> h;

  Line(const SelectiveScanShape& shape, Inputs operands, std::int64_t b_, std::int64_t e_,
       std::int64_t n_)
      : s(shape),
        in(operands),
        b(b_),
        e(e_),
        n(n_),
        A(-std::exp(in[2]->data[usize(e * s.N + n)])),
        h{0} {
    for (std::int64_t t = 0; t < s.L; ++t)
      h.push_back(decay(t) * h.back() + weight(t) * B(t) * u(t));
  }

  std::size_t wide(std::int64_t t) const { return usize((b * s.L + t) * s.E + e); }
  std::size_t narrow(std::int64_t t) const { return usize((b * s.L + t) * s.N + n); }
  std::size_t own() const { return usize((b * s.E + e) * s.N + n); }

  double u(std::int64_t t) const { return in[0]->data[wide(t)]; }
  double delta(std::int64_t t) const { return in[1]->data[wide(t)]; }
  double B(std::int64_t t) const { return in[3]->data[narrow(t)]; }
  double C(std::int64_t t) const { return in[4]->data[narrow(t)]; }
  double dl(std::int64_t t) const { return softplus(delta(t)); }
  double decay(std::int64_t t) const { return std::exp(dl(t) * A); }
  // b of h = a h + b B u.
  double weight(std::int64_t t) const { return s.zoh ? std::expm1(dl(t) * A) / A : dl(t); }
};

template <class F>
void each_line(const SelectiveScanShape& s, Inputs in, F f) {
  for (std::int64_t b = 0; b < s.B; ++b)
    for (std::int64_t e = 0; e < s.E; ++e)
      for (std::int64_t n = 0; n < s.N; ++n) f(Line(s, in, b, e, n));
}

// The D of the channel of element i of u.
double skip(const SelectiveScanShape& s, Inputs in, std::size_t i) {
  return in[5]->data[i % usize(s.E)];
}

Value selective_scan(const Node& node, Inputs in) {
  const SelectiveScanShape s = shape_of(node, in);
  Value out = make_value(DType::f32, {s.result_elements()});
  for (std::size_t i = 0; i < in[0]->data.size(); ++i)
    out.data[i] = skip(s, in, i) * in[0]->data[i];
  each_line(s, in, [&](const Line& line) {
    for (std::int64_t t = 0; t < s.L; ++t)
      out.data[line.wide(t)] += line.C(t) * line.h[usize(t + 1)];
    for (std::int64_t c = 0; c < s.kept(); ++c)
      out.data[usize(s.states() + ((line.b * s.kept() + c) * s.E + line.e) * s.N + line.n)] =
          line.h[usize((c + 1) * s.chunk)];
  });
  return out;
}

// G_t = C_t g_t + a_(t+1) G_(t+1) is the gradient of h_t = a_t h_(t-1) + b_t B_t u_t. The gradients
// of the operands follow from it.
Value selective_scan_gradient(const Node& node, Inputs in) {
  const SelectiveScanShape s = shape_of(node, in);
  expect_same_types(node, *in[0], *in[7]);
  const std::vector<double>& g = in[7]->data;
  Value out = make_value(DType::f32, {s.gradient_elements()});
  const auto part = [&](std::int64_t offset) { return out.data.data() + offset; };
  double *const du = part(0), *const ddelta = part(s.ddelta()), *const dB = part(s.dB()),
                *const dC = part(s.dC());
  for (std::size_t i = 0; i < g.size(); ++i) du[i] = skip(s, in, i) * g[i];
  each_line(s, in, [&](const Line& line) {
    double later = 0, dA = 0;
    for (std::int64_t t = s.L - 1; t >= 0; --t) {
      const double A = line.A, a = line.decay(t), dl = line.dl(t), weight = line.weight(t);
      const double before = line.h[usize(t)], B = line.B(t), u = line.u(t), dy = g[line.wide(t)];
      const double G = line.C(t) * dy + later;
      dC[line.narrow(t)] += dy * line.h[usize(t + 1)];
      dB[line.narrow(t)] += G * weight * u;
      du[line.wide(t)] += G * weight * B;
      ddelta[line.wide(t)] +=
          G * (A * a * before + (s.zoh ? a : 1) * B * u) * sigmoid(line.delta(t));
      dA += G * dl * a * before;
      if (s.zoh) dA += G * u * B * (dl * a - weight) / A;
      later = a * G;
    }
    part(s.dA())[line.own()] = dA;
  });
  return out;
}

constexpr Evaluation kTable[] = {{"selective_scan", 6, selective_scan},
                                 {"selective_scan_gradient", 8, selective_scan_gradient}};

}  // namespace

std::span<const Evaluation> state_space_table() { return kTable; }

}  // namespace tensorgrad::reference
