// Evaluates a Graph in order: the caller provides the leaves, the families' tables everything else.
#include "reference/interpret.h"

#include <utility>

#include "ir/primitive.h"
#include "reference/evaluate.h"
#include "support/fail.h"
#include "support/integers.h"

namespace tensorgrad::reference {
namespace {

using ir::Graph;
using ir::LeafAttrs;
using ir::Node;
using ir::NodeId;

std::string text(const ir::Type& type) { return name(type.dtype) + type.shape.text(); }

bool is_leaf(std::string_view name) {
  return name == "input" || name == "parameter" || name == "flat_parameters" || name == "state" ||
         name == "flat_state";
}

const Evaluation* find(std::string_view name) {
  for (const auto& table :
       {elementwise_table(), random_table(), movement_table(), reduce_table(), gather_table(),
        composite_table(), attention_table(), state_space_table()})
    for (const Evaluation& entry : table)
      if (entry.name == name) return &entry;
  return nullptr;
}

Value leaf(const Node& node, const Leaves& leaves) {
  const auto& attrs = node.as<LeafAttrs>();
  const std::string key = fmt::format("{}:{}", node.op->name, attrs.name);
  const auto found = leaves.find(key);
  if (found == leaves.end()) user_error("interpret: no value for {}", key);
  const Value& value = found->second;
  const ir::Type type{attrs.dtype, attrs.shape};
  if (value.type != type)
    user_error("interpret: {} is {}, its value is {}", key, text(type), text(value.type));
  if (static_cast<std::int64_t>(value.data.size()) != type.shape.count())
    user_error("interpret: {} is {}, its value has {} elements", key, text(type),
               value.data.size());
  if (type.dtype != DType::f32)
    for (const double x : value.data)
      if (x != number(x, type.dtype))
        user_error("interpret: {} is {}, its value has the element {}", key, text(type), x);
  return value;
}

Value evaluate(const Graph& graph, const Node& node, Inputs in) {
  const std::string_view name = node.op->name;
  const Evaluation* entry = find(name);
  if (entry == nullptr) internal_error("reference: no evaluation for the primitive {}", name);
  const int arity = static_cast<int>(in.size());
  expect(entry->arity < 0 ? arity >= 1 : arity == entry->arity, node, "{} operands", arity);
  try {
    return entry->evaluate(node, in);
  } catch (const BrokenRule& broken) {
    const ir::CallSite& site = graph.sites[usize(node.site)];
    throw UserError(user_message(site.composite.empty() ? name : site.composite, broken.rule,
                                 broken.hint, site.scope, site.file, site.line));
  }
}

}  // namespace

std::vector<Value> interpret(const Graph& graph, const Leaves& leaves) {
  std::vector<Value> values;
  values.reserve(graph.nodes.size());  // pointers to operands must stay valid
  for (const Node& node : graph.nodes) {
    std::vector<const Value*> in;
    for (const NodeId id : node.inputs) {
      expect(id >= 0 && usize(id) < values.size(), node,
             "operand {} of node {} does not come before it", id, values.size());
      in.push_back(&values[usize(id)]);
    }
    Value value = is_leaf(node.op->name) ? leaf(node, leaves) : evaluate(graph, node, in);
    expect(value.type == node.type, node, "node {} has type {}, its value is {}", values.size(),
           text(node.type), text(value.type));
    values.push_back(std::move(value));
  }
  return values;
}

bool can_interpret(std::string_view primitive) {
  return is_leaf(primitive) || find(primitive) != nullptr;
}

}  // namespace tensorgrad::reference
