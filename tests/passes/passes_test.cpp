// Passes: text in, text out.
#include <gtest/gtest.h>

#include "ops/table.h"
#include "passes/canonicalise.h"
#include "passes/cse.h"
#include "passes/dce.h"
#include "passes/expand.h"
#include "passes/materialise.h"
#include "reference/interpret.h"

namespace tensorgrad {
namespace {

ir::Graph parse(const std::string& body) { return ir::parse("graph {\n" + body + "}\n", ops::find_primitive); }

// The text of the graph after the pass; types are left out of what is compared.
std::string after(ir::Graph (*pass)(const ir::Graph&), const std::string& body) {
  const ir::Graph out = pass(parse(body));
  ir::verify(out);
  return ir::print(out);
}

void expect_becomes(ir::Graph (*pass)(const ir::Graph&), const std::string& before, const std::string& wanted) {
  EXPECT_EQ(after(pass, before), ir::print(parse(wanted)));
}

const std::string kX = "%0 = input {name=\"x\", dtype=f32, shape=[2,3]}\n";

TEST(Dce, DropsWhatNoResultNeeds) {
  expect_becomes(passes::dce,
                 kX + "%1 = exp(%0)\n%2 = sin(%0)\n%3 = neg(%2)\noutput \"y\" = %3\n",
                 kX + "%1 = sin(%0)\n%2 = neg(%1)\noutput \"y\" = %2\n");
}

TEST(Cse, ComputesEqualNodesOnce) {
  expect_becomes(passes::cse,
                 kX + "%1 = exp(%0)\n%2 = exp(%0)\n%3 = add(%1, %2)\noutput \"y\" = %3\n",
                 kX + "%1 = exp(%0)\n%2 = add(%1, %1)\noutput \"y\" = %2\n");
}

TEST(Cse, KeepsNodesThatDifferInAttributes) {
  const std::string two = kX + "%1 = reduce_sum(%0) {axes=[0]}\n%2 = reduce_sum(%0) {axes=[1]}\noutput \"a\" = %1\noutput \"b\" = %2\n";
  expect_becomes(passes::cse, two, two);
}

TEST(Cse, KeepsRandomNumbersOfTwoCallsApart) {
  const std::string two =
      "%0 = input {name=\"s\", dtype=i32, shape=[]}\n"
      "%1 = random(%0, %0, %0) {site=0}\n%2 = random(%0, %0, %0) {site=1}\n%3 = sub(%1, %2)\noutput \"y\" = %3\n";
  expect_becomes(passes::cse, two, two);
}

ir::Graph tidy(const ir::Graph& graph) { return passes::dce(passes::canonicalise(graph)); }

std::string with_number(const char* value, const char* op, const char* operands) {
  return kX + "%1 = constant {value=" + value + ", dtype=f32}\n%2 = broadcast_to(%1) {shape=[2,3]}\n%3 = " + op + "(" +
         operands + ")\n%4 = exp(%3)\noutput \"y\" = %4\n";
}

TEST(Canonicalise, DropsArithmeticThatChangesNothing) {
  const std::string plain = kX + "%1 = exp(%0)\noutput \"y\" = %1\n";
  expect_becomes(tidy, with_number("1", "mul", "%0, %2"), plain);
  expect_becomes(tidy, with_number("1", "mul", "%2, %0"), plain);
  expect_becomes(tidy, with_number("1", "div", "%0, %2"), plain);
  expect_becomes(tidy, with_number("0", "add", "%0, %2"), plain);
  expect_becomes(tidy, with_number("0", "sub", "%0, %2"), plain);
}

TEST(Canonicalise, KeepsArithmeticThatMatters) {
  // 0 * NaN is NaN, 0 - x is not x, and 1/x is not x.
  for (const std::string& kept : {with_number("0", "mul", "%0, %2"), with_number("0", "sub", "%2, %0"),
                                  with_number("1", "div", "%2, %0")})
    expect_becomes(tidy, kept, kept);
}

TEST(Canonicalise, JoinsViews) {
  expect_becomes(tidy,
                 kX + "%1 = reshape(%0) {shape=[6]}\n%2 = reshape(%1) {shape=[3,2]}\n%3 = permute(%2) {order=[1,0]}\n"
                      "%4 = permute(%3) {order=[1,0]}\n%5 = exp(%4)\noutput \"y\" = %5\n",
                 kX + "%1 = reshape(%0) {shape=[3,2]}\n%2 = exp(%1)\noutput \"y\" = %2\n");
}

TEST(Canonicalise, ReducesNothingOverAxesOfOne) {
  expect_becomes(tidy, "%0 = input {name=\"x\", dtype=f32, shape=[2,1]}\n%1 = reduce_sum(%0) {axes=[1]}\noutput \"y\" = %1\n",
                 "%0 = input {name=\"x\", dtype=f32, shape=[2,1]}\n%1 = reshape(%0) {shape=[2]}\noutput \"y\" = %1\n");
}

TEST(Expand, WritesCompositesWithOtherOps) {
  for (const char* op : {"softmax(%0) {axis=1}", "log_softmax(%0) {axis=0}", "normalize(%0) {eps=1e-05}",
                         "rms_normalize(%0) {eps=1e-05}"}) {
    const ir::Graph before = parse(kX + "%1 = " + op + "\noutput \"y\" = %1\n");
    const ir::Graph expanded = passes::expand(before);
    ir::verify(expanded);
    for (const ir::Node& node : expanded.nodes) EXPECT_NE(node.op->core, ir::Core::composite) << op;
    // The interpreter knows composites by their definitions: both graphs give the same numbers.
    const reference::Leaves leaves{{"input:x", {{f32, {2, 3}}, {0.5, -1, 2, 3, 0.25, -4}}}};
    const auto want = reference::interpret(before, leaves)[1].data;
    const auto got = reference::interpret(expanded, leaves)[static_cast<std::size_t>(expanded.results[0].node)].data;
    for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-12) << op;
  }
}

TEST(Materialise, CopiesResultsThatAreNoMemoryOfTheirOwn) {
  expect_becomes(passes::materialise,
                 kX + "%1 = permute(%0) {order=[1,0]}\n%2 = exp(%0)\noutput \"x\" = %0\noutput \"t\" = %1\n"
                      "output \"a\" = %2\noutput \"b\" = %2\n",
                 kX + "%1 = permute(%0) {order=[1,0]}\n%2 = exp(%0)\n%3 = copy(%0)\n%4 = copy(%1)\n%5 = copy(%2)\n"
                      "output \"x\" = %3\noutput \"t\" = %4\noutput \"a\" = %2\noutput \"b\" = %5\n");
}

}  // namespace
}  // namespace tensorgrad
