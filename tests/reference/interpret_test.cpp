// The interpreter as a whole: leaves, order, types, errors.
#include "reference/interpret.h"

#include "tensorgrad/error.h"
#include "tests/reference/eval.h"

namespace tensorgrad::reference {
namespace {

using ir::NoAttrs;

TEST(Interpret, GivesAValueForEveryNode) {
  // (x + w) * t with x = 1, 2; w = 10, 20; t = 3, 4, worked out by hand
  const ir::Type pair{f32, {2}};
  ir::Graph graph;
  const auto x = add_node(graph, "input", {}, ir::LeafAttrs{"x", f32, {2}}, pair);
  const auto w = add_node(graph, "parameter", {}, ir::LeafAttrs{"l1.W", f32, {2}}, pair);
  const auto t = add_node(graph, "state", {}, ir::LeafAttrs{"adam.t", f32, {2}}, pair);
  const auto sum = add_node(graph, "add", {x, w}, NoAttrs{}, pair);
  add_node(graph, "mul", {sum, t}, NoAttrs{}, pair);
  const auto values = interpret(graph, {{"input:x", floats({2}, {1, 2})},
                                        {"parameter:l1.W", floats({2}, {10, 20})},
                                        {"state:adam.t", floats({2}, {3, 4})},
                                        {"state:not.used", floats({}, {0})}});
  ASSERT_EQ(values.size(), 5u);
  EXPECT_EQ(values[1].data, (std::vector<double>{10, 20}));
  EXPECT_EQ(values[3].data, (std::vector<double>{11, 22}));
  EXPECT_EQ(values[4].data, (std::vector<double>{33, 88}));
}

TEST(Interpret, DoesNotRoundToFloat) {
  // 1 + 2^-40 is a double and not a float
  const double small = std::ldexp(1.0, -40);
  expect_eval("add", {floats({}, {1}), floats({}, {small})}, NoAttrs{}, floats({}, {1 + small}));
}

TEST(Interpret, KnowsNames) {
  EXPECT_TRUE(can_interpret("parameter"));
  EXPECT_TRUE(can_interpret("fold"));
  EXPECT_FALSE(can_interpret("convolve"));
}

std::string leaf_error(DType dtype, const Shape& shape, const Leaves& leaves) {
  ir::Graph graph;
  add_node(graph, "input", {}, ir::LeafAttrs{"x", dtype, shape}, {dtype, shape});
  try {
    interpret(graph, leaves);
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

TEST(InterpretErrors, Leaves) {
  EXPECT_EQ(leaf_error(f32, {2}, {}), "interpret: no value for input:x");
  EXPECT_EQ(leaf_error(f32, {2}, {{"state:x", floats({2}, {1, 2})}}),
            "interpret: no value for input:x");
  EXPECT_EQ(leaf_error(f32, {2}, {{"input:x", floats({3}, {1, 2, 3})}}),
            "interpret: input:x is f32[2], its value is f32[3]");
  EXPECT_EQ(leaf_error(f32, {2}, {{"input:x", ints({2}, {1, 2})}}),
            "interpret: input:x is f32[2], its value is i32[2]");
  EXPECT_EQ(leaf_error(f32, {2}, {{"input:x", floats({2}, {1, 2, 3})}}),
            "interpret: input:x is f32[2], its value has 3 elements");
  EXPECT_EQ(leaf_error(i32, {2}, {{"input:x", ints({2}, {1, 0.5})}}),
            "interpret: input:x is i32[2], its value has the element 0.5");
  EXPECT_EQ(leaf_error(i32, {1}, {{"input:x", ints({1}, {2147483648.0})}}),
            "interpret: input:x is i32[1], its value has the element 2147483648");
  EXPECT_EQ(leaf_error(boolean, {1}, {{"input:x", bools({1}, {2})}}),
            "interpret: input:x is bool[1], its value has the element 2");
}

TEST(InterpretErrors, IdsNameTheCallSite) {
  ir::Graph graph;
  Leaves leaves;
  const auto ids = add_input(graph, leaves, ints({2}, {0, 5}));
  const auto check = add_node(graph, "check_index", {ids}, ir::CheckAttrs{5}, {i32, {2}});
  graph.sites.push_back({"src/train.cpp", 41, "layers.0", "cross_entropy"});
  const auto message = [&] {
    try {
      interpret(graph, leaves);
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_EQ(message(), "check_index: id 5 is outside an axis of size 5");
  graph[check].site = 1;
  EXPECT_EQ(message(),
            "cross_entropy: id 5 is outside an axis of size 5\n  in layers.0, at train.cpp:41");
}

TEST(InterpretErrors, BrokenGraphs) {
  const Value x = floats({2}, {1, 2});
  const auto contains = [](const std::string& text, std::string_view part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  contains(internal_error_of("convolve", {x}, NoAttrs{}, x.type),
           "no evaluation for the primitive convolve");
  contains(internal_error_of("add", {x}, NoAttrs{}, x.type), "add: 1 operands");
  contains(internal_error_of("concat", {}, ir::AxisAttrs{0}, x.type), "concat: 0 operands");
  contains(internal_error_of("neg", {x}, NoAttrs{}, {f32, {3}}),
           "neg: node 1 has type f32[3], its value is f32[2]");
  contains(internal_error_of("add", {x, floats({}, {1})}, NoAttrs{}, x.type),
           "add: operands differ: f32[2] and f32[]");
  contains(internal_error_of("exp", {ints({1}, {1})}, NoAttrs{}, {i32, {1}}),
           "exp: an operand is i32, not f32");
  contains(internal_error_of("add", {bools({}, {1}), bools({}, {1})}, NoAttrs{}, {boolean, {}}),
           "add: an operand is bool, not f32 or i32");
  contains(internal_error_of("flip", {x}, ir::AxisAttrs{-1}, x.type), "flip: no axis -1 in [2]");

  ir::Graph forward;
  add_node(forward, "neg", {0}, NoAttrs{}, x.type);
  EXPECT_THROW(interpret(forward, {}), InternalError);
}

}  // namespace
}  // namespace tensorgrad::reference
