#include "passes/recognise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "passes/dce.h"
#include "passes/evaluate.h"
#include "passes/rewrite.h"
#include "support/integers.h"
#include "tensorgrad/ops.h"

namespace tensorgrad::passes {

using ir::Core;
using ir::Graph;
using ir::Node;
using ir::NodeId;
using ir::OpId;

namespace {

// A mask hides a score by adding at most this value to it, or by replacing it with at most this
// value.
constexpr double kHidden = -1e9;
// Maximum number of elements computed for a mask: 128 MB, a quarter of a second. A causal mask of
// 2048 queries and keys has fewer.
constexpr std::int64_t kMaskElements = std::int64_t{1} << 24;

// Whether an element of a mask makes a key visible. Empty if the element is neither visible nor
// hidden.
struct Sight {
  bool added = false;  // the mask is added to the scores, times `factor`; otherwise it is a
                       // condition, and keys are visible where it is true if the factor is positive
  double factor = 1;

  std::optional<bool> operator()(double x) const {
    if (!added) return (x != 0) == (factor > 0);
    return x == 0                  ? std::optional(true)
           : x * factor <= kHidden ? std::optional(false)
                                   : std::nullopt;
  }
};

struct Attention {
  NodeId q = -1, k = -1, v = -1;
  bool transposed = false;  // k is [..., D, S]
  double scale = 1;
  bool causal = false;
};

class Recogniser {
 public:
  explicit Recogniser(const Graph& graph) : graph_(graph), uses_(usize(graph.size()), 0) {
    for (const Node& node : graph.nodes)
      for (const NodeId input : node.inputs) ++uses_[usize(input)];
    for (const ir::Result& result : graph.results) ++uses_[usize(result.node)];
  }

  // Returns the attention that this matmul of weights and values belongs to, if it is one.
  std::optional<Attention> find(const Node& product) {
    if (product.op->core != Core::matmul || product.type.shape.rank() > 4 ||
        product.type.shape.count() == 0)
      return {};
    const NodeId weights = product.inputs[0];
    const Node& softmax = graph_[weights];
    const int last = softmax.type.shape.rank() - 1;
    if (!is(softmax, OpId::softmax) || !read_once(weights) ||
        softmax.as<ir::AxisAttrs>().axis != last)
      return {};
    Attention out{.v = product.inputs[1]};
    NodeId at = softmax.inputs[0];
    while (graph_[at].op->core != Core::matmul) {
      if (!read_once(at)) return {};
      const NodeId next = scaled(at, out.scale) ? unscaled(at) : unmasked(at, out);
      if (next < 0) return {};
      at = next;
    }
    if (!read_once(at)) return {};
    out.q = without_scale(graph_[at].inputs[0], out.scale);
    out.k = without_scale(graph_[at].inputs[1], out.scale);
    out.transposed = !swaps(graph_[out.k]);
    if (!out.transposed) out.k = without_scale(graph_[out.k].inputs[0], out.scale);
    out.scale = rounded(out.scale);
    if (graph_[out.q].type.shape.count() == 0 || !(out.scale > 0) || !std::isfinite(out.scale))
      return {};
    return out;
  }

 private:
  bool read_once(NodeId id) const { return uses_[usize(id)] == 1; }

  // Whether the node swaps the last two axes and no others.
  static bool swaps(const Node& node) {
    if (!is(node, OpId::permute)) return false;
    std::vector<int> order = node.as<ir::OrderAttrs>().order;
    std::swap(order[order.size() - 1], order[order.size() - 2]);
    return std::is_sorted(order.begin(), order.end());
  }

  // Whether the node multiplies or divides by a constant. If so, updates `scale`.
  bool scaled(NodeId id, double& scale) const {
    const Node& node = graph_[id];
    const bool product = is(node, OpId::mul);
    if ((!product && !is(node, OpId::div)) || node.type.dtype != DType::f32) return false;
    std::optional<double> by = number(graph_, node.inputs[1]);
    if (product && !by) by = number(graph_, node.inputs[0]);
    if (!by) return false;
    scale = product ? scale * *by : scale / *by;
    return true;
  }
  NodeId unscaled(NodeId id) const {
    const Node& node = graph_[id];
    return number(graph_, node.inputs[1]) ? node.inputs[0] : node.inputs[1];
  }

  // Strips the constant factors from an operand of the scores.
  NodeId without_scale(NodeId id, double& scale) const {
    while (scaled(id, scale)) id = unscaled(id);
    return id;
  }

  // Returns the scores below a mask and sets whether the mask is causal. `to.scale` is applied
  // after the mask. Returns -1 if the node is not a mask, or if the mask is known only at run time.
  NodeId unmasked(NodeId id, Attention& to) {
    const Node& node = graph_[id];
    if (!(to.scale > 0)) return -1;
    if (is(node, OpId::where)) {
      const bool hides = number(graph_, node.inputs[1]).has_value();  // where the condition is true
      const auto fill = number(graph_, node.inputs[hides ? 1 : 2]);
      if (!fill || !(*fill * to.scale <= kHidden)) return -1;
      return puts_on(node.inputs[0], {false, hides ? -1.0 : 1.0}, to) ? node.inputs[hides ? 2 : 1]
                                                                      : -1;
    }
    const bool difference = is(node, OpId::sub);
    if (!difference && !is(node, OpId::add)) return -1;
    const Sight sight{true, difference ? -to.scale : to.scale};
    if (puts_on(node.inputs[1], sight, to)) return node.inputs[0];
    return !difference && puts_on(node.inputs[0], sight, to) ? node.inputs[1] : -1;
  }

  bool puts_on(NodeId mask, const Sight& sight, Attention& to) {
    const auto causal = is_causal(mask, sight);
    to.causal = to.causal || causal.value_or(false);
    return causal.has_value();
  }

  // True if the mask is causal: the last query sees all keys, the one before it all but the last,
  // and so on. False if every query sees all keys; empty for other masks. Layers repeat the same
  // mask, so the answers are cached by the mask's text.
  std::optional<bool> is_causal(NodeId mask, const Sight& sight) {
    const std::int64_t T = graph_[mask].type.shape[-2], S = graph_[mask].type.shape[-1];
    while (is(graph_[mask], OpId::broadcast_to)) mask = graph_[mask].inputs[0];
    Graph part;
    std::map<NodeId, NodeId> renamed;
    std::int64_t elements = 0;
    if (!copy(mask, part, renamed, elements)) return {};
    const auto [known, is_new] = causal_.try_emplace(
        fmt::format("{}{} {} {} {}", ir::print(part), T, S, sight.added, sight.factor));
    if (is_new)
      known->second = is_causal(evaluate(part), part.nodes.back().type.shape, sight, T, S);
    return known->second;
  }
  // The axes of `shape` have size 1 or the size of the axis of the scores.
  static std::optional<bool> is_causal(const std::vector<double>& mask, Shape shape,
                                       const Sight& sight, std::int64_t T, std::int64_t S) {
    while (shape.rank() < 2) shape.insert(0, 1);
    const std::int64_t row = shape[-2] == T ? shape[-1] : 0, column = shape[-1] == S ? 1 : 0;
    bool all = true, causal = S >= T;
    for (std::int64_t page = 0; page < shape.count() && (all || causal);
         page += shape[-2] * shape[-1])
      for (std::int64_t t = 0; t < T; ++t)
        for (std::int64_t s = 0; s < S; ++s) {
          const auto seen = sight(mask[usize(page + t * row + s * column)]);
          if (!seen) return {};
          all = all && *seen;
          causal = causal && *seen == (s <= t + (S - T));
        }
    return all ? std::optional(false) : causal ? std::optional(true) : std::nullopt;
  }

  // Copies the node and everything that it depends on, if these are only constants and positions
  // and the number of elements is below the limit.
  bool copy(NodeId id, Graph& part, std::map<NodeId, NodeId>& renamed,
            std::int64_t& elements) const {
    if (renamed.contains(id)) return true;
    Node node = graph_[id];
    elements += node.type.shape.count();
    if (!can_evaluate(node.op->core) || ir::checks_ids(node) || elements > kMaskElements)
      return false;
    for (const NodeId input : node.inputs)
      if (!copy(input, part, renamed, elements)) return false;
    for (NodeId& input : node.inputs) input = renamed.at(input);
    node.site = 0;
    renamed[id] = part.size();
    part.nodes.push_back(std::move(node));
    return true;
  }

  const Graph& graph_;
  std::vector<int> uses_;
  std::map<std::string, std::optional<bool>> causal_;  // by the mask's text and how it is used
};

// Reshapes [..., T, D] to four axes.
Tensor with_heads(const Tensor& t) {
  Shape shape = t.shape();
  while (shape.rank() < 4) shape.insert(shape.rank() - 2, 1);
  return reshape(t, shape);
}

// Returns k or v as [B, G, S, D] if it is written as [B, H, S, D] with each group repeated for its
// heads: a view of [B, G, 1, S, D]. Returns an invalid Tensor if nothing is repeated.
Tensor of_groups(const Rewriter& rewriter, const Tensor& t) {
  const Graph& graph = rewriter.graph();
  const Node& heads = graph[Rewriter::node(t)];
  if (!is(heads, OpId::reshape)) return {};
  const Node& repeated = graph[heads.inputs[0]];
  if (!is(repeated, OpId::broadcast_to) || repeated.type.shape.rank() != 5) return {};
  const Shape to = repeated.type.shape;
  const Tensor from = rewriter.tensor(repeated.inputs[0]);
  if (from.shape() != Shape{to[0], to[1], 1, to[3], to[4]}) return {};
  if (heads.type.shape != Shape{to[0], to[1] * to[2], to[3], to[4]}) return {};
  return reshape(from, {to[0], to[1], to[3], to[4]});
}

Tensor written_as_attention(const Attention& a, const Rewriter& rewriter,
                            const std::vector<NodeId>& renamed) {
  const auto tensor = [&](NodeId id) { return rewriter.tensor(renamed[usize(id)]); };
  const Tensor q = tensor(a.q), v = tensor(a.v),
               k = a.transposed ? swap_axes(tensor(a.k), -1, -2) : tensor(a.k);
  const AttentionOptions options{.causal = a.causal, .scale = static_cast<float>(a.scale)};
  const Tensor keys = of_groups(rewriter, k), values = of_groups(rewriter, v);
  if (keys.valid() && values.valid() && keys.size(1) == values.size(1))
    return attention(q, keys, values, options);
  // Separate statements, because the evaluation order of arguments is unspecified and the graph
  // must not depend on it.
  const Tensor query = with_heads(q), key = with_heads(k), value = with_heads(v);
  return attention(query, key, value, options);
}

// Removes the nodes that a result needed before and that no result needs now.
Graph without_leftovers(const Graph& graph, const Graph& before,
                        const std::vector<NodeId>& renamed) {
  std::vector<bool> kept = ir::live_nodes(graph);
  const std::vector<bool> needed = ir::live_nodes(before);
  for (std::size_t id = 0; id < renamed.size(); ++id)
    if (!needed[id]) kept[usize(renamed[id])] = true;
  // A node that no result ever needed may read such a node.
  for (NodeId id = graph.size() - 1; id >= 0; --id)
    if (kept[usize(id)])
      for (const NodeId input : graph[id].inputs) kept[usize(input)] = true;
  return keep(graph, kept);
}

}  // namespace

Graph recognise_attention(Graph graph) {
  Recogniser recogniser(graph);
  Rewriter rewriter;
  std::vector<NodeId> renamed;
  bool found = false;
  const Graph made = rewriter.run(graph, [&](const Node& node) -> NodeId {
    const auto written_out = recogniser.find(graph[static_cast<NodeId>(renamed.size())]);
    renamed.push_back(rewriter.graph().size());
    if (!written_out) return -1;
    found = true;
    const Tensor out = written_as_attention(*written_out, rewriter, renamed);
    return renamed.back() = Rewriter::node(reshape(out, node.type.shape));
  });
  return found ? without_leftovers(made, graph, renamed) : graph;
}

}  // namespace tensorgrad::passes
