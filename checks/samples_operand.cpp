// Every kind of kernel with every kind of operand: memory, scalars, positions, programs, views that
// strides can and cannot express, results of other kernels.
#include "checks/samples.h"

namespace tensorgrad::checks {
namespace {

// More than a block of 256 elements.
constexpr std::int64_t kR = 18, kC = 20;
const Shape kShape{kR, kC}, kTurned{kC, kR};

// All of them compute [R, C] from x [R, C].
struct Kind {
  const char* name;
  Tensor (*make)(const Tensor& x);
};

const Kind kKinds[] = {
    {"memory", [](const Tensor& x) { return x; }},
    {"program", [](const Tensor& x) { return exp(x * 0.5f) - 0.25f; }},
    {"constant", [](const Tensor&) { return full(kShape, 0.75); }},
    {"padded_constant",
     [](const Tensor&) {
       return pad(ones({kR, kC - 3}), 1, 1, 2, PadMode::constant, 0.5f);
     }},
    {"positions",
     [](const Tensor&) { return cast(reshape(arange(kR * kC), kShape), f32) * 0.0625f; }},
    {"position_windows",
     [](const Tensor&) { return cast(windows(arange(kR + kC - 1), 0, kC), f32) * 0.5f; }},
    {"transposed",
     [](const Tensor& x) {
       return permute(reshape(x, kTurned), {1, 0});
     }},
    {"regrouped",
     [](const Tensor& x) {
       return reshape(permute(x, {1, 0}), kShape);
     }},
    {"regrouped_program",
     [](const Tensor& x) {
       return reshape(permute(sin(x), {1, 0}), kShape);
     }},
    {"flipped",
     [](const Tensor& x) {
       return flip(x, {0, 1});
     }},
    {"padded",
     [](const Tensor& x) {
       return pad(narrow(x, 1, 2, kC - 3), 1, 1, 2, PadMode::constant, 0.5f);
     }},
    {"padded_program",
     [](const Tensor& x) {
       return pad(tanh(narrow(x, 0, 1, kR - 2)), 0, 1, 1, PadMode::constant, -1);
     }},
    {"program_of_padded",
     [](const Tensor& x) {
       return exp(pad(narrow(x, 0, 1, kR - 2), 0, 2, 0, PadMode::constant, 1) * 0.5f) + x;
     }},
    {"broadcast_row", [](const Tensor& x) { return broadcast_to(narrow(x, 0, 2, 1), kShape); }},
    {"broadcast_element",
     [](const Tensor& x) { return broadcast_to(narrow(narrow(x, 0, 2, 1), 1, 3, 1), kShape); }},
    {"broadcast_program",
     [](const Tensor& x) { return broadcast_to(sin(narrow(x, 1, 3, 1)), kShape); }},
    {"windows",
     [](const Tensor& x) {
       return windows(narrow(reshape(x, {-1}), 0, 1, 2 * kR - 2 + kC), 0, kC, 2);
     }},
    {"joined",
     [](const Tensor& x) {
       return concat({narrow(x, 0, 3, kR - 3), square(narrow(x, 0, 0, 3))}, 0);
     }},
    {"stopped",
     [](const Tensor& x) {
       return stop_gradient(permute(x, {0, 1})) + x * 0.5f;
     }},
    {"reduced", [](const Tensor& x) { return broadcast_to(sum(x, 1, true), kShape); }},
    {"product", [](const Tensor& x) { return matmul(matmul(x, swap_axes(x, 0, 1)), x) * 0.01f; }},
    {"taken", [](const Tensor& x) { return embedding(x, arange(kR - 1, -1, -1)); }},
};

struct Core {
  const char* op;
  const char* name;
  Tensor (*apply)(const Tensor& t, const Tensor& x);  // t is the operand, x plain memory [R, C]
  bool differentiable = true;
};

const Core kCores[] = {
    {"mul", "elementwise", [](const Tensor& t, const Tensor& x) { return t * x + t; }},
    {"where", "chosen", [](const Tensor& t, const Tensor& x) { return where(x > 0.1f, t, x); },
     false},
    {"sum", "rows", [](const Tensor& t, const Tensor&) { return sum(t, 1); }},
    {"sum", "columns", [](const Tensor& t, const Tensor&) { return sum(t, 0); }},
    {"sum", "everything", [](const Tensor& t, const Tensor&) { return sum(t); }},
    {"max", "rows", [](const Tensor& t, const Tensor&) { return max(t, 1); }, false},
    {"prod", "columns", [](const Tensor& t, const Tensor&) { return prod(t, 0); }},
    {"argmax", "rows", [](const Tensor& t, const Tensor&) { return argmax(t, 1); }, false},
    {"cumsum", "rows", [](const Tensor& t, const Tensor&) { return cumsum(t, 1); }},
    {"cumsum", "columns", [](const Tensor& t, const Tensor&) { return cumsum(t, 0); }},
    {"matmul", "left",
     [](const Tensor& t, const Tensor& x) { return matmul(t, reshape(x, kTurned)); }},
    {"matmul", "right",
     [](const Tensor& t, const Tensor& x) { return matmul(reshape(x, kTurned), t); }},
    {"embedding", "table",
     [](const Tensor& t, const Tensor&) {
       return embedding(t, reshape(arange(6), {3, 2}));
     }},
    {"embedding", "ids",
     [](const Tensor& t, const Tensor& x) {
       return embedding(x, cast(clamp(t * 2.0f + 2.5f, 0, 5), i32));
     },
     false},
    {"take_along_axis", "numbers",
     [](const Tensor& t, const Tensor&) {
       return take_along_axis(t, windows(arange(kR + 2), 0, 3), 1);
     }},
    {"take_along_axis", "columns",
     [](const Tensor& t, const Tensor&) {
       return take_along_axis(t, broadcast_to(reshape(arange(kR - 1, -1, -1), {kR, 1}), kShape), 0);
     }},
    {"take_along_axis", "one_per_row",
     [](const Tensor& t, const Tensor& x) { return take_along_axis(t, argmax(x, 1, true), 1); }},
    {"concat", "part",
     [](const Tensor& t, const Tensor& x) {
       return concat({t, x, t}, 1);
     }},
    {"windows", "rows", [](const Tensor& t, const Tensor&) { return windows(t, 1, 3, 2) * 2.0f; }},
    {"softmax", "rows", [](const Tensor& t, const Tensor&) { return softmax(t, 1); }},
};

}  // namespace

Samples operand_samples() {
  Samples rows;
  for (const Core& core : kCores)
    for (const Kind& kind : kKinds) {
      Sample row;
      row.op = core.op;
      row.variant = std::string(core.name) + "_of_operand_" + kind.name;
      row.args = {real(kShape, -2, 5.2).apart()};  // not around 0, so that sums do not cancel
      row.function = [&core, &kind](In x) { return core.apply(kind.make(x[0]), x[0]); };
      row.tolerance = 4e-6;
      row.differentiable = core.differentiable && std::string(kind.name) != "stopped";
      rows.push_back(std::move(row));
    }
  return rows;
}

}  // namespace tensorgrad::checks
