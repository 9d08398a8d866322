#include "tests/reference/eval.h"

#include <fmt/format.h>

#include <deque>
#include <utility>

#include "ir/primitive.h"
#include "tensorgrad/error.h"

namespace tensorgrad::reference {

const ir::Primitive& record(std::string_view name) {
  static std::deque<std::string> names;  // a deque moves nothing when it grows
  static std::deque<ir::Primitive> records;
  for (const ir::Primitive& known : records)
    if (known.name == name) return known;
  names.emplace_back(name);
  ir::Primitive fresh;
  fresh.name = names.back();
  return records.emplace_back(fresh);
}

ir::NodeId add_node(ir::Graph& graph, std::string_view op, std::vector<ir::NodeId> inputs,
                    ir::Attrs attrs, ir::Type type) {
  ir::Node node;
  node.op = &record(op);
  node.inputs = std::move(inputs);
  node.attrs = std::move(attrs);
  node.type = type;
  graph.nodes.push_back(node);
  return graph.size() - 1;
}

ir::NodeId add_input(ir::Graph& graph, Leaves& leaves, const Value& value) {
  const std::string name = fmt::format("x{}", graph.size());
  leaves["input:" + name] = value;
  return add_node(graph, "input", {}, ir::LeafAttrs{name, value.type.dtype, value.type.shape},
                  value.type);
}

Value eval(std::string_view op, const std::vector<Value>& operands, ir::Attrs attrs,
           ir::Type type) {
  ir::Graph graph;
  Leaves leaves;
  std::vector<ir::NodeId> inputs;
  for (const Value& operand : operands) inputs.push_back(add_input(graph, leaves, operand));
  add_node(graph, op, inputs, std::move(attrs), type);
  return interpret(graph, leaves).back();
}

void expect_eval_near(std::string_view op, const std::vector<Value>& operands, ir::Attrs attrs,
                      const Value& expected, double relative) {
  SCOPED_TRACE(std::string(op));
  const Value actual = eval(op, operands, std::move(attrs), expected.type);
  EXPECT_EQ(actual.type, expected.type);
  ASSERT_EQ(actual.data.size(), expected.data.size());
  for (std::size_t k = 0; k < expected.data.size(); ++k) {
    const double want = expected.data[k], got = actual.data[k];
    if (std::isnan(want))
      EXPECT_TRUE(std::isnan(got)) << "element " << k << " is " << got;
    else if (std::isinf(want) || relative == 0)
      EXPECT_EQ(got, want) << "element " << k;
    else
      EXPECT_NEAR(got, want, relative * std::abs(want)) << "element " << k;
  }
}

void expect_eval(std::string_view op, const std::vector<Value>& operands, ir::Attrs attrs,
                 const Value& expected) {
  expect_eval_near(op, operands, std::move(attrs), expected, 0);
}

template <class E>
static std::string error_of(std::string_view op, const std::vector<Value>& operands,
                            ir::Attrs attrs, ir::Type type) {
  try {
    eval(op, operands, std::move(attrs), type);
  } catch (const E& error) {
    return error.what();
  }
  ADD_FAILURE() << op << " did not fail";
  return "";
}

std::string user_error_of(std::string_view op, const std::vector<Value>& operands, ir::Attrs attrs,
                          ir::Type type) {
  return error_of<UserError>(op, operands, std::move(attrs), type);
}

std::string internal_error_of(std::string_view op, const std::vector<Value>& operands,
                              ir::Attrs attrs, ir::Type type) {
  return error_of<InternalError>(op, operands, std::move(attrs), type);
}

}  // namespace tensorgrad::reference
