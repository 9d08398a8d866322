#include "passes/products.h"

#include <map>

#include "passes/rewrite.h"
#include "support/integers.h"
#include "tensorgrad/ops.h"

namespace tensorgrad::passes {

using ir::Graph;
using ir::Node;
using ir::NodeId;
using ir::OpId;

namespace {

// The matmul of columns [begin, begin + count * K) of `left` [M, ...] with `count` matrices [N, K]
// of the flat tensor `right`, starting at `offset`, each transposed.
struct Term {
  NodeId left = -1, right = -1;
  std::int64_t begin = 0, offset = 0, count = 1, K = 0, N = 0;

  // Whether `next` starts where this term ends, in both operands.
  bool meets(const Term& next) const {
    return left == next.left && right == next.right && K == next.K && N == next.N &&
           begin + count * K == next.begin && offset + count * N * K == next.offset;
  }
};

class Products {
 public:
  Products(const Graph& from, const ir::DeviceModel& model)
      : model_(model), uses_(usize(from.size()), 0) {
    for (const Node& node : from.nodes)
      for (const NodeId input : node.inputs) ++uses_[usize(input)];
    for (const ir::Result& result : from.results) ++uses_[usize(result.node)];
  }

  Graph run(Graph from) {
    return rewriter_.run(std::move(from), [&](const Node& n) {
      const NodeId id = next_++;
      const NodeId made = is(n, OpId::add) ? joined(n) : -1;
      if (made < 0)
        read_once_[graph().size()] = uses_[usize(id)] == 1;
      else
        read_once_[made] = uses_[usize(id)] == 1;
      return made;
    });
  }

 private:
  const Graph& graph() { return rewriter_.graph(); }

  NodeId joined(const Node& sum) {
    Term a, b;
    if (!find(sum.inputs[0], a) || !find(sum.inputs[1], b)) return -1;
    if (b.meets(a)) std::swap(a, b);
    if (!a.meets(b) || model_.apart.contains(2 * sum.type.shape.count() * a.K)) return -1;
    a.count += b.count;
    const Tensor left = narrow(rewriter_.tensor(a.left), 1, a.begin, a.count * a.K);
    const Tensor stored = reshape(
        narrow(rewriter_.tensor(a.right), 0, a.offset, a.count * a.N * a.K), {a.count, a.N, a.K});
    const Tensor right = reshape(permute(stored, {0, 2, 1}), {a.count * a.K, a.N});
    const Tensor product = matmul(left, right);
    terms_[Rewriter::node(product)] = a;
    read_once_[Rewriter::node(product)] = true;
    return Rewriter::node(reshape(product, sum.type.shape));
  }

  // Whether the node is such a matmul, in any shape, with only one reader.
  bool find(NodeId id, Term& out) {
    while (is(graph()[id], OpId::reshape)) {
      if (!read_once_[id]) return false;
      id = graph()[id].inputs[0];
    }
    if (const auto known = terms_.find(id); known != terms_.end()) {
      out = known->second;
      return read_once_[id];
    }
    if (graph()[id].op->core != ir::Core::matmul || !read_once_[id]) return false;
    const Node &left = graph()[graph()[id].inputs[0]], &transposed = graph()[graph()[id].inputs[1]];
    if (!is(left, OpId::narrow) || left.type.shape.rank() != 2 ||
        left.as<ir::NarrowAttrs>().axis != 1)
      return false;
    if (!is(transposed, OpId::permute) ||
        transposed.as<ir::OrderAttrs>().order != std::vector<int>{1, 0})
      return false;
    const Node& matrix = graph()[transposed.inputs[0]];
    if (!is(matrix, OpId::reshape)) return false;
    const Node& stretch = graph()[matrix.inputs[0]];
    if (!is(stretch, OpId::narrow) || stretch.type.shape.rank() != 1) return false;
    out = {.left = left.inputs[0],
           .right = stretch.inputs[0],
           .begin = left.as<ir::NarrowAttrs>().start,
           .offset = stretch.as<ir::NarrowAttrs>().start,
           .count = 1,
           .K = transposed.type.shape[0],
           .N = transposed.type.shape[1]};
    return true;
  }

  const ir::DeviceModel& model_;
  std::vector<int> uses_;
  Rewriter rewriter_;
  NodeId next_ = 0;
  std::map<NodeId, bool> read_once_;  // nodes of the new graph with one reader
  std::map<NodeId, Term> terms_;      // the matmuls created by this pass
};

}  // namespace

Graph products(Graph graph, const ir::DeviceModel& model) {
  return Products(graph, model).run(std::move(graph));
}

}  // namespace tensorgrad::passes
