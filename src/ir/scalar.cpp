#include "ir/scalar.h"

#include <fmt/format.h>

#include <limits>

#include "support/integers.h"

namespace tensorgrad::ir {

const char* name(ScalarOp op) {
  switch (op) {
    case ScalarOp::load:
      return "load";
    case ScalarOp::gather:
      return "gather";
    case ScalarOp::constant:
      return "constant";
    case ScalarOp::add:
      return "add";
    case ScalarOp::sub:
      return "sub";
    case ScalarOp::mul:
      return "mul";
    case ScalarOp::div:
      return "div";
    case ScalarOp::minimum:
      return "minimum";
    case ScalarOp::maximum:
      return "maximum";
    case ScalarOp::pow:
      return "pow";
    case ScalarOp::neg:
      return "neg";
    case ScalarOp::abs:
      return "abs";
    case ScalarOp::sign:
      return "sign";
    case ScalarOp::sqrt:
      return "sqrt";
    case ScalarOp::exp:
      return "exp";
    case ScalarOp::expm1:
      return "expm1";
    case ScalarOp::log:
      return "log";
    case ScalarOp::log1p:
      return "log1p";
    case ScalarOp::sin:
      return "sin";
    case ScalarOp::cos:
      return "cos";
    case ScalarOp::tanh:
      return "tanh";
    case ScalarOp::erf:
      return "erf";
    case ScalarOp::normal_cdf:
      return "normal_cdf";
    case ScalarOp::less:
      return "less";
    case ScalarOp::less_equal:
      return "less_equal";
    case ScalarOp::equal:
      return "equal";
    case ScalarOp::logical_and:
      return "and";
    case ScalarOp::logical_or:
      return "or";
    case ScalarOp::logical_not:
      return "not";
    case ScalarOp::select:
      return "select";
    case ScalarOp::to_f32:
      return "to_f32";
    case ScalarOp::to_i32:
      return "to_i32";
    case ScalarOp::to_bool:
      return "to_bool";
    case ScalarOp::is_finite:
      return "is_finite";
    case ScalarOp::random:
      return "random";
    case ScalarOp::check_index:
      return "check_index";
    case ScalarOp::reduce:
      return "reduce";
    case ScalarOp::spread:
      return "spread";
    case ScalarOp::accumulator:
      return "accumulator";
  }
  return "?";
}

bool is_arithmetic(ScalarOp op) {
  switch (op) {
    case ScalarOp::load:
    case ScalarOp::gather:
    case ScalarOp::constant:
    case ScalarOp::to_f32:
    case ScalarOp::to_i32:
    case ScalarOp::to_bool:
    case ScalarOp::check_index:
    case ScalarOp::reduce:
    case ScalarOp::spread:
    case ScalarOp::accumulator:
      return false;
    default:
      return true;
  }
}

bool is_costly(ScalarOp op) {
  switch (op) {
    case ScalarOp::pow:
    case ScalarOp::sqrt:
    case ScalarOp::exp:
    case ScalarOp::expm1:
    case ScalarOp::log:
    case ScalarOp::log1p:
    case ScalarOp::sin:
    case ScalarOp::cos:
    case ScalarOp::tanh:
    case ScalarOp::erf:
    case ScalarOp::normal_cdf:
    case ScalarOp::random:
      return true;
    default:
      return false;
  }
}

const char* name(Combine combine) {
  switch (combine) {
    case Combine::none:
      return "none";
    case Combine::add:
      return "add";
    case Combine::mul:
      return "mul";
    case Combine::max:
      return "max";
    case Combine::min:
      return "min";
  }
  return "?";
}

double identity(Combine combine, DType dtype) {
  const bool real = dtype == DType::f32;
  switch (combine) {
    case Combine::none:
    case Combine::add:
      return 0;
    case Combine::mul:
      return 1;
    case Combine::max:
      return real ? -std::numeric_limits<double>::infinity()
                  : std::numeric_limits<std::int32_t>::min();
    case Combine::min:
      return real ? std::numeric_limits<double>::infinity()
                  : std::numeric_limits<std::int32_t>::max();
  }
  return 0;
}

Reg ScalarProgram::push(Instr instr) {
  Reg* const operands[] = {&instr.a, &instr.b, &instr.c};
  const bool elementwise = instr.op != ScalarOp::load && instr.op != ScalarOp::constant &&
                           instr.op != ScalarOp::reduce && instr.op != ScalarOp::spread;
  if (elementwise) {
    // A gather reads elements of the iteration space. A constant adapts to its user: per line or
    // per element.
    bool all_lines = instr.op != ScalarOp::accumulator && instr.op != ScalarOp::gather,
         any_line = false;
    for (const Reg* r : operands) {
      if (*r < 0 || code[usize(*r)].op == ScalarOp::constant) continue;
      (line(*r) ? any_line : all_lines) = line(*r);
    }
    if (any_line && all_lines) instr.line = true;
    if (any_line && !all_lines)
      for (Reg* r : operands)
        if (*r >= 0 && line(*r)) *r = push({.op = ScalarOp::spread, .dtype = dtype(*r), .a = *r});
  }
  code.push_back(instr);
  return static_cast<Reg>(code.size()) - 1;
}

Reg ScalarProgram::convert(Reg a, DType to) {
  if (dtype(a) == to) return a;
  const ScalarOp op = to == DType::f32   ? ScalarOp::to_f32
                      : to == DType::i32 ? ScalarOp::to_i32
                                         : ScalarOp::to_bool;
  return push({.op = op, .dtype = to, .a = a});
}

std::string ScalarProgram::text() const {
  std::string out;
  for (std::size_t i = 0; i < code.size(); ++i) {
    const Instr& in = code[i];
    out += fmt::format("    r{}: {} = {}", i, tensorgrad::name(in.dtype), name(in.op));
    if (in.op == ScalarOp::load || in.op == ScalarOp::gather) out += fmt::format(" #{}", in.slot);
    if (in.op == ScalarOp::constant) out += fmt::format(" {}", in.value);
    for (const Reg r : {in.a, in.b, in.c})
      if (r >= 0) out += fmt::format(" r{}", r);
    if (in.op == ScalarOp::reduce) out += fmt::format(" {}", name(in.combine));
    if (in.line) out += "  per line";
    if (in.extent) out += fmt::format(" below {}", in.extent);
    if (in.op == ScalarOp::random) out += fmt::format(" site {}", in.site);
    out += '\n';
  }
  return out;
}

}  // namespace tensorgrad::ir
