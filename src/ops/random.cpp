// Counter-based random numbers. A number depends only on (seed, step, call, index). So it is the
// same on every device and for any number of threads, and no two steps share a stream.
#include <cmath>
#include <numbers>

#include "ops/builder.h"
#include "ops/registry.h"
#include "ops/table.h"
#include "tensorgrad/ops.h"

namespace tensorgrad::ops {

namespace {

using ir::Attrs;
using ir::Primitive;
using ir::Reg;
using ir::ScalarOp;
using ir::ScalarProgram;
using ir::Type;

// (seed, step, index), all i32 -> f32 in [0, 1)
constexpr Primitive kRandom = {
    .name = "random",
    .arity = 3,
    .attrs = ir::attrs_index<ir::RandomAttrs>(),
    .type =
        [](std::span<const Type> in, const Attrs&) {
          for (const Type& t : in)
            if (t.dtype != DType::i32 || t.shape != in[2].shape)
              break_rule("", "needs three i32 operands of one shape: {}", t.text());
          return Type{DType::f32, in[2].shape};
        },
    .scalar =
        [](ScalarProgram& p, std::span<const Reg> in, const Attrs& attrs) {
          return p.push(
              {.op = ScalarOp::random,
               .dtype = DType::f32,
               .a = in[0],
               .b = in[1],
               .c = in[2],
               .site = static_cast<std::uint32_t>(std::get<ir::RandomAttrs>(attrs).site)});
        }};

// i32 results, where -1 means that there was nothing to draw from. A -1 fails the run.
constexpr Primitive drawn(std::string_view name, std::string_view broken) {
  return {.name = name,
          .arity = 1,
          .attrs = ir::attrs_index<ir::CheckAttrs>(),
          .type =
              [](std::span<const Type> in, const Attrs&) {
                if (in[0].dtype != DType::i32) break_rule("", "needs i32: {}", in[0].text());
                return in[0];
              },
          .scalar =
              [](ScalarProgram& p, std::span<const Reg> in, const Attrs& attrs) {
                return p.push({.op = ScalarOp::check_index,
                               .dtype = DType::i32,
                               .a = in[0],
                               .extent = std::get<ir::CheckAttrs>(attrs).size});
              },
          .broken = broken};
}

constexpr Primitive kDrawnTruth = drawn("drawn_truth", "a probability is outside 0 to 1, or NaN");
constexpr Primitive kDrawnClass =
    drawn("drawn_class", "the largest logit of a row is not finite: there is no class to choose");

constexpr const Primitive* kFamily[] = {&kRandom, &kDrawnTruth, &kDrawnClass};

// Uniform in [0, 1). Every call has its own stream.
Tensor random_unit(const Call& call, const Shape& shape) {
  Builder& builder = call.builder();
  const Tensor index = reshape(arange(shape.count()), shape);
  return call.emit(
      kRandom, {broadcast_to(builder.seed(), shape), broadcast_to(builder.step(), shape), index},
      ir::RandomAttrs{builder.next_random_site()});
}

void check_probability(const Call& call, float p) {
  if (!(p >= 0 && p <= 1)) call.fail("", "the probability must be between 0 and 1: {}", p);
}

}  // namespace

std::span<const Primitive* const> random_family() { return kFamily; }

}  // namespace tensorgrad::ops

namespace tensorgrad {

using namespace ops;

Tensor uniform(const Shape& shape, float low, float high, Site site) {
  Call call("uniform", site);
  if (!(low <= high) || !std::isfinite(high - low))
    call.fail("", "needs finite bounds, low <= high: low {}, high {}", low, high);
  const Tensor u = random_unit(call, shape);
  return low == 0 && high == 1 ? u : u * (high - low) + low;
}

// Box-Muller: sqrt(-2 log(1 - u)) cos(2 pi v); 1 - u is never 0.
Tensor randn(const Shape& shape, Site site) {
  Call call("randn", site);
  const Tensor u = random_unit(call, shape), v = random_unit(call, shape);
  return sqrt(log(1.0f - u) * -2.0f) * cos(v * static_cast<float>(2 * std::numbers::pi));
}

Tensor bernoulli(Operand p) {
  Call call("bernoulli", p.site());
  const Tensor t = call.tensor(p);
  call.require_f32("p", t);
  const Tensor is_one = random_unit(call, t.shape()) < t;
  if (TensorAccess::is_scalar(p)) {
    check_probability(call, static_cast<float>(TensorAccess::scalar(p)));
    return cast(is_one, f32);
  }
  const Tensor valid = logical_and(t >= 0.0f, t <= 1.0f);
  return cast(call.emit(kDrawnTruth, {where(valid, cast(is_one, i32), -1)}, ir::CheckAttrs{2}),
              f32);
}

Tensor dropout(Operand x, float p) {
  Call call("dropout", x.site());
  const Tensor t = call.tensor(x);
  call.require_f32("x", t);
  check_probability(call, p);
  if (p == 0 || !call.builder().training()) return t;
  if (p == 1) return t * 0.0f;
  return where(random_unit(call, t.shape()) < p, 0.0f, t * (1 / (1 - p)));
}

// argmax of logits + Gumbel noise.
Tensor categorical(Operand logits) {
  Call call("categorical", logits.site());
  const Tensor t = call.tensor(logits);
  call.require_f32("logits", t);
  if (t.rank() < 1) call.fail("", "needs logits [..., V]: {}", call.describe("logits", t));
  const Tensor gumbel = -log(-log(random_unit(call, t.shape()) * (1 - 0x1p-23f) + 0x1p-25f));
  const Tensor best = argmax(t + gumbel, -1), valid = is_finite(max(t, -1));
  return call.emit(kDrawnClass, {where(valid, best, -1)}, ir::CheckAttrs{t.size(-1)});
}

}  // namespace tensorgrad

namespace tensorgrad::ops {

std::span<const PublicOp> random_ops() {
  static constexpr PublicOp all[] = {
      op<dropout>("dropout", {"x", "p"},
                  "Sets each element to 0 with probability p and scales the others by 1/(1-p). "
                  "Does nothing "
                  "outside training."),
      op<uniform>("uniform", {"shape", {"low", 0.0}, {"high", 1.0}},
                  "Uniform from low to high, without high."),
      op<randn>("randn", {"shape"}, "Normal with mean 0 and standard deviation 1."),
      op<bernoulli>("bernoulli", {"p"}, "1 with probability p, else 0; f32."),
      op<categorical>("categorical", {"logits"},
                      "One class per row of logits [..., V]: i32 [...]."),
  };
  return all;
}

}  // namespace tensorgrad::ops
