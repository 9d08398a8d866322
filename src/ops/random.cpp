// Random numbers, counter-based: a number depends on (seed, step, call, index) alone, so that it is
// the same on every device and for any number of threads, and no two steps share a stream.
#include <numbers>

#include "ops/builder.h"
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
    .name = "random", .arity = 3, .attrs = ir::attrs_index<ir::RandomAttrs>(),
    .type = [](std::span<const Type> in, const Attrs&) {
      for (const Type& t : in)
        if (t.dtype != DType::i32 || t.shape != in[2].shape)
          break_rule("", "needs three i32 operands of one shape: {}", t.text());
      return Type{DType::f32, in[2].shape};
    },
    .scalar = [](ScalarProgram& p, std::span<const Reg> in, const Attrs& attrs) {
      return p.push({.op = ScalarOp::random, .dtype = DType::f32, .a = in[0], .b = in[1], .c = in[2],
                     .site = static_cast<std::uint32_t>(std::get<ir::RandomAttrs>(attrs).site)});
    }};

constexpr const Primitive* kFamily[] = {&kRandom};

// Uniform in [0, 1); every call is a stream of its own.
Tensor random_unit(const Call& call, const Shape& shape) {
  Builder& builder = call.builder();
  const Tensor index = reshape(arange(shape.count()), shape);
  return call.emit(kRandom, {broadcast_to(builder.seed(), shape), broadcast_to(builder.step(), shape), index},
                   ir::RandomAttrs{builder.next_random_site()});
}

void check_probability(const Call& call, float p) {
  if (!(p >= 0 && p <= 1)) call.fail("", "a probability is between 0 and 1: {}", p);
}

}  // namespace

std::span<const Primitive* const> random_family() { return kFamily; }

}  // namespace tensorgrad::ops

namespace tensorgrad {

using namespace ops;

Tensor uniform(const Shape& shape, float low, float high, Site site) {
  Call call("uniform", site);
  const Tensor u = random_unit(call, shape);
  return low == 0 && high == 1 ? u : u * (high - low) + low;
}

// Box and Muller: sqrt(-2 log(1 - u)) cos(2 pi v); 1 - u is never 0.
Tensor randn(const Shape& shape, Site site) {
  Call call("randn", site);
  const Tensor u = random_unit(call, shape), v = random_unit(call, shape);
  return sqrt(log(1.0f - u) * -2.0f) * cos(v * static_cast<float>(2 * std::numbers::pi));
}

Tensor bernoulli(Operand p) {
  Call call("bernoulli", p.site());
  const Tensor t = call.tensor(p);
  call.require_f32("p", t);
  return cast(random_unit(call, t.shape()) < t, f32);
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

// The largest of logits + Gumbel noise.
Tensor categorical(Operand logits) {
  Call call("categorical", logits.site());
  const Tensor t = call.tensor(logits);
  call.require_f32("logits", t);
  if (t.rank() < 1) call.fail("", "needs logits [..., V]: {}", call.describe("logits", t));
  const Tensor gumbel = -log(-log(random_unit(call, t.shape()) * (1 - 0x1p-23f) + 0x1p-25f));
  return argmax(t + gumbel, -1);
}

}  // namespace tensorgrad
