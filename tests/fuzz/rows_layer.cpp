// Indexing, losses, convolution and pooling, state spaces, random numbers.
#include <algorithm>

#include "tensorgrad/mamba.h"
#include "tests/fuzz/rows.h"

namespace tensorgrad::fuzz {
namespace {

Tensor embedded(Args& a) {
  const Tensor table = a[0].rank() < 2 ? unsqueeze(with_rank(a[0], 1), -1) : of_rank(a[0], 2);
  return embedding(table, a.ids(1, table.size(0)));
}

Tensor gathered(Args& a) {
  const Tensor x = with_rank(a[0], 1);
  const int axis = a.axis(x);
  Shape shape = x.shape();
  for (int d = 0; d < x.rank(); ++d) shape[d] = 1 + a.pick(d == axis ? 5 : x.size(d));
  return gather(x, axis, remade(a.ids(1, x.size(axis)), shape));
}

Tensor taken(Args& a) {
  const Tensor x = with_rank(a[0], 1);
  const int axis = a.axis(x);
  Shape shape = x.shape();
  shape[axis] = 1 + a.pick(5);
  if (const int other = a.axis(x); other != axis && a.flip()) shape[other] = 1;
  return take_along_axis(x, remade(a.ids(1, x.size(axis)), shape), axis);
}

Tensor replaced(Args& a) {
  const Tensor x = with_rank(a[0], 1);
  const int axis = a.axis(x);
  Shape shape = x.shape();
  shape[axis] = 1 + a.pick(3);
  const Tensor start = remade(a.ids(1, x.size(axis)), {});  // drops what exceeds the end
  return replace_at(x, remade(a[0], shape), axis, start);
}

// Non-finite logits have nothing to draw from.
Tensor finite(const Tensor& x) { return where(is_finite(x), x, 0.0f); }

Tensor hot(Args& a) {
  const std::int64_t depth = a.size();
  return one_hot(a.ids(0, depth), depth);
}

Reduction reduction(Args& a) {
  const Reduction all[] = {Reduction::mean, Reduction::sum, Reduction::none};
  return all[a.pick(3)];
}

template <Tensor (*op)(Operand, Operand, CrossEntropyOptions)>
Tensor classified(Args& a, const Tensor& x) {
  Shape shape = x.shape();
  shape.erase(x.rank() - 1);
  CrossEntropyOptions options{.reduction = reduction(a)};
  if (a.flip()) options.label_smoothing = 0.2f;
  // Not with mean: if all targets are ignored, that is 0/0.
  if (options.reduction != Reduction::mean && a.flip()) options.ignore_index = 0;
  return op(x, remade(a.ids(1, x.size(-1)), shape), options);
}

template <Tensor (*op)(Operand, Operand, Reduction)>
Tensor regressed(Args& a, const Tensor& x, const Tensor& y) {
  return op(x, fitted(y, x.shape()), reduction(a));
}

Tensor huber(Operand x, Operand y, Reduction how) { return huber_loss(x, y, 0.8f, how); }

// The size of a kernel along an axis of that length with padding.
std::int64_t kernel_for(Args& a, std::int64_t length, std::int64_t padding) {
  return 1 + a.pick(std::min<std::int64_t>(length + 2 * padding, 3));
}

Tensor convolved(Args& a) {
  const Tensor x = of_rank(a[0], 4);  // [B, C, H, W]
  const std::int64_t C = x.size(1), padding = a.pick(2);
  Conv2dOptions options{.stride = {1 + a.pick(2), 1}, .padding = padding};
  if (a.flip()) options.groups = C;
  const std::int64_t O = options.groups == 1 ? 1 + a.pick(4) : C;
  const std::int64_t h = kernel_for(a, x.size(2), padding), w = kernel_for(a, x.size(3), padding);
  if (w > 1 && x.size(3) + 2 * padding > 2 * (w - 1)) options.dilation = {1, 1 + a.pick(2)};
  return conv2d(x, remade(a[1], {O, C / options.groups, h, w}), options);
}

Tensor convolved_causally(Args& a) {
  const Tensor x = of_rank(a[0], 3);  // [B, L, C]
  const std::int64_t C = x.size(2), K = 1 + a.pick(5);
  return conv1d_causal_depthwise(x, remade(a[1], {C, K}), remade(a[2], {C}));
}

// Rates and steps use sin: exp(exp(x)) would leave no digits.
Tensor scanned(Args& a) {
  const Tensor u = of_rank(a[0], 3);  // [B, L, E]
  const std::int64_t B = u.size(0), L = u.size(1), E = u.size(2), N = 1 + a.pick(3);
  SelectiveScanOptions options;
  if (a.flip()) options.discretisation = Discretisation::zoh;
  options.chunk = 1 + a.pick(4);
  const Tensor delta = sin(remade(a[1], u.shape())), A_log = sin(remade(a[2], {E, N}));
  const Tensor b = sin(remade(a[1], {B, L, N})), c = sin(remade(a[2], {B, L, N}));
  return selective_scan(u, delta, A_log, b, c, remade(a[2], {E}), options);
}

Tensor dual(Args& a) {
  const Tensor x = of_rank(a[0], 4);  // [B, L, H, P]
  const std::int64_t B = x.size(0), L = x.size(1), H = x.size(2);
  const std::int64_t G = a.flip() ? H : 1, N = 1 + a.pick(3);
  const std::int64_t chunk = 1 + a.pick(4);
  const Tensor dt = sin(remade(a[1], {B, L, H})), A_log = sin(remade(a[2], {H}));
  const Tensor b = sin(remade(a[1], {B, L, G, N})), c = sin(remade(a[2], {B, L, G, N}));
  return ssd(x, dt, A_log, b, c, remade(a[2], {H}), {.chunk = chunk});
}

// One position: y, or the next state.
Tensor scanned_once(Args& a) {
  const Tensor u = of_rank(a[0], 2);  // [B, E]
  const std::int64_t B = u.size(0), E = u.size(1), N = 1 + a.pick(3);
  const auto rule = a.flip() ? Discretisation::zoh : Discretisation::euler;
  Tensor h = remade(a[1], {B, E, N});
  const Tensor delta = sin(remade(a[1], u.shape())), A_log = sin(remade(a[2], {E, N}));
  const Tensor b = sin(remade(a[1], {B, N})), c = sin(remade(a[2], {B, N}));
  const Tensor y = selective_scan_step(h, u, delta, A_log, b, c, remade(a[2], {E}), rule);
  return a.flip() ? y : h;
}

Tensor dual_once(Args& a) {
  const Tensor x = of_rank(a[0], 3);  // [B, H, P]
  const std::int64_t B = x.size(0), H = x.size(1), P = x.size(2);
  const std::int64_t G = a.flip() ? H : 1, N = 1 + a.pick(3);
  Tensor h = remade(a[1], {B, H, N, P});
  const Tensor dt = sin(remade(a[1], {B, H})), A_log = sin(remade(a[2], {H}));
  const Tensor b = sin(remade(a[1], {B, G, N})), c = sin(remade(a[2], {B, G, N}));
  const Tensor y = ssd_step(h, x, dt, A_log, b, c, remade(a[2], {H}));
  return a.flip() ? y : h;
}

// Targets are ids of the last axis. The mask is 1 for those that equal the first, or for all.
Tensor masked(Args& a) {
  const Tensor x = with_rank(a[0], 1);
  Shape shape = x.shape();
  shape.erase(x.rank() - 1);
  const Tensor targets = remade(a.ids(1, x.size(-1)), shape);
  const Tensor first = remade(targets, {});
  const Tensor mask = a.flip() ? equal(targets, first) : equal(targets, targets);
  return masked_cross_entropy(x, targets, mask);
}

template <Tensor (*op)(Operand, Pair, Pool2dOptions)>
Tensor pooled(Args& a) {
  const Tensor x = of_rank(a[0], 4);
  const Pair kernel{kernel_for(a, x.size(2), 0), kernel_for(a, x.size(3), 0)};
  Pool2dOptions options;
  if (a.flip()) options.stride = Pair{1 + a.pick(3), 1 + a.pick(3)};
  if (a.flip()) options.padding = {kernel.h / 2, kernel.w / 2};
  return op(x, kernel, options);
}

}  // namespace

std::span<const Row> layer_rows() {
  static const Row rows[] = {
      {"embedding", "ai", embedded, 4},
      {"gather", "ai", gathered},
      {"take_along_axis", "ai", taken, 3},
      {"replace_at", "ai", replaced},
      {"one_hot", "i", hot},
      {"cross_entropy", "fi",
       [](Args& a) { return classified<cross_entropy>(a, with_rank(a[0], 1)); }, 3},
      {"nll_loss", "fi",
       [](Args& a) { return classified<nll_loss>(a, log_softmax(with_rank(a[0], 1))); }, 1},
      {"mse_loss", "ff", [](Args& a) { return regressed<mse_loss>(a, a[0], a[1]); }},
      {"bce_with_logits", "ff",
       [](Args& a) { return regressed<bce_with_logits>(a, a[0], sigmoid(a[1])); }, 1},
      {"huber_loss", "ff", [](Args& a) { return regressed<huber>(a, a[0], a[1]); }, 1},
      {"kl_div", "ff",
       [](Args& a) {
         const Tensor x = with_rank(a[0], 1), y = with_rank(a[1], 1);
         return regressed<kl_div>(a, log_softmax(x), softmax(y));
       },
       1},
      {"conv2d", "ff", convolved, 3},
      {"conv1d_causal_depthwise", "fff", convolved_causally, 3},
      {"selective_scan", "fff", scanned, 3},
      {"ssd", "fff", dual, 2},
      {"selective_scan_step", "fff", scanned_once, 1},
      {"ssd_step", "fff", dual_once, 1},
      {"masked_cross_entropy", "fi", masked, 1},
      {"max_pool2d", "f", pooled<max_pool2d>},
      {"avg_pool2d", "f", pooled<avg_pool2d>, 1},
      {"nearest_upsample2d", "f",
       [](Args& a) {
         return nearest_upsample2d(of_rank(a[0], 4), {1 + a.pick(2), 1 + a.pick(3)});
       },
       1},
      {"dropout", "f", [](Args& a) { return dropout(a[0], a.flip() ? 0.3f : 0.0f); }},
      // Below 1, so that no rounding makes it larger.
      {"bernoulli", "f", [](Args& a) { return bernoulli(sigmoid(finite(a[0])) * 0.9f + 0.05f); },
       1},
      {"categorical", "f",
       [](Args& a) {
         const Tensor x = with_rank(a[0], 1);
         a.limit = x.size(-1);
         return categorical(finite(x));
       },
       1},
  };
  return rows;
}

}  // namespace tensorgrad::fuzz
