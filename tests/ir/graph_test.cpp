// Graph: appending, call sites, uses; equality and hashes.
#include "ir/graph.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/ir/local_ops.h"

namespace tensorgrad::ir {
namespace {

using namespace local;

// Text of the error of class E that f throws, or a note that there was none.
template <class E, class F>
std::string error_of(F f) {
  try {
    f();
  } catch (const E& error) {
    return error.what();
  }
  return "no error";
}

Graph add_twice() {
  Graph g;
  const NodeId x = g.append(kInput, {}, LeafAttrs{"x", f32, {2, 3}});
  const NodeId y = g.append(kAdd, {x, x}, NoAttrs{});
  g.append(kNeg, {x}, NoAttrs{});  // nobody reads it
  g.results.push_back({Result::Kind::output, "y", y});
  g.results.push_back({Result::Kind::capture, "x", x});
  return g;
}

TEST(Graph, AppendComputesTheType) {
  Graph g;
  const NodeId x = g.append(kInput, {}, LeafAttrs{"x", f32, {4, 3}});
  const NodeId w = g.append(kParameter, {}, LeafAttrs{"w", f32, {3, 5}});
  const NodeId y = g.append(kMatmul, {x, w}, NoAttrs{});
  EXPECT_EQ(g[y].type.text(), "f32[4,5]");
  EXPECT_EQ(g[x].as<LeafAttrs>().name, "x");
  EXPECT_THROW(g.append(kMatmul, {w, x}, NoAttrs{}), BrokenRule);
  EXPECT_EQ(g.size(), 3) << "a refused node leaves no trace";
}

TEST(Graph, AppendRefusesOurOwnMistakes) {
  Graph g = add_twice();
  const auto starts_with = [&](std::string_view start, auto f) {
    const std::string text = error_of<InternalError>(f);
    EXPECT_EQ(text.substr(0, start.size()), start);
  };
  starts_with("internal error: append: add takes 2 operands, not 1",
              [&] { g.append(kAdd, {0}, NoAttrs{}); });
  starts_with("internal error: append: sum_all takes at least one operand",
              [&] { g.append(kSumAll, {}, NoAttrs{}); });
  starts_with("internal error: append: neg takes attributes of kind 0, not 6{axis=1}",
              [&] { g.append(kNeg, {0}, AxisAttrs{1}); });
  starts_with("internal error: append: neg reads %3, but the graph has 3 nodes",
              [&] { g.append(kNeg, {3}, NoAttrs{}); });
  starts_with("internal error: append: neg reads %-1", [&] { g.append(kNeg, {-1}, NoAttrs{}); });
}

TEST(Graph, EqualCallSitesAreInternedOnce) {
  Graph g;
  EXPECT_EQ(g.intern({}), 0);
  EXPECT_EQ(g.intern({"a.cpp", 1, "", ""}), 1);
  EXPECT_EQ(g.intern({"a.cpp", 1, "l1", ""}), 2);
  EXPECT_EQ(g.intern({"a.cpp", 1, "", ""}), 1);
  EXPECT_EQ(g.intern({}), 0);
  EXPECT_EQ(g.sites.size(), 3u);
}

TEST(Graph, FindsResultsByKindAndName) {
  const Graph g = add_twice();
  EXPECT_EQ(g.find(Result::Kind::output, "y"), 1);
  EXPECT_EQ(g.find(Result::Kind::capture, "x"), 0);
  EXPECT_EQ(g.find(Result::Kind::capture, "y"), -1);
}

TEST(Graph, FindsWhatResultsNeed) {
  const Graph g = add_twice();
  EXPECT_EQ(live_nodes(g), (std::vector<bool>{true, true, false}));
}

const Attrs kSamples[] = {
    NoAttrs{},
    LeafAttrs{"x", f32, {2, 3}},
    LeafAttrs{"x", i32, {2, 3}},
    LeafAttrs{"x", f32, {3, 2}},
    LeafAttrs{"x", f32, {2, 3, 1}},
    LeafAttrs{"y", f32, {2, 3}},
    ConstantAttrs{0.0, f32},
    ConstantAttrs{-0.0, f32},
    ConstantAttrs{std::numeric_limits<double>::quiet_NaN(), f32},
    ConstantAttrs{-std::numeric_limits<double>::quiet_NaN(), f32},
    IotaAttrs{7},
    RowsAttrs{7},
    AxesAttrs{{}},
    AxesAttrs{{0}},
    AxesAttrs{{0, 1}},
    OrderAttrs{{0, 1}},
    CumsumAttrs{1, false},
    CumsumAttrs{1, true},
    PadAttrs{1, 2, 3, 0},
    PadAttrs{1, 3, 2, 0},
    WindowAttrs{0, 3, 1, 1, 10},
    WindowAttrs{0, 3, 1, 1, 11},
};

TEST(AttrsEquality, EveryFieldCounts) {
  for (const Attrs& a : kSamples) {
    for (const Attrs& b : kSamples) {
      EXPECT_EQ(equal(a, b), &a == &b) << print(a) << " and " << print(b);
      EXPECT_EQ(hash(a) == hash(b), &a == &b) << print(a) << " and " << print(b);
    }
    const Attrs copy = a;
    EXPECT_TRUE(equal(a, copy)) << print(a);
    EXPECT_EQ(hash(a), hash(copy)) << print(a);
  }
}

TEST(StructuralHash, IgnoresCallSitesAndNothingElse) {
  const std::uint64_t base = structural_hash(add_twice());
  Graph sited = add_twice();
  sited[1].site = sited.intern({"train.cpp", 12, "l1", "mean"});
  EXPECT_EQ(structural_hash(sited), base);

  const auto changes = [&](auto change) {
    Graph g = add_twice();
    change(g);
    EXPECT_NE(structural_hash(g), base) << print(g);
  };
  changes([](Graph& g) { std::get<LeafAttrs>(g[0].attrs).name = "z"; });
  changes([](Graph& g) { g[0].type.shape[0] = 5; });
  changes([](Graph& g) { g[0].type.dtype = i32; });
  changes([](Graph& g) { g[0].op = &kParameter; });
  changes([](Graph& g) { g[2].inputs = {1}; });
  changes([](Graph& g) { g.nodes.pop_back(); });
  changes([](Graph& g) { g.results[0].name = "z"; });
  changes([](Graph& g) { g.results[0].kind = Result::Kind::capture; });
  changes([](Graph& g) { g.results[0].node = 2; });
  changes([](Graph& g) { g.results.pop_back(); });
}

// The values come from a Python version of the hash (splitmix64 steps over the same fields). Hashes
// are stored in files, so they must not depend on the machine.
TEST(StructuralHash, IsTheSameEverywhere) {
  EXPECT_EQ(structural_hash(Graph{}), 12035550249420947055u);
  EXPECT_EQ(structural_hash(add_twice()), 6187063286095358579u);
}

}  // namespace
}  // namespace tensorgrad::ir
