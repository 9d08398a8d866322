// The rules of a well-formed Graph: order, arity, attributes, types, names, results.
#include <vector>

#include "ir/check.h"
#include "ir/primitive.h"
#include "ir/syntax.h"
#include "support/fail.h"
#include "support/integers.h"

namespace tensorgrad::ir {

std::string arity_fault(const Primitive& op, std::size_t operands) {
  if (op.arity < 0) return operands > 0 ? "" : "takes at least one operand";
  if (operands == usize(op.arity)) return "";
  return fmt::format("takes {} operand{}, not {}", op.arity, op.arity == 1 ? "" : "s", operands);
}

std::string Checker::node(NodeId id) {
  const Node& node = graph_[id];
  if (!node.op || !node.op->type) return "the node has no op, or one without a type rule";
  if (const std::string fault = arity_fault(*node.op, node.inputs.size()); !fault.empty())
    return fmt::format("{} {}", node.op->name, fault);
  std::vector<Type> types;
  for (const NodeId input : node.inputs) {
    if (input < 0 || input >= id)
      return fmt::format("{} reads %{}, which does not come before it", node.op->name, input);
    types.push_back(graph_[input].type);
  }
  if (node.attrs.index() != node.op->attrs)
    return fmt::format("{} takes attributes of kind {}, not {}", node.op->name, node.op->attrs,
                       node.attrs.index());
  if (node.site < 0 || usize(node.site) >= graph_.sites.size())
    return fmt::format("call site {} does not exist: there are {}", node.site, graph_.sites.size());
  try {
    const Type rule = node.op->type(types, node.attrs);
    if (node.type != rule)
      return fmt::format("the type is {}, and by {}'s rule {}", node.type.text(), node.op->name,
                         rule.text());
    for (const std::int64_t size : rule.shape)  // Shape's [] does not check the sizes it sets
      if (size < 0) return fmt::format("{}: a size is negative: {}", node.op->name, rule.text());
  } catch (const BrokenRule& broken) {
    return fmt::format("{}: {}", node.op->name, broken.rule);
  } catch (const Error& error) {
    return fmt::format("{}: {}", node.op->name, error.what());
  }
  return is_leaf(node) ? leaf(node, id) : "";
}

std::string Checker::leaf(const Node& node, NodeId id) {
  const auto* attrs = std::get_if<LeafAttrs>(&node.attrs);
  if (!attrs) return "a leaf has no name";
  const bool flat = node.op->core == Core::flat_parameters || node.op->core == Core::flat_state;
  if (node.op->core == Core::flat_parameters && !attrs->name.empty())
    return "the flat parameters have no name";
  if (node.op->core == Core::flat_state && attrs->name.empty()) return "flat state has a name";
  if (flat && ranges_.empty()) return fmt::format("{} needs ranges", node.op->name);
  if (flat && node.type.shape.rank() != 1)
    return fmt::format("{} has one axis, not {}", node.op->name, node.type.shape.text());
  if (flat && node.type.shape.count() < end_of_ranges_)
    return fmt::format("the ranges end at {}, and {} has {} elements", end_of_ranges_,
                       node.op->name, node.type.shape.count());
  const auto [first, is_new] = leaves_.try_emplace({node.op->core, attrs->name}, id);
  if (is_new) return "";
  return fmt::format("{} \"{}\" occurs twice: %{} and %{}", node.op->name, attrs->name,
                     first->second, id);
}

std::string Checker::result(const Result& result) {
  if (result.node < 0 || result.node >= graph_.size())
    return fmt::format("%{} does not exist", result.node);
  if (!results_.emplace(result.kind, result.name).second)
    return "two results have this kind and name";
  if (result.kind == Result::Kind::flat_gradient) return flat_gradient(result);
  return is_update(result) ? update(result) : "";
}

std::string Checker::flat_gradient(const Result& result) const {
  if (!result.name.empty()) return "the flat gradient has no name";
  const auto flat = leaves_.find({Core::flat_parameters, ""});
  if (flat == leaves_.end()) return "there are no flat parameters";
  const Type &type = graph_[result.node].type, &wanted = graph_[flat->second].type;
  if (type == wanted) return "";
  return fmt::format("%{} is {}, and the flat parameters are {}", result.node, type.text(),
                     wanted.text());
}

std::string Checker::range(const FlatRange& range) {
  if (!ranges_.insert(range.parameter).second) return "the parameter has two ranges";
  if (range.elements < 0 || range.offset < end_of_ranges_)
    return fmt::format("[{},{}] does not come behind {}", range.offset, range.elements,
                       end_of_ranges_);
  end_of_ranges_ = range.offset + range.elements;
  return "";
}

std::string Checker::update(const Result& result) const {
  const bool flat = result.kind == Result::Kind::flat_update;
  const auto parameter =
      leaves_.find({flat ? Core::flat_parameters : Core::parameter, result.name});
  const auto state = leaves_.find({flat ? Core::flat_state : Core::state, result.name});
  if (parameter == leaves_.end() && state == leaves_.end())
    return flat ? "no flat state has that name" : "no parameter and no state has that name";
  if (parameter != leaves_.end() && state != leaves_.end())
    return "both a parameter and a state have that name";
  const NodeId target = (parameter != leaves_.end() ? parameter : state)->second;
  const Type& old = graph_[target].type;
  const Type& type = graph_[result.node].type;
  if (type == old) return "";
  return fmt::format("%{} is {}, and the updated %{} is {}", result.node, type.text(), target,
                     old.text());
}

void verify(const Graph& graph) {
  Checker checker(graph);
  for (const FlatRange& range : graph.flat)
    if (const std::string fault = checker.range(range); !fault.empty())
      internal_error("verify: {}\n  {}", fault, print(range));
  for (NodeId id = 0; id < graph.size(); ++id)
    if (const std::string fault = checker.node(id); !fault.empty())
      internal_error("verify: {}\n  {}", fault, print_node(graph, id));
  for (const Result& result : graph.results)
    if (const std::string fault = checker.result(result); !fault.empty())
      internal_error("verify: {}\n  {}", fault, print(result));
}

}  // namespace tensorgrad::ir
