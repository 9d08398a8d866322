// Leaves: tensors in memory before a run, and constants. zeros, full, arange, ... are here because
// they are leaves with views on top.
#include <cmath>

#include "ops/builder.h"
#include "ops/registry.h"
#include "ops/table.h"
#include "tensorgrad/ops.h"

namespace tensorgrad::ops {

namespace {

using ir::Attrs;
using ir::Core;
using ir::Primitive;
using ir::Type;

constexpr Primitive leaf(std::string_view name, Core core) {
  return {.name = name,
          .core = core,
          .arity = 0,
          .attrs = ir::attrs_index<ir::LeafAttrs>(),
          .type = [](std::span<const Type>, const Attrs& attrs) {
            const auto& a = std::get<ir::LeafAttrs>(attrs);
            return Type{a.dtype, a.shape};
          }};
}

constexpr Primitive kInput = leaf("input", Core::input);
constexpr Primitive kParameter = leaf("parameter", Core::parameter);
constexpr Primitive kFlatParameters = leaf("flat_parameters", Core::flat_parameters);
constexpr Primitive kState = leaf("state", Core::state);
constexpr Primitive kFlatState = leaf("flat_state", Core::flat_state);

constexpr Primitive kConstant = {
    .name = "constant",
    .id = ir::OpId::constant,
    .core = Core::constant,
    .arity = 0,
    .attrs = ir::attrs_index<ir::ConstantAttrs>(),
    .type = [](std::span<const Type>, const Attrs& attrs) {
      const auto& a = std::get<ir::ConstantAttrs>(attrs);
      if (a.dtype == DType::i32 && !(a.value >= -0x1p31 && a.value < 0x1p31))
        break_rule("", "{} does not fit i32", a.value);
      return Type{a.dtype, {}};
    }};

constexpr Primitive kIota = {.name = "iota",
                             .core = Core::iota,
                             .arity = 0,
                             .attrs = ir::attrs_index<ir::IotaAttrs>(),
                             .type = [](std::span<const Type>, const Attrs& attrs) {
                               const std::int64_t size = std::get<ir::IotaAttrs>(attrs).size;
                               if (size >= std::int64_t{1} << 31)
                                 break_rule("", "positions must fit i32: {} are too many", size);
                               return Type{DType::i32, {size}};
                             }};

constexpr const Primitive* kFamily[] = {
    &kInput, &kParameter, &kFlatParameters, &kState, &kFlatState, &kConstant, &kIota};

}  // namespace

std::span<const Primitive* const> leaf_family() { return kFamily; }

}  // namespace tensorgrad::ops

namespace tensorgrad {

using ops::Call;

Tensor full(const Shape& shape, double value, DType dtype, Site site) {
  Call call("full", site);
  // The constant has the value that a cast would give: passes compute with it.
  if (dtype == DType::boolean) value = value != 0 ? 1 : 0;
  if (dtype == DType::i32) value = std::trunc(value);
  return broadcast_to(call.constant(value, dtype), shape);
}

Tensor zeros(const Shape& shape, DType dtype, Site site) {
  Call call("zeros", site);
  return full(shape, 0, dtype);
}

Tensor ones(const Shape& shape, DType dtype, Site site) {
  Call call("ones", site);
  return full(shape, 1, dtype);
}

Tensor arange(std::int64_t n, DType dtype, Site site) {
  Call call("arange", site);
  if (n < 0) call.fail("", "the number of elements must not be negative: {}", n);
  if (dtype == DType::boolean) call.fail("", "needs i32 or f32: the dtype is {}", name(dtype));
  return cast(call.emit(ops::kIota, {}, ir::IotaAttrs{n}), dtype);
}

Tensor arange(std::int64_t start, std::int64_t stop, std::int64_t step, DType dtype, Site site) {
  Call call("arange", site);
  if (step == 0) call.fail("", "the step must not be zero");
  const bool empty = step > 0 ? start >= stop : start <= stop;
  if (empty) return arange(0, dtype);
  // Unsigned, because the distance between two i64 may not fit an i64.
  const auto first = static_cast<std::uint64_t>(start), last = static_cast<std::uint64_t>(stop);
  const auto stride = static_cast<std::uint64_t>(step);
  const std::uint64_t steps =
      step > 0 ? (last - first - 1) / stride : (first - last - 1) / (0 - stride);
  const auto end = static_cast<std::int64_t>(first + steps * stride);
  for (const std::int64_t value : {start, end})
    if (value != static_cast<std::int32_t>(value))
      call.fail("", "values must fit i32: {} does not (start {}, stop {}, step {})", value, start,
                stop, step);
  Tensor t = arange(static_cast<std::int64_t>(steps) + 1);
  if (steps > 0 && step != 1) t = t * step;
  return cast(start == 0 ? t : t + start, dtype);
}

Tensor linspace(double start, double stop, std::int64_t n, Site site) {
  Call call("linspace", site);
  if (n < 1) call.fail("", "needs at least one point: {}", n);
  const double step = n > 1 ? (stop - start) / static_cast<double>(n - 1) : 0;
  const Tensor i = arange(n);
  const Tensor up = start + cast(i, f32) * step;
  if (n == 1) return up;
  // The second half counts down from `stop`, so that both ends are exact.
  const Tensor down = stop - cast((n - 1) - i, f32) * step;
  return where(i < (n + 1) / 2, up, down);
}

Tensor eye(std::int64_t n, Site site) {
  Call call("eye", site);
  const Tensor i = arange(n);
  return cast(equal(unsqueeze(i, 1), unsqueeze(i, 0)), f32);
}

Tensor tril(Operand x, std::int64_t diagonal) {
  Call call("tril", x.site());
  const Tensor t = call.tensor(x);
  if (t.rank() < 2) call.fail("", "needs at least two axes: {}", call.describe("x", t));
  const Tensor row = unsqueeze(arange(t.size(-2)), 1), column = unsqueeze(arange(t.size(-1)), 0);
  const Tensor zero = call.constant(0, t.dtype());
  return where(column <= row + diagonal, t, zero);
}

}  // namespace tensorgrad

namespace tensorgrad::ops {

std::span<const PublicOp> leaf_ops() {
  static constexpr PublicOp all[] = {
      op<zeros>("zeros", {"shape", {"dtype", "f32"}}, "Zeros."),
      op<ones>("ones", {"shape", {"dtype", "f32"}}, "Ones."),
      op<full>("full", {"shape", "value", {"dtype", "f32"}}, "One value everywhere."),
      op<eye>("eye", {"n"}, "The identity matrix [n, n]."),
      op(
          "arange",
          [](std::int64_t stop, std::int64_t start, std::int64_t step, DType dtype, Site site) {
            return arange(start, stop, step, dtype, site);
          },
          {"stop", {"start", 0}, {"step", 1}, {"dtype", "i32"}},
          "start, start + step, ... before stop. All values must fit into i32."),
      op<linspace>("linspace", {"start", "stop", "n"},
                   "n points from start to stop, f32. Both ends are included."),
      op<tril>("tril", {"x", {"diagonal", 0}},
               "The lower triangle of the last two axes. Elements above the diagonal become 0."),
  };
  return all;
}

}  // namespace tensorgrad::ops
