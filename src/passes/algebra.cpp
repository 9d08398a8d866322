#include "passes/algebra.h"

#include <cmath>
#include <limits>

#include "passes/rewrite.h"
#include "tensorgrad/ops.h"

namespace tensorgrad::passes {

using ir::Core;
using ir::Graph;
using ir::Node;
using ir::NodeId;
using ir::OpId;

namespace {

class Algebra {
 public:
  Graph run(Graph graph) {
    return rewriter_.run(std::move(graph), [&](const Node& n) { return simpler(n); });
  }

 private:
  Tensor tensor(NodeId id) const { return rewriter_.tensor(id); }
  const Graph& graph() { return rewriter_.graph(); }

  NodeId simpler(const Node& n) {
    if (n.op->core == Core::reduce) {
      const Shape& shape = graph()[n.inputs[0]].type.shape;
      const bool nothing = shape.count() == n.type.shape.count() && shape.count() > 0;
      return nothing ? Rewriter::node(reshape(tensor(n.inputs[0]), n.type.shape)) : -1;
    }
    if (is(n, OpId::where)) {
      const auto choice = rewriter_.number(n.inputs[0]);
      return choice ? n.inputs[*choice != 0 ? 1 : 2] : -1;
    }
    if (is(n, OpId::neg) && graph()[n.inputs[0]].op == n.op) return graph()[n.inputs[0]].inputs[0];
    if (n.type.dtype != DType::f32 || n.op->core != Core::elementwise || n.inputs.size() != 2)
      return -1;
    if (is(n, OpId::mul)) return product(n);
    if (is(n, OpId::div)) return quotient(n);
    if (is(n, OpId::add)) return sum(n);
    if (is(n, OpId::sub) && rewriter_.number(n.inputs[1]) == 0.0) return n.inputs[0];
    return -1;
  }

  NodeId product(const Node& n) {
    const NodeId a = n.inputs[0], b = n.inputs[1];
    const auto x = rewriter_.number(a), y = rewriter_.number(b);
    if (y == 1.0) return a;
    if (x == 1.0) return b;
    if (x && !y) return again(n, b, *x);
    return y ? chained(n, a, *y) : -1;
  }

  NodeId quotient(const Node& n) {
    const auto y = rewriter_.number(n.inputs[1]);
    if (!y) return -1;
    if (*y == 1) return n.inputs[0];
    // A power of two has an exact reciprocal.
    int exponent = 0;
    const bool exact =
        *y != 0 && std::isfinite(rounded(1 / *y)) && std::abs(std::frexp(*y, &exponent)) == 0.5;
    return exact ? Rewriter::node(tensor(n.inputs[0]) * (1 / *y)) : -1;
  }

  NodeId sum(const Node& n) {
    const NodeId a = n.inputs[0], b = n.inputs[1];
    const auto x = rewriter_.number(a), y = rewriter_.number(b);
    if (y == 0.0) return a;
    if (x == 0.0) return b;
    if (x && !y) return again(n, b, *x);
    return y ? chained(n, a, *y) : -1;
  }

  // Returns the same op with the constant as its right operand.
  NodeId again(const Node& n, NodeId a, double number) {
    const NodeId chain = chained(n, a, number);
    return chain >= 0 ? chain : with_number(n, a, number);
  }

  NodeId with_number(const Node& n, NodeId a, double number) {
    return Rewriter::node(is(n, OpId::mul) ? tensor(a) * number : tensor(a) + number);
  }

  // (t * c) * y = t * (c * y), (t + c) + y = t + (c + y)
  NodeId chained(const Node& n, NodeId a, double y) {
    const Node& inner = graph()[a];
    if (inner.op != n.op) return -1;
    const auto c = rewriter_.number(inner.inputs[1]);
    if (!c) return -1;
    if (is(n, OpId::mul)) {
      // Skip this if the combined factor leaves the range of f32: the two separate factors may stay
      // inside.
      const double together = rounded(*c * y);
      const bool safe =
          std::isfinite(together) && std::abs(together) >= std::numeric_limits<float>::min();
      return safe ? with_number(n, inner.inputs[0], together) : -1;
    }
    // Only for offsets of the same sign: otherwise bits that one offset absorbs would come back.
    const double together = rounded(*c + y);
    return *c * y > 0 && std::isfinite(together) ? with_number(n, inner.inputs[0], together) : -1;
  }

  Rewriter rewriter_;
};

}  // namespace

Graph algebra(Graph graph) { return Algebra().run(std::move(graph)); }

}  // namespace tensorgrad::passes
