#include "passes/evaluate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "support/fail.h"
#include "support/integers.h"

namespace tensorgrad::passes {

using ir::Combine;
using ir::Core;
using ir::Graph;
using ir::Instr;
using ir::Node;
using ir::NodeId;
using ir::Reg;
using ir::ScalarOp;
using ir::ScalarProgram;

namespace {

using Values = std::vector<double>;

// Wraps an i32 result, computed in 64 bits, as two's complement.
double wrapped(DType dtype, double x) {
  if (dtype != DType::i32) return x;
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(static_cast<std::int64_t>(x)));
}

// The product of two i32 needs more than the 53 bits of a double.
double product(DType dtype, double a, double b) {
  if (dtype != DType::i32) return a * b;
  const std::int64_t exact = static_cast<std::int64_t>(a) * static_cast<std::int64_t>(b);
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(exact));
}

// NaN if either operand is NaN.
double larger(double a, double b) { return std::isnan(a) || a > b ? a : b; }
double smaller(double a, double b) { return std::isnan(a) || a < b ? a : b; }

double sign(double x) { return std::isnan(x) ? x : static_cast<double>((x > 0) - (x < 0)); }

// Truncates to i32. NaN becomes 0; values out of range become the nearest i32.
double to_i32(double x) {
  if (std::isnan(x)) return 0;
  return std::trunc(std::min(std::max(x, -0x1p31), 0x1p31 - 1));
}

double combined(Combine combine, DType dtype, double a, double b) {
  switch (combine) {
    case Combine::add:
      return wrapped(dtype, a + b);
    case Combine::mul:
      return product(dtype, a, b);
    case Combine::max:
      return larger(a, b);
    case Combine::min:
      return smaller(a, b);
    case Combine::none:
      break;
  }
  internal_error("evaluate: a reduction has no combine op");
}

// Executes one instruction on the values of its operands.
double apply(const Instr& in, double a, double b, double c) {
  switch (in.op) {
    case ScalarOp::constant:
      return in.value;
    case ScalarOp::add:
      return wrapped(in.dtype, a + b);
    case ScalarOp::sub:
      return wrapped(in.dtype, a - b);
    case ScalarOp::mul:
      return product(in.dtype, a, b);
    case ScalarOp::div:
      return a / b;
    case ScalarOp::minimum:
      return smaller(a, b);
    case ScalarOp::maximum:
      return larger(a, b);
    case ScalarOp::pow:
      return std::pow(a, b);
    case ScalarOp::neg:
      return wrapped(in.dtype, -a);
    case ScalarOp::abs:
      return wrapped(in.dtype, std::abs(a));
    case ScalarOp::sign:
      return sign(a);
    case ScalarOp::sqrt:
      return std::sqrt(a);
    case ScalarOp::exp:
      return std::exp(a);
    case ScalarOp::expm1:
      return std::expm1(a);
    case ScalarOp::log:
      return std::log(a);
    case ScalarOp::log1p:
      return std::log1p(a);
    case ScalarOp::sin:
      return std::sin(a);
    case ScalarOp::cos:
      return std::cos(a);
    case ScalarOp::tanh:
      return std::tanh(a);
    case ScalarOp::erf:
      return std::erf(a);
    case ScalarOp::normal_cdf:
      return 0.5 * std::erfc(-a / std::numbers::sqrt2);
    case ScalarOp::less:
      return a < b;
    case ScalarOp::less_equal:
      return a <= b;
    case ScalarOp::equal:
      return a == b;
    case ScalarOp::logical_and:
      return a != 0 && b != 0;
    case ScalarOp::logical_or:
      return a != 0 || b != 0;
    case ScalarOp::logical_not:
      return a == 0;
    case ScalarOp::select:
      return a != 0 ? b : c;
    case ScalarOp::to_f32:
      return a;
    case ScalarOp::to_i32:
      return to_i32(a);
    case ScalarOp::to_bool:
      return a != 0;
    case ScalarOp::is_finite:
      return std::isfinite(a);
    default:
      internal_error("evaluate: {} is not arithmetic", name(in.op));
  }
}

class Evaluator {
 public:
  explicit Evaluator(const Graph& graph) : graph_(graph) {}

  Values run() {
    for (NodeId id = 0; id < graph_.size(); ++id) values_.push_back(value(graph_[id]));
    return std::move(values_.back());
  }

 private:
  const Values& operand(const Node& node, std::size_t i) const {
    return values_[usize(node.inputs[i])];
  }
  const Shape& operand_shape(const Node& node) const { return graph_[node.inputs[0]].type.shape; }

  Values value(const Node& node) const {
    switch (node.op->core) {
      case Core::constant:
        return {constant(node)};
      case Core::iota:
        return iota(node);
      case Core::view:
        return view(node);
      case Core::concat:
        return concat(node);
      case Core::elementwise:
        return elementwise(node);
      case Core::reduce:
        return reduce(node);
      case Core::scan:
        return scan(node);
      default:
        internal_error("evaluate: {} depends on more than constants", node.op->name);
    }
  }

  // The value after rounding to its dtype in memory.
  static double constant(const Node& node) {
    const double value = node.as<ir::ConstantAttrs>().value;
    return node.type.dtype == DType::f32 ? static_cast<double>(static_cast<float>(value)) : value;
  }

  Values iota(const Node& node) const {
    Values out(usize(node.type.shape.count()));
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<double>(i);
    return out;
  }

  Values view(const Node& node) const {
    const Values& from = operand(node, 0);
    const ir::IndexMap map =
        node.op->view(ir::IndexMap::contiguous(operand_shape(node)), node.attrs);
    Values out(usize(node.type.shape.count()));
    for (std::size_t i = 0; i < out.size(); ++i) {
      double fill = 0;
      const std::int64_t address = map.address_of_linear(static_cast<std::int64_t>(i), fill);
      out[i] = address < 0 ? fill : from[usize(address)];
    }
    return out;
  }

  // Treats each part as [outer, size of the part, inner] and appends them along the axis.
  Values concat(const Node& node) const {
    const int axis = node.as<ir::AxisAttrs>().axis;
    const Shape& shape = node.type.shape;
    std::int64_t outer = 1;
    for (int d = 0; d < axis; ++d) outer *= shape[d];
    Values out;
    out.reserve(usize(shape.count()));
    for (std::int64_t o = 0; o < outer; ++o)
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        const Values& part = operand(node, i);
        const auto size = static_cast<std::ptrdiff_t>(part.size()) / outer;
        out.insert(out.end(), part.begin() + o * size, part.begin() + (o + 1) * size);
      }
    return out;
  }

  Values elementwise(const Node& node) const {
    ScalarProgram program;
    std::vector<Reg> loads;
    for (const NodeId input : node.inputs)
      loads.push_back(program.load(static_cast<int>(loads.size()), graph_[input].type.dtype));
    const Reg result = node.op->scalar(program, loads, node.attrs);
    Values out(usize(node.type.shape.count())), regs(program.code.size());
    const auto reg = [&](Reg r) { return r < 0 ? 0.0 : regs[usize(r)]; };
    for (std::size_t i = 0; i < out.size(); ++i) {
      for (std::size_t r = 0; r < regs.size(); ++r) {
        const Instr& in = program.code[r];
        regs[r] = in.op == ScalarOp::load ? operand(node, usize(in.slot))[i]
                                          : apply(in, reg(in.a), reg(in.b), reg(in.c));
      }
      out[i] = regs[usize(result)];
    }
    return out;
  }

  // Combines each element into the result element with the same position along the kept axes.
  Values reduce(const Node& node) const {
    const Values& from = operand(node, 0);
    const Shape& shape = operand_shape(node);
    std::vector<std::int64_t> stride(usize(shape.rank()), 0);  // strides of the result; 0: reduced
    std::int64_t next = 1;
    for (int d = shape.rank() - 1; d >= 0; --d) {
      const auto& axes = node.as<ir::AxesAttrs>().axes;
      if (std::find(axes.begin(), axes.end(), d) != axes.end()) continue;
      stride[usize(d)] = next;
      next *= shape[d];
    }
    Values out(usize(node.type.shape.count()), ir::identity(node.op->combine, node.type.dtype));
    for (std::size_t i = 0; i < from.size(); ++i) {
      auto rest = static_cast<std::int64_t>(i);
      std::int64_t to = 0;
      for (int d = shape.rank() - 1; d >= 0; --d) {
        to += rest % shape[d] * stride[usize(d)];
        rest /= shape[d];
      }
      out[usize(to)] = combined(node.op->combine, node.type.dtype, out[usize(to)], from[i]);
    }
    return out;
  }

  // Cumulative sums along an axis, from its start or from its end.
  Values scan(const Node& node) const {
    const auto& attrs = node.as<ir::CumsumAttrs>();
    const Shape& shape = node.type.shape;
    std::int64_t inner = 1;
    for (int d = attrs.axis + 1; d < shape.rank(); ++d) inner *= shape[d];
    const std::int64_t size = shape[attrs.axis], count = shape.count();
    Values out = operand(node, 0);
    for (std::int64_t start = 0; start < count; start += size * inner)
      for (std::int64_t j = 0; j < inner; ++j)
        for (std::int64_t k = 1; k < size; ++k) {
          const std::int64_t at = attrs.reverse ? size - 1 - k : k,
                             before = attrs.reverse ? at + 1 : at - 1;
          double& sum = out[usize(start + at * inner + j)];
          sum = combined(node.op->combine, node.type.dtype, out[usize(start + before * inner + j)],
                         sum);
        }
    return out;
  }

  const Graph& graph_;
  std::vector<Values> values_;
};

}  // namespace

bool can_evaluate(Core core) {
  switch (core) {
    case Core::constant:
    case Core::iota:
    case Core::view:
    case Core::concat:
    case Core::elementwise:
    case Core::reduce:
    case Core::scan:
      return true;
    default:
      return false;
  }
}

std::vector<double> evaluate(const Graph& graph) { return Evaluator(graph).run(); }

}  // namespace tensorgrad::passes
