// The parts of the fuzzer: the same seed gives the same program, the check detects errors, the
// shrinker ends with a small program, and the table has every op.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "nn/registry.h"
#include "ops/table.h"
#include "support/fail.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/expect.h"
#include "tests/fuzz/generate.h"
#include "tests/fuzz/rows.h"
#include "tests/fuzz/shrink.h"
#include "tests/fuzz/slope.h"

namespace tensorgrad::fuzz {
namespace {

TEST(Generate, SameSeedSameProgram) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Program once = generate(seed), again = generate(seed);
    EXPECT_EQ(once.text(), again.text());
    EXPECT_EQ(ir::print(build(once).graph), ir::print(build(again).graph));
  }
  EXPECT_NE(generate(1).text(), generate(2).text());
}

TEST(Generate, EveryKindOfProgramOccurs) {
  int partly = 0, forward = 0, optimized = 0, updating = 0, large = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Program program = generate(seed);
    int leaves = 0, parameters = 0;
    for (const Instr& instr : program.code) {
      leaves +=
          instr.row >= leaf_rows().data() && instr.row < leaf_rows().data() + leaf_rows().size();
      parameters += instr.row == &row_of_leaf("parameter");
    }
    const int ops = static_cast<int>(program.code.size()) - leaves;
    EXPECT_GE(ops, kFewestOps) << "seed " << seed;
    EXPECT_LE(ops, kMostOps) << "seed " << seed;
    forward += program.loss.empty();
    partly += !program.loss.empty() && static_cast<int>(program.wanted.size()) < parameters;
    optimized += program.optimizer > 0;
    updating += !program.updates.empty();
    large += *std::max_element(program.sizes.begin(), program.sizes.end()) > 256;
  }
  for (const int count : {partly, forward, optimized, updating, large}) EXPECT_GT(count, 10);
}

TEST(Generate, EveryOpAndPrimitiveOccurs) {
  std::set<std::string> drawn, primitives;
  for (const Row* row : drawn_rows()) drawn.insert(row->op);
  for (const std::string& op : nn::op_names())
    EXPECT_EQ(drawn.count(op), 1u)
        << "the row that the registry gives for " << op
        << " cannot make its operands fit: write one in tests/fuzz/rows_*.cpp";
  for (std::uint64_t seed = 0; seed < 300; ++seed)
    for (const ir::Node& node : build(generate(seed)).graph.nodes)
      primitives.insert(std::string(node.op->name));
  for (const ops::Family& family : ops::families())
    for (const ir::Primitive* op : family.primitives) {
      if (op->name == "copy") continue;  // the compiler's own
      EXPECT_EQ(primitives.count(std::string(op->name)), 1u) << op->name;
    }
}

TEST(Check, KnowsMostResultsWell) {
  for (const Rounding& rounding : {kOnTheCpu, kOnAGpu}) {
    int unclear = 0;
    double sharp = 0;
    constexpr int kCount = 200;
    for (std::uint64_t seed = 0; seed < kCount; ++seed) {
      const Built built = build(generate(seed));
      const Expected expected = expect(built.graph, built.leaves, 2, rounding);
      unclear += !expected.finite;
      sharp += expected.finite ? sharp_part(expected) : 0;
    }
    EXPECT_LE(unclear, kCount / 20);
    EXPECT_GE(sharp, 0.95 * kCount);
  }
}

// Changes one element of one result by a thousandth of the largest.
TEST(Check, NoticesOneWrongElement) {
  int noticed = 0, tried = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Built built = build(generate(seed));
    Random random(seed);
    bool changed = false;
    const auto one_of = [&](auto& list) -> auto& {
      return list[static_cast<std::size_t>(random.below(static_cast<int>(list.size())))];
    };
    const Evaluate broken = [&](const auto& graph, const auto& leaves, const auto& options) {
      eval::Evaluated got = eval::evaluate(graph, leaves, options);
      reference::Value& value = one_of(got.results);
      if (value.data.empty() || changed) return got;
      changed = true;
      double most = 1e-6;
      for (const double x : value.data) most = std::max(most, std::abs(x));
      double& x = one_of(value.data);
      x = value.type.dtype == f32 ? x + 1e-3 * most : 1 - x;
      return got;
    };
    const Verdict verdict = check(built, configurations(seed), broken);
    tried += changed;
    noticed += changed && verdict.kind == Verdict::Kind::fails;
  }
  EXPECT_GE(tried, 35);
  EXPECT_GE(noticed, tried - 4);  // a rounding may decide the element
}

TEST(Check, NoticesOtherBitsAndDamageAndErrors) {
  const Built built = build(generate(3));
  const auto verdict = [&](const auto& change) {
    return check(built, all_configurations(),
                 [&](const auto& graph, const auto& leaves, const auto& options) {
                   eval::Evaluated got = eval::evaluate(graph, leaves, options);
                   change(got, options);
                   return got;
                 });
  };
  EXPECT_EQ(verdict([](eval::Evaluated&, const eval::EvalOptions&) {}).what, "");
  EXPECT_EQ(verdict([](eval::Evaluated& got, const eval::EvalOptions& options) {
              if (options.threads == 3) got.bits[0][0] ^= 1;
            }).configuration,
            "3 threads");
  EXPECT_EQ(verdict([](eval::Evaluated& got, const eval::EvalOptions& options) {
              if (options.guards) got.damage = "a wild write";
            }).what,
            "a wild write");
  EXPECT_EQ(verdict([](eval::Evaluated&, const eval::EvalOptions& options) {
              if (options.without == std::vector<std::string>{"cse"})
                throw std::runtime_error("broken");
            }).configuration,
            "without cse");
}

TEST(Slope, NoticesAWrongGradient) {
  int noticed = 0, tried = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Program program = generate(seed);
    program.optimizer = 0;
    Built built = build(program);
    EXPECT_EQ(slope_difference(built, seed), "");
    ops::Builder builder(built.graph);
    ops::BuildScope scope(builder);
    for (ir::Result& result : built.graph.results)
      if (result.kind == ir::Result::Kind::gradient)
        result.node = TensorAccess::node(builder.tensor(result.node) * 1.1f);
    builder.graph.results = built.graph.results;
    built.graph = builder.graph;
    tried += !program.wanted.empty();
    noticed += !slope_difference(built, seed).empty();
  }
  EXPECT_GE(tried, 40);
  EXPECT_GE(noticed, tried / 2);  // not where the loss has a kink, or no slope
}

// Whether a node of the graph satisfies it; false if an op refuses its operands.
template <class F>
bool has_node(const Program& program, const F& satisfies) {
  try {
    const ir::Graph graph = build(program).graph;
    return std::any_of(graph.nodes.begin(), graph.nodes.end(), satisfies);
  } catch (const UserError&) {
    return false;
  }
}

// Tests the row, not the primitive, because ssd makes those too.
bool calls_cumsum(const Program& program) {
  const bool called = std::any_of(program.code.begin(), program.code.end(),
                                  [](const Instr& instr) { return instr.row->op == "cumsum"; });
  return called &&
         has_node(program, [](const ir::Node& node) { return node.op->name == "cumsum"; });
}

// A fault in one op shrinks to that op on a leaf, with one result and the smallest sizes.
TEST(Shrink, LeavesTheFaultyOp) {
  int shrunk = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Program program = without_dead(generate(seed));
    if (!calls_cumsum(program)) continue;
    const Program small = shrink(program, calls_cumsum);
    EXPECT_EQ(small.code.size(), 2u) << small.text();
    EXPECT_EQ(small.code[1].row->op, "cumsum");
    EXPECT_EQ(small.outputs.size() + small.loss.size() + small.updates.size(), 1u) << small.text();
    EXPECT_TRUE(small.wanted.empty());
    EXPECT_EQ(small.sizes, std::vector<std::int64_t>(4, 1));
    EXPECT_EQ(build(small).graph.results.size(), 1u);
    ++shrunk;
  }
  EXPECT_GE(shrunk, 10);
}

// A fault that depends on a size.
TEST(Shrink, KeepsWhatTheFaultNeeds) {
  const auto fails = [](const Program& program) {
    return has_node(program, [](const ir::Node& node) {
      return node.op->name == "tanh" && node.type.shape.count() >= 6;
    });
  };
  int shrunk = 0;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const Program program = without_dead(generate(seed));
    if (!fails(program)) continue;
    const Program small = shrink(program, fails);
    EXPECT_TRUE(fails(small));
    EXPECT_LE(small.code.size(), 4u) << small.text();
    EXPECT_LE(*std::max_element(small.sizes.begin(), small.sizes.end()), 6) << small.text();
    ++shrunk;
  }
  EXPECT_GE(shrunk, 5);
}

}  // namespace
}  // namespace tensorgrad::fuzz
