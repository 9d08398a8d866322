// Passes: text in, text out.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "ops/table.h"
#include "passes/algebra.h"
#include "passes/cse.h"
#include "passes/dce.h"
#include "passes/expand.h"
#include "passes/fold.h"
#include "passes/join.h"
#include "passes/materialise.h"
#include "passes/pipeline.h"
#include "passes/products.h"
#include "passes/views.h"
#include "reference/interpret.h"

namespace tensorgrad {
namespace {

ir::Graph parse(const std::string& body) {
  return ir::parse("graph {\n" + body + "}\n", ops::find_primitive);
}

// The text of the graph after the pass, without types.
std::string after(ir::Graph (*pass)(ir::Graph), const std::string& body) {
  const ir::Graph out = pass(parse(body));
  ir::verify(out);
  return ir::print(out);
}

void expect_becomes(ir::Graph (*pass)(ir::Graph), const std::string& before,
                    const std::string& wanted) {
  EXPECT_EQ(after(pass, before), ir::print(parse(wanted)));
}

const std::string kX = "%0 = input {name=\"x\", dtype=f32, shape=[2,3]}\n";

TEST(Dce, DropsWhatNoResultNeeds) {
  expect_becomes(passes::dce, kX + "%1 = exp(%0)\n%2 = sin(%0)\n%3 = neg(%2)\noutput \"y\" = %3\n",
                 kX + "%1 = sin(%0)\n%2 = neg(%1)\noutput \"y\" = %2\n");
}

TEST(Cse, ComputesEqualNodesOnce) {
  expect_becomes(passes::cse,
                 kX + "%1 = exp(%0)\n%2 = exp(%0)\n%3 = add(%1, %2)\noutput \"y\" = %3\n",
                 kX + "%1 = exp(%0)\n%2 = add(%1, %1)\noutput \"y\" = %2\n");
}

TEST(Cse, KeepsNodesThatDifferInAttributes) {
  const std::string two = kX +
                          "%1 = reduce_sum(%0) {axes=[0]}\n%2 = reduce_sum(%0) {axes=[1]}\noutput "
                          "\"a\" = %1\noutput \"b\" = %2\n";
  expect_becomes(passes::cse, two, two);
}

TEST(Cse, KeepsRandomNumbersOfTwoCallsApart) {
  const std::string two =
      "%0 = input {name=\"s\", dtype=i32, shape=[]}\n"
      "%1 = random(%0, %0, %0) {site=0}\n%2 = random(%0, %0, %0) {site=1}\n%3 = sub(%1, "
      "%2)\noutput \"y\" = %3\n";
  expect_becomes(passes::cse, two, two);
}

ir::Graph folded(ir::Graph graph) { return passes::dce(passes::fold(std::move(graph))); }
ir::Graph simpler(ir::Graph graph) { return passes::dce(passes::algebra(std::move(graph))); }
ir::Graph joined(ir::Graph graph) { return passes::dce(passes::views(std::move(graph))); }

std::string number(int id, const char* value) {
  return fmt::format(
      "%{} = constant {{value={}, dtype=f32}}\n%{} = broadcast_to(%{}) {{shape=[2,3]}}\n", id,
      value, id + 1, id);
}

TEST(Fold, ComputesWhatDependsOnNumbersAlone) {
  const std::string numbers = number(0, "3") + number(2, "0.25");
  const auto expect_number = [&](const std::string& line, const char* value) {
    expect_becomes(folded, numbers + line + "output \"y\" = %4\n",
                   number(0, value) + "output \"y\" = %1\n");
  };
  expect_number("%4 = mul(%1, %3)\n", "0.75");
  expect_number("%4 = add(%1, %3)\n", "3.25");
  expect_number("%4 = sub(%1, %3)\n", "2.75");
  expect_number("%4 = div(%1, %3)\n", "12");
  expect_number("%4 = neg(%1)\n", "-3");
  expect_number("%4 = maximum(%1, %3)\n", "3");
}

TEST(Fold, RoundsOnceAsMemoryWould) {
  // 1/3 in f32, and the f32 nearest to exp of that.
  expect_becomes(
      folded,
      number(0, "1") + number(2, "3") + "%4 = div(%1, %3)\n%5 = exp(%4)\noutput \"y\" = %5\n",
      number(0, "1.3956124782562256") + "output \"y\" = %1\n");
}

TEST(Fold, ReducesNumbersAndWorksOnIntegers) {
  expect_becomes(folded, number(0, "0.5") + "%2 = reduce_sum(%1) {axes=[0,1]}\noutput \"y\" = %2\n",
                 "%0 = constant {value=3, dtype=f32}\noutput \"y\" = %0\n");
  expect_becomes(folded,
                 "%0 = constant {value=7, dtype=i32}\n%1 = cast(%0) {to=f32}\noutput \"y\" = %1\n",
                 "%0 = constant {value=7, dtype=f32}\noutput \"y\" = %0\n");
}

TEST(Fold, LeavesWhatIsNotFiniteAndWhatIsChecked) {
  const std::string log_of_zero = number(0, "0") + "%2 = log(%1)\noutput \"y\" = %2\n";
  expect_becomes(folded, log_of_zero, log_of_zero);
  const std::string bad_id =
      "%0 = constant {value=9, dtype=i32}\n%1 = check_index(%0) {size=3}\noutput \"y\" = %1\n";
  expect_becomes(folded, bad_id, bad_id);
  const std::string padded =
      "%0 = constant {value=2, dtype=f32}\n%1 = reshape(%0) {shape=[1]}\n"
      "%2 = pad(%1) {axis=0, before=1, after=0, value=5}\n%3 = exp(%2)\noutput \"y\" = %3\n";
  expect_becomes(folded, padded, padded);  // not one scalar
}

std::string with_number(const char* value, const char* op, const char* operands) {
  return kX + number(1, value) + "%3 = " + op + "(" + operands +
         ")\n%4 = exp(%3)\noutput \"y\" = %4\n";
}

TEST(Algebra, DropsArithmeticThatChangesNothing) {
  const std::string plain = kX + "%1 = exp(%0)\noutput \"y\" = %1\n";
  expect_becomes(simpler, with_number("1", "mul", "%0, %2"), plain);
  expect_becomes(simpler, with_number("1", "mul", "%2, %0"), plain);
  expect_becomes(simpler, with_number("1", "div", "%0, %2"), plain);
  expect_becomes(simpler, with_number("0", "add", "%0, %2"), plain);
  expect_becomes(simpler, with_number("0", "add", "%2, %0"), plain);
  expect_becomes(simpler, with_number("0", "sub", "%0, %2"), plain);
  expect_becomes(simpler, kX + "%1 = neg(%0)\n%2 = neg(%1)\n%3 = exp(%2)\noutput \"y\" = %3\n",
                 plain);
}

TEST(Algebra, KeepsArithmeticThatMatters) {
  // 0 * NaN is NaN, 0 - x is not x, and 1/x is not x.
  for (const std::string& kept :
       {with_number("0", "mul", "%0, %2"), with_number("0", "sub", "%2, %0"),
        with_number("1", "div", "%2, %0")})
    expect_becomes(simpler, kept, kept);
}

// x op a op b, with constants on the left or on the right.
std::string chain(const char* op, const char* a, const char* b) {
  return kX + number(1, a) + number(3, b) +
         fmt::format("%5 = {0}(%2, %0)\n%6 = {0}(%5, %4)\noutput \"y\" = %6\n", op);
}

TEST(Algebra, JoinsScalesAndOffsets) {
  const auto once = [](const char* op, const char* value) {
    return kX + number(1, value) + "%3 = " + op + "(%0, %2)\noutput \"y\" = %3\n";
  };
  expect_becomes(simpler, chain("mul", "3", "0.5"), once("mul", "1.5"));
  expect_becomes(simpler, chain("add", "3", "0.5"), once("add", "3.5"));
  expect_becomes(simpler, with_number("4", "div", "%0, %2"), with_number("0.25", "mul", "%0, %2"));
}

TEST(Algebra, KeepsChainsThatOneNumberCannotReplace) {
  const auto operations = [](const std::string& text) {
    int count = 0;
    for (const ir::Node& node : simpler(parse(text)).nodes)
      count += node.op->name == "mul" || node.op->name == "add";
    return count;
  };
  EXPECT_EQ(operations(chain("mul", "1e30", "1e30")), 2);    // together infinite
  EXPECT_EQ(operations(chain("mul", "1e-30", "1e-30")), 2);  // together nothing
  EXPECT_EQ(operations(chain("add", "1e30", "-1e30")), 2);   // the first absorbs x
}

TEST(Algebra, TakesTheSideThatANumberChooses) {
  const std::string both = kX + "%1 = exp(%0)\n%2 = sin(%0)\n";
  const auto chosen = [&](const char* value) {
    return both + "%3 = constant {value=" + value +
           ", dtype=bool}\n%4 = broadcast_to(%3) {shape=[2,3]}\n"
           "%5 = where(%4, %1, %2)\noutput \"y\" = %5\n";
  };
  expect_becomes(simpler, chosen("1"), kX + "%1 = exp(%0)\noutput \"y\" = %1\n");
  expect_becomes(simpler, chosen("0"), kX + "%1 = sin(%0)\noutput \"y\" = %1\n");
}

TEST(Algebra, ReducesNothingOverAxesOfOne) {
  expect_becomes(simpler,
                 "%0 = input {name=\"x\", dtype=f32, shape=[2,1]}\n%1 = reduce_sum(%0) "
                 "{axes=[1]}\noutput \"y\" = %1\n",
                 "%0 = input {name=\"x\", dtype=f32, shape=[2,1]}\n%1 = reshape(%0) "
                 "{shape=[2]}\noutput \"y\" = %1\n");
}

ir::Graph side_by_side(ir::Graph graph) { return passes::dce(passes::join(std::move(graph))); }

// The gradient of a split: `pads` as {before, after, value} of parts [2,3] along axis 1, added in
// sequence.
std::string added_pads(const std::vector<std::array<int, 3>>& pads, int axis = 1) {
  std::string text = kX + "%1 = exp(%0)\n";
  int next = 2;
  for (const auto& [before, after, value] : pads)
    text += fmt::format("%{} = pad(%{}) {{axis={}, before={}, after={}, value={}}}\n", next,
                        next % 2, axis, before, after, value),
        ++next;
  for (std::size_t i = 1; i < pads.size(); ++i)
    text += fmt::format("%{} = add(%{}, %{})\n", next, i == 1 ? 2 : next - 1, i + 2), ++next;
  return text + fmt::format("output \"y\" = %{}\n", next - 1);
}

TEST(Join, PartsThatArePaddedAndAddedLieSideBySide) {
  expect_becomes(side_by_side, added_pads({{0, 3, 0}, {3, 0, 0}}),
                 kX + "%1 = exp(%0)\n%2 = concat(%0, %1) {axis=1}\noutput \"y\" = %2\n");
  expect_becomes(side_by_side, added_pads({{3, 0, 0}, {0, 3, 0}}),  // the other order
                 kX + "%1 = exp(%0)\n%2 = concat(%1, %0) {axis=1}\noutput \"y\" = %2\n");
  expect_becomes(side_by_side, added_pads({{3, 3, 0}, {6, 0, 0}, {0, 6, 0}}),
                 kX + "%1 = exp(%0)\n%2 = concat(%0, %0, %1) {axis=1}\noutput \"y\" = %2\n");
}

TEST(Join, LeavesOtherSumsAlone) {
  for (const std::string& kept : {added_pads({{0, 3, 0}, {3, 0, 1}}),   // filled with something
                                  added_pads({{0, 2, 0}, {2, 0, 0}}),   // one over the other
                                  added_pads({{0, 4, 0}, {4, 0, 0}}),   // a gap between them
                                  added_pads({{1, 3, 0}, {4, 0, 0}}),   // a gap before them
                                  added_pads({{0, 6, 0}, {3, 3, 0}})})  // a gap behind them
    expect_becomes(side_by_side, kept, kept);
  const std::string other = kX +
                            "%1 = pad(%0) {axis=1, before=0, after=3, value=0}\n%2 = exp(%1)\n"
                            "%3 = add(%1, %2)\noutput \"y\" = %3\n";
  expect_becomes(side_by_side, other, other);
  const std::string two_axes =
      "%0 = input {name=\"x\", dtype=f32, shape=[2,4]}\n"
      "%1 = input {name=\"z\", dtype=f32, shape=[4,2]}\n"
      "%2 = pad(%0) {axis=0, before=0, after=2, value=0}\n"
      "%3 = pad(%1) {axis=1, before=2, after=0, value=0}\n"
      "%4 = add(%2, %3)\noutput \"y\" = %4\n";
  expect_becomes(side_by_side, two_axes, two_axes);
}

ir::Graph in_one(ir::Graph graph) { return passes::dce(passes::products(graph, ir::cpu_model())); }

// g[:, begin : begin + 2] times the matrix [5, 2] at `offset` in w, transposed.
struct Term {
  int begin = 0, offset = 0, K = 2, N = 5;
  const char* order = "[1,0]";
};

const std::string kGradients =
    "%0 = input {name=\"g\", dtype=f32, shape=[4,6]}\n"
    "%1 = input {name=\"w\", dtype=f32, shape=[40]}\n";

// The matmuls as [2,2,N], added in sequence; `more` may use the first as %7, and the sum.
std::string added_products(const std::vector<Term>& terms, const char* more = "") {
  std::string text = kGradients;
  int next = 2;
  std::vector<int> products;
  for (const Term& t : terms) {
    text += fmt::format("%{} = narrow(%0) {{axis=1, start={}, length={}}}\n", next, t.begin, t.K);
    text += fmt::format("%{} = narrow(%1) {{axis=0, start={}, length={}}}\n", next + 1, t.offset,
                        t.N * t.K);
    const bool turned = t.order == std::string("[1,0]");
    const int rows = turned ? t.N : t.K, columns = turned ? t.K : t.N;
    text +=
        fmt::format("%{} = reshape(%{}) {{shape=[{},{}]}}\n", next + 2, next + 1, rows, columns);
    text += fmt::format("%{} = permute(%{}) {{order={}}}\n", next + 3, next + 2, t.order);
    text += fmt::format("%{} = matmul(%{}, %{})\n", next + 4, next, next + 3);
    text += fmt::format("%{} = reshape(%{}) {{shape=[2,2,{}]}}\n", next + 5, next + 4, t.N);
    products.push_back(next + 5);
    next += 6;
  }
  for (std::size_t i = 1; i < products.size(); ++i, ++next)
    text +=
        fmt::format("%{} = add(%{}, %{})\n", next, i == 1 ? products[0] : next - 1, products[i]);
  return text + fmt::format("output \"y\" = %{}\n", next - 1) + more;
}

// `count` of them from column `begin` and element `offset` on.
std::string one_product(int count, int begin, int offset) {
  std::string text = kGradients;
  const int left = count < 3 ? 2 : 0;  // three are all columns
  if (left > 0)
    text += fmt::format("%2 = narrow(%0) {{axis=1, start={}, length={}}}\n", begin, 2 * count);
  const int next = left > 0 ? 3 : 2;
  text +=
      fmt::format("%{} = narrow(%1) {{axis=0, start={}, length={}}}\n", next, offset, 10 * count);
  text += fmt::format("%{} = reshape(%{}) {{shape=[{},5,2]}}\n", next + 1, next, count);
  text += fmt::format("%{} = permute(%{}) {{order=[0,2,1]}}\n", next + 2, next + 1);
  text += fmt::format("%{} = reshape(%{}) {{shape=[{},5]}}\n", next + 3, next + 2, 2 * count);
  text += fmt::format("%{} = matmul(%{}, %{})\n", next + 4, left, next + 3);
  text += fmt::format("%{} = reshape(%{}) {{shape=[2,2,5]}}\n", next + 5, next + 4);
  return text + fmt::format("output \"y\" = %{}\n", next + 5);
}

void expect_same_numbers(ir::Graph (*pass)(ir::Graph), const std::string& text) {
  const auto numbers = [](int count, double step) {
    std::vector<double> out;
    for (int i = 1; i <= count; ++i) out.push_back(std::sin(step * i));
    return out;
  };
  const reference::Leaves leaves{{"input:g", {{f32, {4, 6}}, numbers(24, 1.3)}},
                                 {"input:w", {{f32, {40}}, numbers(40, 0.7)}}};
  const auto result = [&](const ir::Graph& graph) {
    return reference::interpret(graph, leaves)[static_cast<std::size_t>(graph.results[0].node)]
        .data;
  };
  const auto want = result(parse(text)), got = result(pass(parse(text)));
  ASSERT_EQ(want.size(), got.size());
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-12) << text;
}

TEST(Products, SideBySideAreOne) {
  const std::pair<std::string, std::string> forms[] = {
      {added_products({{0, 0}, {2, 10}}), one_product(2, 0, 0)},
      {added_products({{2, 10}, {0, 0}}), one_product(2, 0, 0)},  // added in the other order
      {added_products({{2, 7}, {4, 17}}), one_product(2, 2, 7)},  // in the middle
      {added_products({{0, 5}, {2, 15}, {4, 25}}), one_product(3, 0, 5)},  // one after the other
      {added_products({{4, 25}, {2, 15}, {0, 5}}), one_product(3, 0, 5)},  // from behind
  };
  for (const auto& [before, wanted] : forms) {
    expect_becomes(in_one, before, wanted);
    expect_same_numbers(in_one, before);
  }
}

// The first two of three terms are not adjacent. With the third they would be, but a sum is joined
// in its written order.
TEST(Products, SumsAreJoinedAsTheyAreWritten) {
  const std::string kept = added_products({{0, 5}, {4, 25}, {2, 15}});
  expect_becomes(in_one, kept, kept);
}

TEST(Products, LeavesOtherSumsAlone) {
  const std::string others[] = {
      added_products({{0, 10}, {2, 0}}),        // weights in another order than columns
      added_products({{0, 0}, {2, 11}}),        // a gap between the weights
      added_products({{0, 0}, {3, 10}}),        // a gap between the columns
      added_products({{0, 0}, {1, 10}}),        // columns that both have
      added_products({{0, 0}, {0, 0}}),         // the same twice
      added_products({{0, 0, 2}, {2, 10, 3}}),  // of another width
      added_products({{0, 0}, {2, 10}}, "output \"z\" = %7\n"),  // one of them is a result, too
      added_products({{0, 0, 2, 5, "[0,1]"}, {2, 10, 2, 5, "[0,1]"}}),  // not transposed
  };
  for (const std::string& kept : others) expect_becomes(in_one, kept, kept);
}

// Counts the operations of one matmul.
TEST(Products, OfMiddleSizeStayApart) {
  const auto left_of_two = [](std::int64_t rows) {
    std::string text = added_products({{0, 0}, {2, 10}});
    const std::string shape = fmt::format("[{},6]", rows), wide = fmt::format("[2,{},5]", rows / 2);
    text.replace(text.find("[4,6]"), 5, shape);
    for (std::size_t at; (at = text.find("[2,2,5]")) != std::string::npos;)
      text.replace(at, 7, wide);
    const ir::Graph graph = in_one(parse(text));
    return std::count_if(graph.nodes.begin(), graph.nodes.end(),
                         [](const ir::Node& n) { return n.op->core == ir::Core::matmul; });
  };
  // A row has 20 operations.
  EXPECT_EQ(left_of_two(((1 << 26) - 40) / 40 * 2), 1);
  EXPECT_EQ(left_of_two(((1 << 26) + 40) / 40 * 2), 2);
  EXPECT_EQ(left_of_two(((1 << 30) - 40) / 40 * 2), 2);
  EXPECT_EQ(left_of_two(((1 << 30) + 40) / 40 * 2), 1);
}

TEST(Views, AreJoined) {
  expect_becomes(joined,
                 kX + "%1 = reshape(%0) {shape=[6]}\n%2 = reshape(%1) {shape=[3,2]}\n%3 = "
                      "permute(%2) {order=[1,0]}\n"
                      "%4 = permute(%3) {order=[1,0]}\n%5 = exp(%4)\noutput \"y\" = %5\n",
                 kX + "%1 = reshape(%0) {shape=[3,2]}\n%2 = exp(%1)\noutput \"y\" = %2\n");
  expect_becomes(
      joined,
      "%0 = input {name=\"x\", dtype=f32, shape=[3]}\n%1 = broadcast_to(%0) {shape=[2,3]}\n"
      "%2 = broadcast_to(%1) {shape=[4,2,3]}\n%3 = exp(%2)\noutput \"y\" = %3\n",
      "%0 = input {name=\"x\", dtype=f32, shape=[3]}\n%1 = broadcast_to(%0) {shape=[4,2,3]}\n%2 = "
      "exp(%1)\n"
      "output \"y\" = %2\n");
}

TEST(Views, ThatChangeNothingAreDropped) {
  expect_becomes(
      joined,
      kX +
          "%1 = stop_gradient(%0)\n%2 = reshape(%1) {shape=[2,3]}\n%3 = permute(%2) {order=[0,1]}\n"
          "%4 = narrow(%3) {axis=1, start=0, length=3}\n%5 = exp(%4)\noutput \"y\" = %5\n",
      kX + "%1 = exp(%0)\noutput \"y\" = %1\n");
}

TEST(Pipeline, LeavesOutWhatIsNamed) {
  const std::string text =
      kX + number(1, "1") +
      "%3 = mul(%0, %2)\n%4 = exp(%3)\n%5 = exp(%3)\n%6 = add(%4, %5)\noutput \"y\" = %6\n";
  const auto size = [&](const std::vector<std::string>& without) {
    return passes::simplify(parse(text), ir::cpu_model(), without).size();
  };
  EXPECT_EQ(size({}), 3);           // x, exp, add
  EXPECT_EQ(size({"cse"}), 4);      // exp twice
  EXPECT_EQ(size({"algebra"}), 6);  // the constant, its view and the multiplication
  EXPECT_EQ(size({"dce"}), 5);      // the constant and its view
  EXPECT_EQ(size({"cse", "algebra", "dce"}), 7);
}

TEST(Expand, WritesCompositesWithOtherOps) {
  for (const char* op : {"softmax(%0) {axis=1}", "log_softmax(%0) {axis=0}",
                         "normalize(%0) {eps=1e-05}", "rms_normalize(%0) {eps=1e-05}"}) {
    const ir::Graph before = parse(kX + "%1 = " + op + "\noutput \"y\" = %1\n");
    const ir::Graph expanded = passes::expand(before);
    ir::verify(expanded);
    for (const ir::Node& node : expanded.nodes) EXPECT_NE(node.op->core, ir::Core::composite) << op;
    // The interpreter evaluates composites by their definitions: both graphs give the same values.
    const reference::Leaves leaves{{"input:x", {{f32, {2, 3}}, {0.5, -1, 2, 3, 0.25, -4}}}};
    const auto want = reference::interpret(before, leaves)[1].data;
    const auto got =
        reference::interpret(expanded, leaves)[static_cast<std::size_t>(expanded.results[0].node)]
            .data;
    for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-12) << op;
  }
}

TEST(Expand, WritesConvolutionWithShiftedViews) {
  const ir::Graph before = parse(
      "%0 = input {name=\"x\", dtype=f32, shape=[1,3,2]}\n%1 = input {name=\"w\", dtype=f32, "
      "shape=[2,2]}\n"
      "%2 = input {name=\"b\", dtype=f32, shape=[2]}\n%3 = conv1d_causal_depthwise(%0, %1, "
      "%2)\noutput \"y\" = %3\n");
  const ir::Graph expanded = passes::expand(before);
  ir::verify(expanded);
  int products = 0;
  for (const ir::Node& node : expanded.nodes) {
    EXPECT_NE(node.op->core, ir::Core::composite);
    products += node.op->name == "mul";
  }
  EXPECT_EQ(products, 2);  // one per tap
  const reference::Leaves leaves{{"input:x", {{f32, {1, 3, 2}}, {0.5, -1, 2, 3, 0.25, -4}}},
                                 {"input:w", {{f32, {2, 2}}, {10, 1, 20, 2}}},
                                 {"input:b", {{f32, {2}}, {100, 200}}}};
  const auto got =
      reference::interpret(expanded, leaves)[static_cast<std::size_t>(expanded.results[0].node)]
          .data;
  EXPECT_EQ(got, (std::vector<double>{100.5, 198, 107, 186, 120.25, 252}));
  EXPECT_EQ(reference::interpret(before, leaves)[3].data, got);
}

TEST(Materialise, CopiesResultsThatAreNoMemoryOfTheirOwn) {
  expect_becomes(
      passes::materialise,
      kX + "%1 = permute(%0) {order=[1,0]}\n%2 = exp(%0)\noutput \"x\" = %0\noutput \"t\" = %1\n"
           "output \"a\" = %2\noutput \"b\" = %2\n",
      kX + "%1 = permute(%0) {order=[1,0]}\n%2 = exp(%0)\n%3 = copy(%0)\n%4 = copy(%1)\n%5 = "
           "copy(%2)\n"
           "output \"x\" = %3\noutput \"t\" = %4\noutput \"a\" = %2\noutput \"b\" = %5\n");
}

}  // namespace
}  // namespace tensorgrad
