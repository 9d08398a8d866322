// evaluate() against the double interpreter, which shares no code with it.
#include "passes/evaluate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/table.h"
#include "reference/interpret.h"
#include "support/fail.h"
#include "support/integers.h"

namespace tensorgrad {
namespace {

// Half a unit in the last place of f32 or less: gelu_tanh's record has float constants.
constexpr double kTolerance = 4e-8;

void expect_agree(const ir::Graph& graph) {
  const std::vector<double> got = passes::evaluate(graph);
  const std::vector<double> want = reference::interpret(graph, {}).back().data;
  ASSERT_EQ(got.size(), want.size()) << ir::print(graph);
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(want[i])) {
      EXPECT_TRUE(std::isnan(got[i])) << ir::print(graph);
    } else if (std::isinf(want[i])) {
      EXPECT_EQ(got[i], want[i]) << ir::print(graph);
    } else {
      EXPECT_NEAR(got[i], want[i], kTolerance * std::max(1.0, std::abs(want[i])))
          << ir::print(graph);
    }
  }
}

const std::vector<double>& samples(DType dtype) {
  static const std::vector<double> reals{-40.5, -1, 0, 0.25, 3, 1e30},
      integers{-2147483648.0, -7, 0, 3, 2147483647.0}, bools{0, 1};
  return dtype == DType::f32 ? reals : dtype == DType::i32 ? integers : bools;
}

// Every op whose operands are all constants, with every type that it accepts.
int check_op(const ir::Primitive& op, std::vector<ir::ConstantAttrs>& operands) {
  if (operands.size() == usize(op.arity)) {
    ir::Graph graph;
    std::vector<ir::NodeId> inputs;
    for (const ir::ConstantAttrs& operand : operands)
      inputs.push_back(graph.append(ops::primitive(ir::OpId::constant), {}, operand));
    try {
      graph.append(op, inputs, {});
    } catch (const BrokenRule&) {
      return 0;
    }
    expect_agree(graph);
    return 1;
  }
  int checked = 0;
  for (const DType dtype : {DType::f32, DType::i32, DType::boolean})
    for (const double value : samples(dtype)) {
      operands.push_back({value, dtype});
      checked += check_op(op, operands);
      operands.pop_back();
    }
  return checked;
}

TEST(Evaluate, ElementwiseOps) {
  int ops = 0;
  for (const ops::Family& family : ops::families())
    for (const ir::Primitive* op : family.primitives) {
      const bool plain = op->core == ir::Core::elementwise &&
                         op->attrs == ir::attrs_index<ir::NoAttrs>() && op->broken.empty();
      if (!plain) continue;
      SCOPED_TRACE(std::string(op->name));
      std::vector<ir::ConstantAttrs> operands;
      EXPECT_GT(check_op(*op, operands), 0);
      ++ops;
    }
  EXPECT_GE(ops, 25);
}

TEST(Evaluate, Casts) {
  const ir::Primitive& cast = *ops::find_primitive("cast");
  for (const DType from : {DType::f32, DType::i32, DType::boolean})
    for (const DType to : {DType::f32, DType::i32, DType::boolean})
      for (const double value : samples(from)) {
        ir::Graph graph;
        const ir::NodeId operand =
            graph.append(ops::primitive(ir::OpId::constant), {}, ir::ConstantAttrs{value, from});
        graph.append(cast, {operand}, ir::CastAttrs{to});
        expect_agree(graph);
      }
}

// Positions, views, concat, reductions and running sums: what masks are made of.
TEST(Evaluate, Tensors) {
  for (const char* body : {
           "%0 = iota {size=6}\n%1 = reshape(%0) {shape=[2,3]}\n"
           "%2 = permute(%1) {order=[1,0]}\n%3 = pad(%2) {axis=1, before=1, after=2, value=-5}\n",
           "%0 = iota {size=4}\n%1 = reshape(%0) {shape=[1,4]}\n"
           "%2 = broadcast_to(%1) {shape=[3,4]}\n%3 = concat(%2, %2) {axis=1}\n"
           "%4 = concat(%3, %3) {axis=0}\n%5 = narrow(%4) {axis=1, start=3, length=4}\n",
           "%0 = iota {size=24}\n%1 = reshape(%0) {shape=[2,3,4]}\n"
           "%2 = reduce_sum(%1) {axes=[0,2]}\n",
           "%0 = iota {size=24}\n%1 = reshape(%0) {shape=[2,3,4]}\n"
           "%2 = reduce_max(%1) {axes=[1]}\n%3 = neg(%2)\n",
           "%0 = iota {size=24}\n%1 = reshape(%0) {shape=[2,3,4]}\n"
           "%2 = cast(%1) {to=f32}\n%3 = cumsum(%2) {axis=1, reverse=false}\n",
           "%0 = iota {size=24}\n%1 = reshape(%0) {shape=[2,3,4]}\n"
           "%2 = cast(%1) {to=f32}\n%3 = cumsum(%2) {axis=1, reverse=true}\n",
       })
    expect_agree(ir::parse("graph {\n" + std::string(body) + "}\n", ops::find_primitive));
}

}  // namespace
}  // namespace tensorgrad
