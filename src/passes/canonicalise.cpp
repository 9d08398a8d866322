#include "passes/canonicalise.h"

#include <cmath>
#include <limits>
#include <optional>

#include "ops/builder.h"
#include "tensorgrad/ops.h"

namespace tensorgrad::passes {

using ir::Core;
using ir::Graph;
using ir::Node;
using ir::NodeId;

namespace {

class Canonicaliser {
 public:
  explicit Canonicaliser(const Graph& graph) : from_(graph) {}

  Graph run() {
    ops::BuildScope scope(builder_);
    graph().sites = from_.sites;
    std::vector<NodeId> renamed(static_cast<std::size_t>(from_.size()), -1);
    for (NodeId id = 0; id < from_.size(); ++id) {
      Node node = from_[id];
      for (NodeId& input : node.inputs) input = renamed[static_cast<std::size_t>(input)];
      builder_.forced_site = node.site;
      NodeId made = simpler(node);
      if (made < 0) {
        made = graph().size();
        graph().nodes.push_back(std::move(node));
      }
      renamed[static_cast<std::size_t>(id)] = made;
    }
    graph().results = from_.results;
    for (ir::Result& result : graph().results) result.node = renamed[static_cast<std::size_t>(result.node)];
    return std::move(graph());
  }

 private:
  Graph& graph() { return builder_.graph; }
  Tensor tensor(NodeId id) const { return builder_.tensor(id); }
  static NodeId node(const Tensor& t) { return TensorAccess::node(t); }

  // The number that every element of the node is, if it is one.
  std::optional<double> number(NodeId id) {
    while (graph()[id].op->core == Core::view) {
      if (const auto* pad = std::get_if<ir::PadAttrs>(&graph()[id].attrs))
        if (const auto inside = number(graph()[id].inputs[0]); !inside || *inside != pad->value) return {};
      id = graph()[id].inputs[0];
    }
    if (graph()[id].op->core != Core::constant || graph()[id].type.dtype != DType::f32) return {};
    return static_cast<double>(static_cast<float>(graph()[id].as<ir::ConstantAttrs>().value));
  }

  NodeId filled(double value, const ir::Type& type) { return node(full(type.shape, value, type.dtype)); }

  // An equal node that is simpler, or -1.
  NodeId simpler(const Node& n) {
    const std::string_view op = n.op->name;
    if (n.op->core == Core::view) return simpler_view(n);
    if (n.op->core == Core::reduce) {
      const Shape& shape = graph()[n.inputs[0]].type.shape;
      if (shape.count() == n.type.shape.count() && shape.count() > 0)
        return node(reshape(tensor(n.inputs[0]), n.type.shape));
    }
    if (n.type.dtype != DType::f32 || n.inputs.size() != 2) return -1;
    const NodeId a = n.inputs[0], b = n.inputs[1];
    const auto x = number(a), y = number(b);
    if (op == "mul") {
      if (x && y) return filled(rounded(*x * *y), n.type);
      if (y && *y == 1) return a;
      if (x && *x == 1) return b;
      if (x) return node(tensor(b) * tensor(a));  // numbers stand on the right
      if (y) return scaled(a, *y);
    } else if (op == "div") {
      if (x && y) return filled(rounded(*x / *y), n.type);
      if (y && *y == 1) return a;
      // Exact: a power of two has an exact reciprocal.
      if (y && *y != 0 && std::isfinite(1 / *y) && std::abs(std::frexp(*y, &exponent_)) == 0.5)
        return node(tensor(a) * (1 / *y));
    } else if (op == "add") {
      if (x && y) return filled(rounded(*x + *y), n.type);
      if (y && *y == 0) return a;
      if (x && *x == 0) return b;
    } else if (op == "sub") {
      if (x && y) return filled(rounded(*x - *y), n.type);
      if (y && *y == 0) return a;
    }
    return -1;
  }

  static double rounded(double v) { return static_cast<double>(static_cast<float>(v)); }

  // (t * c) * y = t * (c * y)
  NodeId scaled(NodeId a, double y) {
    const Node& inner = graph()[a];
    if (inner.op->name != "mul") return -1;
    const auto c = number(inner.inputs[1]);
    if (!c) return -1;
    // Not where the factors together leave the range of f32, although one after the other they may not.
    const double together = rounded(*c * y);
    if (!std::isfinite(together) || std::abs(together) < std::numeric_limits<float>::min()) return -1;
    return node(tensor(inner.inputs[0]) * together);
  }

  NodeId simpler_view(const Node& n) {
    const std::string_view op = n.op->name;
    const NodeId below = n.inputs[0];
    const Node& inner = graph()[below];
    if (op == "stop_gradient") return below;
    if (op == "reshape") {
      if (inner.type.shape == n.type.shape) return below;
      if (inner.op->name == "reshape") return node(reshape(tensor(inner.inputs[0]), n.type.shape));
    }
    if (op == "broadcast_to") {
      if (inner.type.shape == n.type.shape) return below;
      if (inner.op->name == "broadcast_to") return node(broadcast_to(tensor(inner.inputs[0]), n.type.shape));
    }
    if (op == "permute" && inner.op->name == "permute") {
      const auto &outer_order = n.as<ir::OrderAttrs>().order, &inner_order = inner.as<ir::OrderAttrs>().order;
      std::vector<int> order;
      for (const int axis : outer_order) order.push_back(inner_order[static_cast<std::size_t>(axis)]);
      return node(permute(tensor(inner.inputs[0]), order));
    }
    return -1;
  }

  const Graph& from_;
  ops::Builder builder_;
  int exponent_ = 0;
};

}  // namespace

Graph canonicalise(const Graph& graph) { return Canonicaliser(graph).run(); }

}  // namespace tensorgrad::passes
