// Printing and parsing a Graph: the format, and that parsing returns the same graph, whatever it
// contains.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "ir/syntax.h"
#include "ops/table.h"
#include "support/bits.h"
#include "tensorgrad/reflect.h"
#include "tests/ir/local_ops.h"

namespace tensorgrad::ir {
namespace {

using namespace local;

constexpr std::string_view kSample = R"(graph {
  %0 = input {name="x", dtype=f32, shape=[256,1]} : f32[256,1]
  %1 = parameter {name="l1.W", dtype=f32, shape=[1,64]} : f32[1,64]
  %2 = state {name="t", dtype=i32, shape=[]} : i32[]
  %3 = matmul(%0, %1) : f32[256,64]  @ train.cpp:12 in l1
  %4 = reduce_sum(%3) {axes=[0,1]} : f32[]  @ train.cpp:13 via mean
  %5 = narrow(%1) {axis=1, start=3, length=8} : f32[1,8]  @ "a file.cpp":7 in layers.0.q via softmax
  %6 = pad(%5) {axis=1, before=20, after=36, value=-0.1} : f32[1,64]
  %7 = constant {value=1, dtype=i32} : i32[]
  %8 = add(%2, %7) : i32[]
  output "loss" = %4
  capture "hidden \"units\"" = %3
  gradient "l1.W" = %6
  update "l1.W" = %6
  update "t" = %8
}
)";

void expect_same(const Graph& a, const Graph& b) {
  ASSERT_EQ(a.size(), b.size());
  const auto site = [](const Graph& g, NodeId id) {
    return g.sites.at(static_cast<std::size_t>(g[id].site));
  };
  for (NodeId id = 0; id < a.size(); ++id) {
    const Node &x = a[id], &y = b[id];
    EXPECT_EQ(x.op, y.op) << id;
    EXPECT_EQ(x.inputs, y.inputs) << id;
    EXPECT_EQ(x.type, y.type) << id;
    EXPECT_TRUE(equal(x.attrs, y.attrs)) << print(x.attrs) << " and " << print(y.attrs);
    EXPECT_EQ(site(a, id), site(b, id)) << id;
  }
  ASSERT_EQ(a.results.size(), b.results.size());
  for (std::size_t i = 0; i < a.results.size(); ++i) {
    EXPECT_EQ(a.results[i].kind, b.results[i].kind) << i;
    EXPECT_EQ(a.results[i].name, b.results[i].name) << i;
    EXPECT_EQ(a.results[i].node, b.results[i].node) << i;
  }
  EXPECT_EQ(structural_hash(a), structural_hash(b));
}

void expect_round_trip(const Graph& g) {
  const std::string text = print(g);
  SCOPED_TRACE(text);
  const Graph back = parse(text, find_op);
  expect_same(g, back);
  EXPECT_EQ(print(back), text);
}

TEST(Print, SampleReadsAndPrintsTheSame) {
  const Graph g = parse(kSample, find_op);
  EXPECT_EQ(print(g), kSample);
  EXPECT_EQ(g.find(Result::Kind::capture, "hidden \"units\""), 3);
  EXPECT_EQ(g.sites.size(), 4u);
  const CallSite expected{"a file.cpp", 7, "layers.0.q", "softmax"};
  EXPECT_EQ(g.sites[static_cast<std::size_t>(g[5].site)], expected);
  EXPECT_EQ(print_node(g, 3), "%3 = matmul(%0, %1) : f32[256,64]  @ train.cpp:12 in l1");
  verify(g);
}

TEST(Print, Attributes) {
  EXPECT_EQ(print(Attrs(NoAttrs{})), "");
  EXPECT_EQ(print(Attrs(NarrowAttrs{1, 2, 3})), "{axis=1, start=2, length=3}");
  EXPECT_EQ(print(Attrs(CumsumAttrs{0, true})), "{axis=0, reverse=true}");
  EXPECT_EQ(print(Attrs(LeafAttrs{"x", boolean, {2}})), R"({name="x", dtype=bool, shape=[2]})");
}

TEST(Print, QuotesEscapeControlCharacters) {
  EXPECT_EQ(quote("a\"b\\c\n\t\r\x01\x1f\x7f\xcf\x80"),
            "\"a\\\"b\\\\c\\n\\t\\r\\x01\\x1f\\x7f\xcf\x80\"");
}

TEST(Print, BrokenNodesToo) {
  Graph g;
  g.nodes.emplace_back();
  g[0].inputs = {-1, 7};
  g[0].site = 99;
  EXPECT_EQ(print_node(g, 0), "%0 = ?(%-1, %7) : f32[]");
}

TEST(Print, EmptyGraph) {
  EXPECT_EQ(print(Graph{}), "graph {\n}\n");
  expect_round_trip(Graph{});
}

TEST(Parse, BlanksCommentsAndMissingTypes) {
  const Graph g = parse(
      "# a comment\n\n  graph{ # opens\r\n"
      "\t%0=input{shape=[ 2 , 3 ],name=\"a # b\",dtype=f32}#no type\n"
      "%1 = add ( %0 ,%0 )\n"
      "output\"y\"=%1\n}\n\n# the end",
      find_op);
  EXPECT_EQ(print(g), R"(graph {
  %0 = input {name="a # b", dtype=f32, shape=[2,3]} : f32[2,3]
  %1 = add(%0, %0) : f32[2,3]
  output "y" = %1
}
)");
}

TEST(RoundTrip, NamesOfAnyBytes) {
  std::string all_bytes;
  for (int byte = 0; byte < 256; ++byte) all_bytes += static_cast<char>(byte);
  for (const std::string& name :
       {std::string(), std::string("\"\\"), std::string("a\nb\tc\rd\x7f"),
        std::string("\xcf\x80 # }"), std::string("\\x41"), std::string("in"), all_bytes}) {
    Graph g;
    const NodeId x = g.append(kParameter, {}, LeafAttrs{name, f32, {}});
    for (const CallSite& site : {CallSite{name, 3, "", ""}, CallSite{"f", 0, name, ""},
                                 CallSite{"", -7, "", name}, CallSite{name, 1, name, name}})
      g.append(kNeg, {x}, NoAttrs{}, g.intern(site));
    for (const auto kind : {Result::Kind::output, Result::Kind::capture, Result::Kind::gradient,
                            Result::Kind::update})
      g.results.push_back({kind, name, 2});
    expect_round_trip(g);
  }
}

constexpr const char* kFlatText = R"(graph {
  range "l1.W" = [0,4]
  range "empty" = [64,0]
  range "l1.b" = [64,2]
  %0 = flat_parameters {name="", dtype=f32, shape=[128]} : f32[128]
  %1 = flat_state {name="m", dtype=f32, shape=[128]} : f32[128]
  %2 = neg(%0) : f32[128]
  flat_gradient "" = %2
  flat_update "" = %2
  flat_update "m" = %1
}
)";

TEST(RoundTrip, FlatParameters) {
  const Graph g = parse(kFlatText, ops::find_primitive);
  EXPECT_EQ(print(g), kFlatText);
  EXPECT_EQ(g.flat[2], (FlatRange{"l1.b", 64, 2}));
  verify(g);
  // Offset and elements are not a shape: their product may be large.
  const char* const large = R"(graph {
  range "w" = [8388608,1048576]
  %0 = flat_parameters {name="", dtype=f32, shape=[9437184]} : f32[9437184]
  flat_update "" = %0
}
)";
  EXPECT_EQ(print(parse(large, ops::find_primitive)), large);
  Graph without = g;
  without.flat.clear();
  EXPECT_NE(structural_hash(g), structural_hash(without));
}

TEST(ParseErrors, FlatParameters) {
  const auto error = [](const std::string& old, const std::string& now) {
    std::string text = kFlatText;
    text.replace(text.find(old), old.size(), now);
    try {
      parse(text, ops::find_primitive);
    } catch (const UserError& e) {
      return std::string(e.what());
    }
    return std::string("none");
  };
  EXPECT_EQ(error("[64,2]", "[60]"), "graph text, line 4: expected ',', found \"]\"");
  EXPECT_EQ(error("[64,2]", "[64,-2]"),
            "graph text, line 4: range \"l1.b\": [64,-2] does not come behind 64");
  EXPECT_EQ(error("flat_parameters {name=\"\"", "flat_parameters {name=\"w\""),
            "graph text, line 5: the flat parameters have no name");
  EXPECT_EQ(error("flat_state {name=\"m\"", "flat_state {name=\"\""),
            "graph text, line 6: flat state has a name");
  EXPECT_EQ(
      error("  range \"l1.W\" = [0,4]\n  range \"empty\" = [64,0]\n  range \"l1.b\" = [64,2]\n",
            ""),
      "graph text, line 2: flat_parameters needs ranges");
  EXPECT_EQ(
      error("%2 = neg(%0) : f32[128]\n", "%2 = constant {value=1, dtype=f32}\n"),
      "graph text, line 8: flat_gradient \"\": %2 is f32[], and the flat parameters are f32[128]");
  EXPECT_EQ(error("\"empty\" = [64,0]", "\"empty\" = [3,0]"),
            "graph text, line 3: range \"empty\": [3,0] does not come behind 4");
  EXPECT_EQ(error("\"l1.b\"", "\"l1.W\""),
            "graph text, line 4: range \"l1.W\": the parameter has two ranges");
  EXPECT_EQ(error("shape=[128]} : f32[128]", "shape=[65]}"),
            "graph text, line 5: the ranges end at 66, and flat_parameters has 65 elements");
  EXPECT_EQ(error("flat_update \"m\"", "flat_update \"v\""),
            "graph text, line 10: flat_update \"v\": no flat state has that name");
  EXPECT_EQ(error("flat_gradient \"\"", "flat_gradient \"w\""),
            "graph text, line 8: flat_gradient \"w\": the flat gradient has no name");
}

std::vector<double> interesting_doubles() {
  using Limits = std::numeric_limits<double>;
  std::vector<double> values = {0.0,
                                -0.0,
                                1.0,
                                -1.0,
                                0.1,
                                1.0 / 3,
                                1e22,
                                1e23,
                                123456789012345680.0,
                                Limits::max(),
                                Limits::lowest(),
                                Limits::min(),
                                Limits::denorm_min(),
                                Limits::epsilon(),
                                Limits::infinity(),
                                -Limits::infinity(),
                                Limits::quiet_NaN(),
                                -Limits::quiet_NaN(),
                                double_of_bits(0x7ff8000000000123u),
                                double_of_bits(0xffffffffffffffffu),
                                static_cast<double>(0.1f)};
  std::mt19937_64 random(1);
  for (int i = 0; i < 2000; ++i) values.push_back(double_of_bits(random()));
  return values;
}

TEST(RoundTrip, DoublesKeepEveryBit) {
  Graph g;
  for (const double value : interesting_doubles())
    g.append(kConstant, {}, ConstantAttrs{value, f32});
  expect_round_trip(g);
  EXPECT_EQ(print(g[0].attrs), "{value=0, dtype=f32}");
  EXPECT_EQ(print(g[1].attrs), "{value=-0, dtype=f32}");
  EXPECT_EQ(print(g[4].attrs), "{value=0.1, dtype=f32}");
  EXPECT_EQ(print(g[16].attrs), "{value=nan, dtype=f32}");
  EXPECT_EQ(print(g[15].attrs), "{value=-inf, dtype=f32}");
}

void set(int& field) { field = -3; }
void set(std::int64_t& field) { field = std::int64_t{1} << 40; }
void set(double& field) { field = -1.5e-7; }
void set(bool& field) { field = true; }
void set(std::string& field) { field = "a \"name\""; }
void set(DType& field) { field = boolean; }
void set(Shape& field) { field = {1, 2, 3, 4, 5, 0, 7, 8}; }
void set(std::vector<int>& field) { field = {3, 0, -1}; }

template <std::size_t... I>
std::vector<Attrs> one_of_each(std::index_sequence<I...>) {
  return {Attrs(std::in_place_index<I>)...};
}

// A new kind of attributes in the variant is covered here automatically.
TEST(RoundTrip, EveryKindOfAttributes) {
  Graph g;
  for (Attrs attrs : one_of_each(std::make_index_sequence<kAttrsKinds>{})) {
    const std::size_t kind = attrs.index();
    g.append(kProbes[kind], {}, attrs);
    std::visit(
        [](auto& own) { for_each_field(own, [](std::string_view, auto& field) { set(field); }); },
        attrs);
    EXPECT_EQ(equal(attrs, g.nodes.back().attrs), kind == 0);
    g.append(kProbes[kind], {}, attrs);
  }
  expect_round_trip(g);
}

// Bytes of a valid text are changed, dropped, doubled and moved; parse must return or throw Error.
TEST(ParseMutations, NeverCrashes) {
  std::mt19937 random(20240607);
  const auto below = [&](std::size_t n) { return std::size_t{random() % n}; };
  constexpr std::string_view kTokens = "%=(){}[],:@\"\\#-.0123456789eExnf \n";
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text(kSample);
    for (std::size_t change = 0; change <= below(3); ++change) {
      const std::size_t at = below(text.size());
      switch (below(6)) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text[at] = kTokens[below(kTokens.size())];
          break;
        case 2:
          text.erase(at, 1 + below(8));
          break;
        case 3:
          text.insert(at, 1 + below(20), text[at]);
          break;
        case 4:
          text.insert(at, text.substr(below(text.size()), below(80)));
          break;
        default:
          text.resize(at + 1);
          break;
      }
    }
    try {
      const Graph g = parse(text, find_op);
      verify(g);
      EXPECT_EQ(print(parse(print(g), find_op)), print(g));
      ++accepted;
    } catch (const UserError& error) {
      EXPECT_EQ(std::string_view(error.what()).substr(0, 17), "graph text, line ");
    }
  }
  EXPECT_GT(accepted, 500);
  EXPECT_LT(accepted, 15000);
}

}  // namespace
}  // namespace tensorgrad::ir
