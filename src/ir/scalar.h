// ScalarProgram: the computation for one element, in SSA form. Elementwise ops define their value
// with it; a Kernel runs one over its iteration space. All values are four bytes wide: f32, i32, or
// a bool stored as 0 or 1.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/integers.h"
#include "tensorgrad/shape.h"

namespace tensorgrad::ir {

using Reg = std::int32_t;

enum class ScalarOp : std::uint8_t {
  load,    // element of load `slot`
  gather,  // element of load `slot`, shifted by a * stride; a must be in 0 .. extent-1
  constant,
  add,
  sub,
  mul,
  div,
  minimum,
  maximum,
  pow,
  neg,
  abs,
  sign,
  sqrt,
  exp,
  expm1,
  log,
  log1p,
  sin,
  cos,
  tanh,
  erf,
  normal_cdf,  // the probability that a standard normal variable is below a
  less,
  less_equal,
  equal,
  logical_and,
  logical_or,
  logical_not,
  select,  // a ? b : c
  to_f32,
  to_i32,
  to_bool,
  is_finite,
  random,       // uniform in [0, 1): threefry of key (a, b), counter (site, c)
  check_index,  // returns a; an error unless a is in 0 .. extent-1
  reduce,       // `combine` of a over the row (rows) or the column (columns): one value per line
  spread,       // broadcasts a value per line to each element of the line
  accumulator,  // matmul: the element of the result
};

const char* name(ScalarOp op);
// Whether the op is arithmetic: not a load, constant, conversion, check or change of shape.
bool is_arithmetic(ScalarOp op);
// Whether the op takes many instructions, so that it should be computed once and not by every
// reader.
bool is_costly(ScalarOp op);

// How a reduction combines two values.
enum class Combine : std::uint8_t { none, add, mul, max, min };

const char* name(Combine combine);
double identity(Combine combine, DType dtype);

struct Instr {
  ScalarOp op = ScalarOp::constant;
  DType dtype = DType::f32;
  Reg a = -1, b = -1, c = -1;
  double value = 0;                 // constant
  int slot = 0;                     // load, gather
  std::int64_t extent = 0;          // gather, check_index
  std::int64_t stride = 0;          // gather
  std::uint32_t site = 0;           // random
  std::int32_t node = -1;           // gather, check_index: node of the graph, for messages
  Combine combine = Combine::none;  // reduce
  bool line = false;                // one value per line (row or column) instead of one per element
};

struct ScalarProgram {
  std::vector<Instr> code;

  DType dtype(Reg r) const { return code[usize(r)].dtype; }

  // An op whose operands are all per line gives a value per line. If both kinds are mixed, values
  // per line are spread.
  Reg push(Instr instr);
  Reg load(int slot, DType dtype) {
    return push({.op = ScalarOp::load, .dtype = dtype, .slot = slot});
  }
  Reg constant(double value, DType dtype = DType::f32) {
    return push({.op = ScalarOp::constant, .dtype = dtype, .value = value});
  }
  bool line(Reg r) const { return code[usize(r)].line; }
  // The result has the type of the operand.
  Reg unary(ScalarOp op, Reg a) { return push({.op = op, .dtype = dtype(a), .a = a}); }
  Reg binary(ScalarOp op, Reg a, Reg b) {
    return push({.op = op, .dtype = dtype(a), .a = a, .b = b});
  }
  Reg compare(ScalarOp op, Reg a, Reg b) {
    return push({.op = op, .dtype = DType::boolean, .a = a, .b = b});
  }
  Reg select(Reg condition, Reg a, Reg b) {
    return push({.op = ScalarOp::select, .dtype = dtype(a), .a = condition, .b = a, .c = b});
  }
  Reg convert(Reg a, DType to);

  std::string text() const;
};

}  // namespace tensorgrad::ir
