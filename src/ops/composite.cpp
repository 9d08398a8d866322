// Composite ops of machine learning: plain functions over tensors. They need no gradient rule and
// no kernel.
#include <cmath>
#include <limits>

#include "ops/builder.h"
#include "ops/registry.h"
#include "ops/table.h"
#include "tensorgrad/ops.h"

// Four of them are primitives of core `composite`, because their gradients have a short form in
// terms of the result. Differentiation uses that form; afterwards they are expanded into other ops.
namespace tensorgrad::ops {

namespace {

using ir::Attrs;
using ir::Core;
using ir::GradientArgs;
using ir::Primitive;
using ir::Type;

Type axis_type(std::span<const Type> in, const Attrs& attrs) {
  const int axis = std::get<ir::AxisAttrs>(attrs).axis;
  if (in[0].dtype != DType::f32 || axis < 0 || axis >= in[0].shape.rank())
    break_rule("", "needs f32 and one of its axes: x is {}, the axis {}", in[0].text(), axis);
  return in[0];
}

// dx = s * (g - sum(g * s))
constexpr Primitive kSoftmax = {
    .name = "softmax",
    .id = ir::OpId::softmax,
    .core = Core::composite,
    .attrs = ir::attrs_index<ir::AxisAttrs>(),
    .type = axis_type,
    .expand =
        [](const std::vector<Tensor>& in, const Attrs& attrs) {
          const int axis = std::get<ir::AxisAttrs>(attrs).axis;
          const Tensor e = exp(in[0] - max(in[0], axis, true));
          return e / sum(e, axis, true);
        },
    .gradient = [](const GradientArgs& d) -> std::vector<Tensor> {
      return {d.out * (d.g - sum(d.g * d.out, d.as<ir::AxisAttrs>().axis, true))};
    }};

// dx = g - exp(y) * sum(g)
constexpr Primitive kLogSoftmax = {
    .name = "log_softmax",
    .core = Core::composite,
    .attrs = ir::attrs_index<ir::AxisAttrs>(),
    .type = axis_type,
    .expand =
        [](const std::vector<Tensor>& in, const Attrs& attrs) {
          const int axis = std::get<ir::AxisAttrs>(attrs).axis;
          const Tensor shifted = in[0] - max(in[0], axis, true);
          return shifted - log(sum(exp(shifted), axis, true));
        },
    .gradient = [](const GradientArgs& d) -> std::vector<Tensor> {
      return {d.g - exp(d.out) * sum(d.g, d.as<ir::AxisAttrs>().axis, true)};
    }};

Tensor inverse_deviation(const Tensor& centered, double eps) {
  return rsqrt(mean(centered * centered, -1, true) + eps);
}

// y = (x - mean) / sqrt(var + eps) over the last axis; dx = r (g - mean(g) - y mean(g y)), r =
// 1/sqrt(var + eps)
constexpr Primitive kNormalize = {
    .name = "normalize",
    .core = Core::composite,
    .attrs = ir::attrs_index<ir::NormAttrs>(),
    .type =
        [](std::span<const Type> in, const Attrs&) {
          if (in[0].dtype != DType::f32 || in[0].shape.rank() < 1)
            break_rule("", "needs f32 and at least one axis: x is {}", in[0].text());
          return in[0];
        },
    .expand =
        [](const std::vector<Tensor>& in, const Attrs& attrs) {
          const Tensor centered = in[0] - mean(in[0], -1, true);
          return centered * inverse_deviation(centered, std::get<ir::NormAttrs>(attrs).eps);
        },
    .gradient = [](const GradientArgs& d) -> std::vector<Tensor> {
      const Tensor r =
          inverse_deviation(d.in[0] - mean(d.in[0], -1, true), d.as<ir::NormAttrs>().eps);
      return {(d.g - mean(d.g, -1, true) - d.out * mean(d.g * d.out, -1, true)) * r};
    }};

// y = x r, r = 1/sqrt(mean(x^2) + eps); dx = r (g - y mean(g y))
constexpr Primitive kRmsNormalize = {
    .name = "rms_normalize",
    .core = Core::composite,
    .attrs = ir::attrs_index<ir::NormAttrs>(),
    .type = kNormalize.type,
    .expand =
        [](const std::vector<Tensor>& in, const Attrs& attrs) {
          return in[0] * inverse_deviation(in[0], std::get<ir::NormAttrs>(attrs).eps);
        },
    .gradient = [](const GradientArgs& d) -> std::vector<Tensor> {
      const Tensor r = inverse_deviation(d.in[0], d.as<ir::NormAttrs>().eps);
      return {(d.g - d.out * mean(d.g * d.out, -1, true)) * r};
    }};

constexpr const Primitive* kFamily[] = {&kSoftmax, &kLogSoftmax, &kNormalize, &kRmsNormalize};

}  // namespace

std::span<const Primitive* const> composite_family() { return kFamily; }

}  // namespace tensorgrad::ops

namespace tensorgrad {

using namespace ops;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

Tensor reduced(const Tensor& t, Reduction reduction) {
  switch (reduction) {
    case Reduction::mean:
      return mean(t);
    case Reduction::sum:
      return sum(t);
    case Reduction::none:
      return t;
  }
  return t;
}

// True where column <= row, [T, S]. If S > T, rows are aligned with the last T columns.
Tensor causal_mask(std::int64_t T, std::int64_t S) {
  return unsqueeze(arange(S), 0) <= unsqueeze(arange(T), 1) + (S - T);
}

}  // namespace

Tensor softmax(Operand x, int axis) {
  Call call("softmax", x.site());
  const Tensor t = call.tensor(x);
  call.require_f32("x", t);
  const int at = call.axis(t, axis);
  call.require_elements(t, at);
  return call.emit(kSoftmax, {t}, ir::AxisAttrs{at});
}

Tensor log_softmax(Operand x, int axis) {
  Call call("log_softmax", x.site());
  const Tensor t = call.tensor(x);
  call.require_f32("x", t);
  const int at = call.axis(t, axis);
  call.require_elements(t, at);
  return call.emit(kLogSoftmax, {t}, ir::AxisAttrs{at});
}

Tensor where_causal(Operand x, float fill) {
  Call call("where_causal", x.site());
  const Tensor t = call.tensor(x);
  if (t.rank() < 2 || t.size(-1) < t.size(-2))
    call.fail("", "needs [..., T, S] with S >= T: {}", call.describe("x", t));
  return where(causal_mask(t.size(-2), t.size(-1)), t,
               call.constant(static_cast<double>(fill), t.dtype()));
}

Tensor softmax_causal(Operand x) {
  Call call("softmax_causal", x.site());
  const Tensor t = call.tensor(x);
  if (t.rank() < 2 || t.size(-1) != t.size(-2))
    call.fail("", "needs square scores [..., T, T]: {}", call.describe("x", t));
  return softmax(where_causal(t, -kInfinity), -1);
}

namespace {

// Applies one of the two norms, then multiplies by the gain.
Tensor normed(const Call& call, const Primitive& norm, const Operand& x, const Operand& gain,
              float eps) {
  const Tensor t = call.tensor(x);
  call.require_f32("x", t);
  if (t.rank() < 1) call.fail("", "needs at least one axis: {}", call.describe("x", t));
  const Tensor g = call.tensor(gain);
  if (g.shape() != Shape{t.size(-1)})
    call.fail("", "the gain must have the size of the last axis: {}, {}", call.describe("x", t),
              call.describe("gain", g));
  return call.emit(norm, {t}, ir::NormAttrs{eps}) * g;
}

}  // namespace

Tensor layer_norm(Operand x, Operand gain, Operand bias, float eps) {
  Call call("layer_norm", x.site());
  const Tensor y = normed(call, kNormalize, x, gain, eps), b = call.tensor(bias);
  if (b.shape() != Shape{y.size(-1)})
    call.fail("", "the bias must have the size of the last axis: {}, {}",
              call.describe("x", call.tensor(x)), call.describe("bias", b));
  return y + b;
}

Tensor layer_norm(Operand x, Operand gain, float eps) {
  Call call("layer_norm", x.site());
  return normed(call, kNormalize, x, gain, eps);
}

Tensor rms_norm(Operand x, Operand gain, float eps) {
  Call call("rms_norm", x.site());
  return normed(call, kRmsNormalize, x, gain, eps);
}

namespace {

// Checks that targets [...] hold one class for each row of x [..., V].
void check_classes(const Call& call, std::string_view label, const Tensor& x,
                   const Tensor& targets) {
  call.require_f32(label, x);
  call.require_i32("targets", targets);
  Shape rows = x.shape();
  if (rows.rank() > 0) rows.erase(-1);
  if (x.rank() < 1 || rows != targets.shape())
    call.fail("", "needs {} [..., V] and targets [...]: {}, {}", label, call.describe(label, x),
              call.describe("targets", targets));
}

}  // namespace

Tensor cross_entropy(Operand logits, Operand targets, CrossEntropyOptions options) {
  Call call("cross_entropy", logits.site());
  const Tensor x = call.tensor(logits), y = call.tensor(targets, i32);
  check_classes(call, "logits", x, y);
  return nll_loss(log_softmax(x, -1), y, options);
}

Tensor nll_loss(Operand log_probs, Operand targets, CrossEntropyOptions options) {
  Call call("nll_loss", log_probs.site());
  const Tensor x = call.tensor(log_probs), y = call.tensor(targets, i32);
  check_classes(call, "log_probs", x, y);
  const float smoothing = options.label_smoothing;
  if (!(smoothing >= 0 && smoothing <= 1))
    call.fail("", "label_smoothing must be between 0 and 1: {}", smoothing);

  Tensor counts, ids = y;
  if (options.ignore_index) {
    counts = not_equal(y, *options.ignore_index);
    ids = where(counts, y, 0);
  }
  Tensor loss = -squeeze(take_along_axis(x, unsqueeze(ids, -1), -1), -1);
  if (smoothing > 0) loss = loss * (1 - smoothing) - mean(x, -1) * smoothing;
  if (!counts.valid()) return reduced(loss, options.reduction);
  loss = where(counts, loss, 0.0f);
  const bool is_empty = loss.count() == 0;  // reduced() reports the mean of no elements as an error
  if (options.reduction != Reduction::mean || is_empty) return reduced(loss, options.reduction);
  return sum(loss) / sum(cast(counts, f32));
}

Tensor mse_loss(Operand prediction, Operand target, Reduction reduction) {
  Call call("mse_loss", prediction.site());
  return reduced(square(prediction - target), reduction);
}

// max(x, 0) - x y + log(1 + exp(-|x|))
Tensor bce_with_logits(Operand logits, Operand target, Reduction reduction) {
  Call call("bce_with_logits", logits.site());
  const Tensor x = call.tensor(logits), y = call.tensor(target);
  return reduced(softplus(x) - x * y, reduction);
}

Tensor huber_loss(Operand prediction, Operand target, float delta, Reduction reduction) {
  Call call("huber_loss", prediction.site());
  if (!(delta > 0)) call.fail("", "delta must be positive: {}", delta);
  const Tensor error = prediction - target, size = abs(error);
  return reduced(where(size <= delta, error * error * 0.5f, (size - delta * 0.5f) * delta),
                 reduction);
}

Tensor kl_div(Operand input, Operand target, Reduction reduction) {
  Call call("kl_div", input.site());
  const Tensor x = call.tensor(input), y = call.tensor(target);
  // 0 log 0 is 0. The inner where() keeps log away from 0, so that its gradient is not NaN.
  const Tensor positive = y > 0.0f;
  const Tensor entropy = where(positive, y * log(where(positive, y, 1.0f)), 0.0f);
  return reduced(entropy - y * x, reduction);
}

Tensor rope(Operand x, float base, std::int64_t offset) {
  Call call("rope", x.site());
  return rope(x, base, call.constant(static_cast<double>(offset), i32));
}

// Rotates the halves a and b of the last axis: (a, b) -> (a cos - b sin, a sin + b cos)
Tensor rope(Operand x, float base, const Tensor& offset) {
  Call call("rope", x.site());
  const Tensor t = call.tensor(x);
  call.require_f32("x", t);
  if (t.rank() < 2 || t.size(-1) % 2 != 0)
    call.fail("", "needs [..., T, D] with an even D: {}", call.describe("x", t));
  if (!(base > 0)) call.fail("", "the base must be positive: {}", base);
  if (const Tensor at = call.tensor(offset); at.dtype() != i32 || at.rank() != 0)
    call.fail("", "the offset must be one i32 scalar: {}", call.describe("offset", at));
  const std::int64_t T = t.size(-2), half = t.size(-1) / 2;
  const double rate = -std::log(static_cast<double>(base)) / static_cast<double>(half);
  const Tensor frequency = exp(cast(arange(half), f32) * rate);
  const Tensor position = cast(arange(T) + offset, f32);
  const Tensor angle = unsqueeze(position, 1) * frequency;  // [T, D/2]
  const Tensor c = cos(angle), s = sin(angle);
  const Tensor a = narrow(t, -1, 0, half), b = narrow(t, -1, half, half);
  return concat({a * c - b * s, a * s + b * c}, -1);
}

Tensor capture(std::string_view name, Operand x) {
  Call call("capture", x.site());
  const Tensor t = call.tensor(x);
  ir::Graph& graph = call.builder().graph;
  if (name.empty()) call.fail("", "needs a name");
  if (graph.find(ir::Result::Kind::capture, name) >= 0)
    call.fail("give each capture a name of its own, for example with the layer's number",
              "the name '{}' is taken", name);
  graph.results.push_back({ir::Result::Kind::capture, std::string(name), TensorAccess::node(t)});
  return t;
}

}  // namespace tensorgrad

namespace tensorgrad::ops {

std::span<const PublicOp> composite_ops() {
  static constexpr PublicOp all[] = {
      op<softmax>("softmax", {"x", {"axis", -1}}, "exp(x) / sum(exp(x)) along an axis."),
      op<log_softmax>("log_softmax", {"x", {"axis", -1}}, "The logarithm of softmax."),
      op<where_causal>(
          "where_causal", {"x", "fill"},
          "x is [..., T, S]. Row t keeps columns 0 .. t + S - T; the others become fill."),
      op<softmax_causal>("softmax_causal", {"x"},
                         "Softmax over the last axis of [..., T, T]. Row t sees columns 0 .. t."),
      op(
          "layer_norm",
          [](Operand x, Operand gain, std::optional<Operand> bias, float eps) {
            return bias ? layer_norm(x, gain, *bias, eps) : layer_norm(x, gain, eps);
          },
          {"x", "gain", {"bias", kNothing}, {"eps", 1e-5}}, "Layer norm over the last axis."),
      op<rms_norm>("rms_norm", {"x", "gain", {"eps", 1e-5}}, "RMS norm over the last axis."),
      op(
          "cross_entropy",
          [](Operand logits, Operand targets, Reduction reduction, std::optional<int> ignore_index,
             float label_smoothing) {
            return cross_entropy(logits, targets,
                                 {.reduction = reduction,
                                  .ignore_index = ignore_index,
                                  .label_smoothing = label_smoothing});
          },
          {"logits",
           "targets",
           {"reduction", "mean"},
           {"ignore_index", kNothing},
           {"label_smoothing", 0.0}},
          "The cross-entropy of logits [..., V] and targets, i32 [...]. Targets that are "
          "ignore_index do not count."),
      op(
          "nll_loss",
          [](Operand log_probs, Operand targets, Reduction reduction,
             std::optional<int> ignore_index, float label_smoothing) {
            return nll_loss(log_probs, targets,
                            {.reduction = reduction,
                             .ignore_index = ignore_index,
                             .label_smoothing = label_smoothing});
          },
          {"log_probs",
           "targets",
           {"reduction", "mean"},
           {"ignore_index", kNothing},
           {"label_smoothing", 0.0}},
          "The same as cross_entropy, from log-probabilities."),

      op<mse_loss>("mse_loss", {"prediction", "target", {"reduction", "mean"}},
                   "The squared error."),
      op<bce_with_logits>("bce_with_logits", {"logits", "target", {"reduction", "mean"}},
                          "The binary cross-entropy of sigmoid(logits)."),
      op<huber_loss>("huber_loss", {"prediction", "target", {"delta", 1.0}, {"reduction", "mean"}},
                     "Squared for errors below delta, linear beyond."),
      op<kl_div>(
          "kl_div", {"input", "target", {"reduction", "mean"}},
          "KL(target || input). The input holds log-probabilities, the target probabilities."),
      op(
          "rope",
          [](Operand x, float base, Operand offset) {
            if (TensorAccess::is_scalar(offset))
              return rope(x, base, static_cast<std::int64_t>(TensorAccess::scalar(offset)));
            return rope(x, base, TensorAccess::tensor(offset));
          },
          {"x", {"base", 10000.0}, {"offset", 0}},
          "Rotary positions over the last two axes [..., T, D], in pairs (i, i + D/2). The offset "
          "may be an i32 tensor."),
      op(
          "capture", [](std::string name, Operand x) { return capture(name, x); }, {"name", "x"},
          "x, under a name by which a run can return it."),
  };
  return all;
}

}  // namespace tensorgrad::ops
