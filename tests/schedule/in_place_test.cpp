// Which results overwrite an operand, and which must not: the plan and the values.
#include <gtest/gtest.h>

#include "checks/eval_graph.h"
#include "checks/planned.h"
#include "ops/table.h"

namespace tensorgrad::schedule {
namespace {

ir::Graph parse(const std::string& body) {
  return ir::parse("graph {\n" + body + "}\n", ops::find_primitive);
}

Plan plan_of(const std::string& body) {
  const ir::Graph graph = parse(body);
  Layout parameters, state, inputs;
  for (const ir::Node& node : graph.nodes)
    if (node.op->name == "parameter") parameters.place(node.as<ir::LeafAttrs>().name, node.type);
  return eval::planned(graph, {parameters, state, inputs});
}

int written_over_operands(const std::string& body) {
  int count = 0;
  for (const Step& step : plan_of(body).steps)
    for (const Stored& stored : step.stored) count += stored.over >= 0;
  return count;
}

void expect_right(const std::string& body, const reference::Leaves& leaves) {
  const ir::Graph graph = parse(body);
  const auto want = eval::interpret_results(graph, leaves);
  for (const int threads : {1, 2}) {
    const auto got = eval::evaluate(graph, leaves, {.threads = threads});
    EXPECT_EQ(got.damage, "");
    for (std::size_t i = 0; i < want.size(); ++i)
      EXPECT_EQ(eval::difference(got.results[i], want[i], 1e-5), "");
  }
}

reference::Value numbers(const Shape& shape, double scale) {
  reference::Value out{{f32, shape}, {}};
  for (std::int64_t i = 0; i < shape.count(); ++i)
    out.data.push_back(scale * static_cast<double>((i * 7) % 23 - 11));
  return out;
}

// x W -> softmax over rows of 600 -> times V: the softmax may use the memory of the matmul.
const std::string kRows =
    "%0 = input {name=\"x\", dtype=f32, shape=[40,8]}\n%1 = input {name=\"w\", dtype=f32, "
    "shape=[8,600]}\n"
    "%2 = matmul(%0, %1)\n%3 = softmax(%2) {axis=1}\n%4 = input {name=\"v\", dtype=f32, "
    "shape=[600,5]}\n"
    "%5 = matmul(%3, %4)\noutput \"y\" = %5\n";

TEST(InPlace, ARowIsReadBeforeItIsWritten) {
  EXPECT_EQ(written_over_operands(kRows), 1);
  expect_right(kRows, {{"input:x", numbers({40, 8}, 0.1)},
                       {"input:w", numbers({8, 600}, 0.1)},
                       {"input:v", numbers({600, 5}, 0.1)}});
}

// A residual: the second matmul is added to the first, and may overwrite it.
const std::string kResidual =
    "%0 = input {name=\"x\", dtype=f32, shape=[70,40]}\n%1 = input {name=\"w\", dtype=f32, "
    "shape=[40,40]}\n"
    "%2 = matmul(%0, %1)\n%3 = reduce_max(%2) {axes=[0]}\n%4 = reshape(%3) {shape=[1,40]}\n"
    "%5 = broadcast_to(%4) {shape=[70,40]}\n%6 = matmul(%5, %1)\n%7 = add(%2, %6)\n%8 = matmul(%7, "
    "%1)\noutput \"y\" = %8\n";

TEST(InPlace, WorkOnAProductMayTakeTheMemoryOfWhatItAdds) {
  EXPECT_EQ(written_over_operands(kResidual), 1);
  expect_right(kResidual,
               {{"input:x", numbers({70, 40}, 0.1)}, {"input:w", numbers({40, 40}, 0.1)}});
}

// The same, but the addend is also an operand of the matmul: every tile needs all of it.
TEST(InPlace, NotWhereTheProductReadsIt) {
  const std::string square =
      "%0 = input {name=\"x\", dtype=f32, shape=[40,40]}\n%1 = matmul(%0, %0)\n%2 = matmul(%1, "
      "%0)\n%3 = add(%1, %2)\n"
      "%4 = matmul(%3, %0)\noutput \"y\" = %4\n";
  EXPECT_EQ(written_over_operands(square), 0);
  expect_right(square, {{"input:x", numbers({40, 40}, 0.05)}});
}

// A transpose reads other elements than it writes.
TEST(InPlace, NotThroughAViewThatMoves) {
  const std::string turned =
      "%0 = input {name=\"x\", dtype=f32, shape=[40,40]}\n%1 = matmul(%0, %0)\n%2 = permute(%1) "
      "{order=[1,0]}\n"
      "%3 = softmax(%2) {axis=1}\n%4 = matmul(%3, %0)\noutput \"y\" = %4\n";
  EXPECT_EQ(written_over_operands(turned), 0);
  expect_right(turned, {{"input:x", numbers({40, 40}, 0.05)}});
}

// An output is the old value of an updated parameter: it must be stored before the update.
TEST(InPlace, TheOldValueOfAnUpdateCanBeAnOutput) {
  const std::string update =
      "%0 = parameter {name=\"p\", dtype=f32, shape=[300]}\n%1 = constant {value=1, dtype=f32}\n"
      "%2 = broadcast_to(%1) {shape=[300]}\n%3 = add(%0, %2)\noutput \"old\" = %0\nupdate \"p\" = "
      "%3\noutput \"again\" = %3\n";
  expect_right(update, {{"parameter:p", numbers({300}, 1)}});
}

}  // namespace
}  // namespace tensorgrad::schedule
