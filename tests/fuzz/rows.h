// The table of instructions: a row has the element types of its operands and calls the op on them.
// Most rows are made from the registry, so that a new op has one (rows_registry.cpp). An op whose
// operands must fit in a way of their own has rows in rows_*.cpp instead.
#pragma once

#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensorgrad/ops.h"
#include "tests/fuzz/program.h"

namespace tensorgrad::fuzz {

// The arguments of a row: operands, dice, and ways to make operands fit.
struct Args {
  ops::Builder& builder;
  reference::Leaves& leaves;
  const std::vector<std::int64_t>& sizes;
  std::string name;  // of this instruction's value
  std::vector<Made> in;
  Dice dice;
  std::int64_t limit = 0;  // set by rows whose i32 results are below it
  std::size_t next = 0;    // die

  Tensor operator[](int i) const { return in[static_cast<std::size_t>(i)].tensor; }

  // The next die, as a number below n; 0 when the dice are used up. Call it once per full
  // expression, because compilers evaluate arguments in different orders.
  int pick(std::int64_t n);
  bool flip() { return pick(2) == 1; }
  float number();       // a special case of algebra: 0, 1, -1, 2, ...
  std::int64_t size();  // of the program's sizes
  int axis(const Tensor& x) { return pick(x.rank()); }  // x has one
  Axes axes(const Tensor& x);                           // any set; none: all
  Shape shape();
  // The i32 operand with values below n.
  Tensor ids(int operand, std::int64_t n);
  Tensor leaf(ir::Core kind, DType dtype);
};

struct Row {
  std::string op;        // of the registry, or the kind of leaf
  std::string operands;  // of each: f f32, i i32, b bool, n f32 or i32, a any
  std::function<Tensor(Args& a)> make;
  int weight = 2;  // frequency relative to other rows
};

bool accepts(char operand, DType dtype);

std::span<const Row> elementwise_rows();
std::span<const Row> shape_rows();
std::span<const Row> reduce_rows();
std::span<const Row> layer_rows();
// Rows of the ops that the other tables do not have.
std::vector<Row> registry_rows(const std::set<std::string_view>& without);
std::span<const Row> leaf_rows();  // not drawn: a program starts with them
const std::vector<const Row*>& drawn_rows();
const Row& row_of_leaf(std::string_view op);

// ---- ways to make a tensor fit

// Cuts, repeats or zero-pads the axis to that size.
Tensor resized(const Tensor& x, int axis, std::int64_t size);
// Exactly that shape, from the elements in order, cut or repeated.
Tensor remade(const Tensor& x, const Shape& shape);
// A part of x that broadcasts against the shape.
Tensor fitted(const Tensor& x, const Shape& shape);
// At least that many axes; adds new ones in front.
Tensor with_rank(const Tensor& x, int least);
// Exactly that many axes; merges leading axes.
Tensor of_rank(const Tensor& x, int rank);
// Positive values, by a variant that a die selects.
Tensor positive(Args& a, const Tensor& x);

}  // namespace tensorgrad::fuzz
