#include "schedule/fuse.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "ir/primitive.h"
#include "support/fail.h"

namespace tensorgrad::schedule {

using ir::Core;
using ir::Graph;
using ir::IndexMap;
using ir::Node;
using ir::NodeId;

namespace {

constexpr std::size_t kMostNodes = 96;  // of a group, so that programs stay readable

std::size_t at(NodeId id) { return static_cast<std::size_t>(id); }
std::size_t at(int group, int) { return static_cast<std::size_t>(group); }

// Which groups a group needs, directly or not.
class Needs {
 public:
  int add() {
    for (auto& row : rows_) row.push_back(false);
    rows_.emplace_back(rows_.size() + 1, false);
    return static_cast<int>(rows_.size()) - 1;
  }
  bool needs(int group, int other) const { return rows_[at(group, 0)][at(other, 0)]; }
  // `group` now needs `other` and all that it needs; so does everything that needs `group`.
  void link(int group, int other) {
    if (group == other || needs(group, other)) return;
    std::vector<bool> more = rows_[at(other, 0)];
    more[at(other, 0)] = true;
    for (std::size_t g = 0; g < rows_.size(); ++g)
      if (static_cast<int>(g) == group || rows_[g][at(group, 0)])
        for (std::size_t i = 0; i < more.size(); ++i) rows_[g][i] = rows_[g][i] || more[i];
  }
  // `from` is gone: what it needed, `into` needs; whoever needed it needs `into`.
  void merge(int into, int from) {
    const std::vector<bool> needed = rows_[at(from, 0)];
    std::vector<int> needing;
    for (std::size_t g = 0; g < rows_.size(); ++g) {
      if (rows_[g][at(from, 0)] && static_cast<int>(g) != into) needing.push_back(static_cast<int>(g));
      rows_[g][at(from, 0)] = false;
    }
    rows_[at(from, 0)].assign(rows_.size(), false);
    for (std::size_t i = 0; i < rows_.size(); ++i)
      if (needed[i] && static_cast<int>(i) != into) link(into, static_cast<int>(i));
    for (const int g : needing) link(g, into);
  }

 private:
  std::vector<std::vector<bool>> rows_;
};

// Whether a value per line, seen through the map, is the same along each row.
bool spreads_lines(const IndexMap& map, std::int64_t lines, std::int64_t length) {
  if (map.shape().count() != lines * length || lines * length == 0) return false;
  const IndexMap two = map.reshape({lines, length});
  return two.is_strided() && two.layers()[0].address.offset == 0 && (lines == 1 || two.stride(0) == 1) &&
         (length == 1 || two.stride(1) == 0);
}

bool costly(const Node& node) {
  static constexpr std::string_view kCostly[] = {"exp", "expm1", "log", "log1p", "sin", "cos", "tanh",
                                                 "sigmoid", "erf", "pow", "random", "sqrt", "rsqrt", "gelu",
                                                 "gelu_tanh", "silu"};
  return std::find(std::begin(kCostly), std::end(kCostly), node.op->name) != std::end(kCostly);
}

// Operands that must lie in memory: what ids point into, and what kernels of one node read.
bool reads_memory(Core core, std::size_t index) {
  switch (core) {
    case Core::gather:
    case Core::take: return index == 0;
    case Core::segment_sum:
    case Core::scatter_add:
    case Core::fold: return true;
    default: return false;
  }
}

bool checks_ids(const Node& node) {
  switch (node.op->core) {
    case Core::gather:
    case Core::take:
    case Core::segment_sum:
    case Core::scatter_add: return true;
    default: return std::holds_alternative<ir::CheckAttrs>(node.attrs);
  }
}

class Fuser {
 public:
  Fuser(const Graph& graph, const FuseOptions& options) : graph_(graph), options_(options) {}

  Fused run() {
    const auto n = at(graph_.size());
    out_.group.assign(n, -1);
    out_.inlined.assign(n, false);
    out_.line.assign(n, false);
    out_.product.assign(n, -1);
    held_.assign(n, false);
    uses_.assign(n, 0);
    out_.joined.assign(n, false);
    std::vector<bool> live = ir::live_nodes(graph_);
    operands_.resize(n);
    for (const ir::Result& result : graph_.results) held_[at(base_of(graph_, result.node))] = true;
    if (options_.enabled) {
      find_numbers(live);
      find_joined();
    }
    // Neither numbers nor joined parts are computed as nodes of their own.
    for (NodeId id = 0; id < graph_.size(); ++id)
      if (out_.inlined[at(id)] || out_.joined[at(id)]) live[at(id)] = false;
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (!live[at(id)] || !computes(graph_[id])) continue;
      for (const NodeId input : graph_[id].inputs) {
        operands_[at(id)].push_back(operand_of(graph_, input));
        ++uses_[at(operands_[at(id)].back().base)];
      }
    }
    for (NodeId id = 0; id < graph_.size(); ++id)
      if (live[at(id)] && computes(graph_[id])) place(id);
    if (options_.enabled) {
      evict_from_products();
      inline_producers();
      merge_rows();
      merge_side_by_side();
      ride_with_products();
    }
    order();
    return std::move(out_);
  }

 private:
  Group& group(int g) { return out_.groups[at(g, 0)]; }
  std::int64_t count(NodeId id) const { return graph_[id].type.shape.count(); }

  // Elementwise work on positions and numbers alone (masks, mostly) reads no memory: it is cheaper
  // to do again wherever it is wanted.
  void find_numbers(const std::vector<bool>& live) {
    std::vector<bool> in_memory(at(graph_.size()), false);
    for (NodeId id = 0; id < graph_.size(); ++id) {
      const Node& node = graph_[id];
      for (std::size_t i = 0; live[at(id)] && computes(node) && i < node.inputs.size(); ++i) {
        const Operand seen = operand_of(graph_, node.inputs[i]);
        bool padded = false;  // the fill is for the value, not for what it is made of
        for (const ir::Layer& layer : seen.map.layers()) padded = padded || !layer.guards.empty();
        if (padded || reads_memory(node.op->core, i)) in_memory[at(seen.base)] = true;
      }
    }
    std::vector<int> work(at(graph_.size()), 0);
    for (NodeId id = 0; id < graph_.size(); ++id) {
      const Node& node = graph_[id];
      if (!live[at(id)] || node.op->core != Core::elementwise || held_[at(id)] || in_memory[at(id)] || costly(node)) continue;
      int total = 1;
      bool numbers = true;
      for (const NodeId input : node.inputs) {
        const NodeId base = base_of(graph_, input);
        const Core core = graph_[base].op->core;
        numbers = numbers && (core == Core::constant || core == Core::iota || out_.inlined[at(base)]);
        total += work[at(base)];
      }
      if (!numbers || total > 8) continue;
      work[at(id)] = total;
      out_.inlined[at(id)] = true;
    }
  }

  // The flat gradient: every part is itself a gradient that is kept, and they lie side by side.
  void find_joined() {
    const NodeId flat = graph_.find(ir::Result::Kind::gradient, ir::kFlat);
    if (flat < 0 || graph_[flat].op->core != Core::concat) return;
    std::vector<NodeId> bases;
    for (const NodeId part : graph_[flat].inputs) {
      if (count(part) == 0) continue;
      NodeId id = part;
      if (graph_[id].op->name == "pad") id = graph_[id].inputs[0];
      const NodeId base = base_of(graph_, id);
      const bool kept = std::any_of(graph_.results.begin(), graph_.results.end(), [&](const ir::Result& r) {
        return r.kind == ir::Result::Kind::gradient && r.node != flat && base_of(graph_, r.node) == base;
      });
      if (!kept || !is_alias(graph_, id) || !computes(graph_[base]) || out_.inlined[at(base)]) return;
      if (std::find(bases.begin(), bases.end(), base) != bases.end()) return;
      bases.push_back(base);
    }
    out_.joined[at(flat)] = true;
  }

  // The groups whose memory is read with an operand.
  template <class F>
  void each_source(const Operand& operand, F f) const {
    if (out_.joined[at(operand.base)]) {
      for (const NodeId part : graph_[operand.base].inputs) f(out_.group[at(base_of(graph_, part))]);
    } else {
      f(out_.group[at(operand.base)]);
    }
  }

  // Whether the operand is joined memory that the group writes a part of: it must be written whole
  // before anybody reads it.
  bool reads_joined_part(const Operand& operand, int g) const {
    bool own = false;
    if (out_.joined[at(operand.base)]) each_source(operand, [&](int source) { own = own || source == g; });
    return own;
  }

  // ---- consumers join the group of a producer

  void place(NodeId id) {
    int best = -1;
    if (options_.enabled) {
      for (const Operand& operand : operands_[at(id)]) {
        const int g = out_.group[at(operand.base)];
        if (g < 0 || g == best || !may_join(id, g)) continue;
        if (best < 0 || rank(g) > rank(best) || (rank(g) == rank(best) && g > best)) best = g;
      }
    }
    if (best < 0) best = start(id);
    else join(id, best);
    for (const Operand& operand : operands_[at(id)])
      each_source(operand, [&](int g) {
        if (g >= 0) needs_.link(best, g);
      });
  }

  int rank(int g) { return group(g).kind == Group::Kind::matmul ? 2 : group(g).reduces ? 1 : 0; }

  int start(NodeId id) {
    Group made;
    made.nodes = {id};
    made.lines = 1, made.length = count(id);
    switch (graph_[id].op->core) {
      case Core::elementwise:
      case Core::gather:
      case Core::take:
      case Core::concat: made.kind = Group::Kind::rows; break;
      case Core::matmul:
        made.kind = Group::Kind::matmul;
        out_.product[at(id)] = id;
        break;
      case Core::reduce: {
        const ReduceShape shape = reduce_shape(graph_, id);
        made.kind = shape.along_rows ? Group::Kind::rows : Group::Kind::columns;
        made.lines = shape.lines, made.length = shape.length;
        made.reduces = true;
        out_.line[at(id)] = true;
        break;
      }
      default: break;
    }
    out_.groups.push_back(std::move(made));
    out_.group[at(id)] = needs_.add();
    return out_.group[at(id)];
  }

  void join(NodeId id, int g) {
    Group& to = group(g);
    if (graph_[id].op->core == Core::reduce) {
      const ReduceShape shape = reduce_shape(graph_, id);
      to.lines = shape.lines, to.length = shape.length;
      to.reduces = true;
      out_.line[at(id)] = true;
    } else if (to.kind == Group::Kind::matmul) {
      for (const Operand& operand : operands_[at(id)])
        if (out_.group[at(operand.base)] == g) out_.product[at(id)] = out_.product[at(operand.base)];
    } else if (to.reduces) {
      out_.line[at(id)] = to.kind == Group::Kind::columns || count(id) == to.lines;
    }
    to.nodes.push_back(id);
    out_.group[at(id)] = g;
  }

  bool may_join(NodeId id, int g) {
    const Group& to = group(g);
    if (to.kind == Group::Kind::single || to.nodes.size() >= kMostNodes || count(id) == 0) return false;
    const Core core = graph_[id].op->core;
    bool fits = false;
    // A comparison is cheaper to make where it is read than to keep.
    if (core == Core::elementwise && graph_[id].type.dtype == DType::boolean && count(id) > 1) return false;
    if (core == Core::elementwise) {
      fits = to.kind == Group::Kind::matmul ? joins_product(id, g) : joins_lines(id, g);
    } else if (core == Core::reduce && to.kind == Group::Kind::rows) {
      fits = reduction_joins(id, g);
    }
    if (!fits) return false;
    // Nothing else it reads may need that group.
    bool free = true;
    for (const Operand& operand : operands_[at(id)])
      each_source(operand, [&](int other) {
        if (other >= 0 && other != g && needs_.needs(other, g)) free = false;
      });
    for (const Operand& operand : operands_[at(id)]) free = free && !reads_joined_part(operand, g);
    return free;
  }

  bool alias(const Operand& operand, std::int64_t elements) const {
    return count(operand.base) == elements && operand.map.shape().count() == elements && operand.map.is_contiguous();
  }

  bool joins_product(NodeId id, int g) {
    NodeId product = -1;
    for (const Operand& operand : operands_[at(id)]) {
      if (out_.group[at(operand.base)] != g) continue;
      if (!alias(operand, count(id))) return false;
      if (product >= 0 && product != out_.product[at(operand.base)]) return false;
      product = out_.product[at(operand.base)];
    }
    return product >= 0;
  }

  bool joins_lines(NodeId id, int g) {
    const Group& to = group(g);
    const bool columns = to.kind == Group::Kind::columns;
    const bool as_line = to.reduces && count(id) == to.lines && (columns || to.length > 1);
    const bool as_element = !columns && count(id) == to.lines * to.length;
    if (!as_line && !as_element) return false;
    // Long rows are walked once: nothing of their size may come after the reduction.
    if (!as_line && to.reduces && to.length > kLongestRow) return false;
    for (const Operand& operand : operands_[at(id)]) {
      if (out_.group[at(operand.base)] != g) continue;
      const bool from_line = out_.line[at(operand.base)];
      if (as_line ? !from_line : false) return false;
      if (!as_line && from_line) {
        if (!spreads_lines(operand.map, to.lines, to.length)) return false;
      } else if (!alias(operand, count(id))) {
        return false;
      }
    }
    return true;
  }

  bool reduction_joins(NodeId id, int g) {
    const Group& to = group(g);
    const ReduceShape shape = reduce_shape(graph_, id);
    const Operand& operand = operands_[at(id)][0];
    if (!shape.along_rows || shape.length < 2 || shape.length > kLongestRow) return false;
    if (to.reduces && (to.lines != shape.lines || to.length != shape.length)) return false;
    return shape.lines * shape.length == to.lines * to.length && !out_.line[at(operand.base)] &&
           alias(operand, to.lines * to.length);
  }

  // ---- work that is better done where it is read

  // Elementwise work on a product that is kept anyway, read only by rows and columns, would be one
  // more tensor in memory: it leaves the product's group.
  void evict_from_products() {
    std::vector<std::vector<NodeId>> users(at(graph_.size()));
    for (NodeId id = 0; id < graph_.size(); ++id)
      for (const Operand& operand : operands_[at(id)]) users[at(operand.base)].push_back(id);
    const int n = static_cast<int>(out_.groups.size());
    for (int g = 0; g < n; ++g) {
      if (group(g).kind != Group::Kind::matmul) continue;
      const std::vector<NodeId> nodes = group(g).nodes;
      for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) {
        const NodeId id = *it;
        if (graph_[id].op->core != Core::elementwise || held_[at(id)] || users[at(id)].empty()) continue;
        const bool read_by_rows = std::all_of(users[at(id)].begin(), users[at(id)].end(), [&](NodeId user) {
          const Core core = graph_[user].op->core;
          return out_.group[at(user)] != g && group(out_.group[at(user)]).kind != Group::Kind::matmul &&
                 (core == Core::elementwise || core == Core::reduce);
        });
        const bool kept_anyway = std::all_of(operands_[at(id)].begin(), operands_[at(id)].end(), [&](const Operand& o) {
          if (out_.group[at(o.base)] != g || held_[at(o.base)]) return true;
          return std::any_of(users[at(o.base)].begin(), users[at(o.base)].end(),
                             [&](NodeId user) { return user != id && out_.group[at(user)] != g; });
        });
        if (!read_by_rows || !kept_anyway) continue;
        auto& left = group(g).nodes;
        left.erase(std::find(left.begin(), left.end(), id));
        out_.product[at(id)] = -1;
        const int own = start(id);
        needs_.link(own, g);
        for (const Operand& operand : operands_[at(id)])
          each_source(operand, [&](int source) {
            if (source >= 0) needs_.link(own, source);
          });
        for (const NodeId user : users[at(id)]) needs_.link(out_.group[at(user)], own);
      }
    }
  }

  // ---- producers move into the one group that reads them

  // An elementwise group with one reader: its work is done where it is read.
  void inline_producers() {
    for (int g = static_cast<int>(out_.groups.size()) - 1; g >= 0; --g) {
      Group& from = group(g);
      if (from.kind != Group::Kind::rows || from.reduces || from.nodes.empty()) continue;
      NodeId sink = -1;
      bool fits = true;
      for (const NodeId id : from.nodes) {
        if (graph_[id].op->core != Core::elementwise || held_[at(id)]) fits = false;
        int inside = 0;
        for (const NodeId other : from.nodes)
          for (const Operand& operand : operands_[at(other)]) inside += operand.base == id;
        if (inside == uses_[at(id)]) continue;
        if (sink >= 0 || uses_[at(id)] - inside != 1) fits = false;
        sink = id;
      }
      if (!fits || sink < 0) continue;
      const auto [reader, index] = reader_of(sink, g);
      if (reader < 0 || !takes_program(reader, index, from)) continue;
      const int to = out_.group[at(reader)];
      if (group(to).nodes.size() + from.nodes.size() > kMostNodes) continue;
      needs_.merge(to, g);
      for (const NodeId id : from.nodes) {
        out_.inlined[at(id)] = true;
        out_.group[at(id)] = to;
      }
      Group& into = group(to);
      into.nodes.insert(into.nodes.begin(), from.nodes.begin(), from.nodes.end());
      std::sort(into.nodes.begin(), into.nodes.end());
      from.nodes.clear();
    }
  }

  std::pair<NodeId, std::size_t> reader_of(NodeId id, int own) const {
    for (NodeId other = id + 1; other < graph_.size(); ++other) {
      if (out_.group[at(other)] == own) continue;
      for (std::size_t i = 0; i < operands_[at(other)].size(); ++i)
        if (operands_[at(other)][i].base == id) return {other, i};
    }
    return {-1, 0};
  }

  bool takes_program(NodeId reader, std::size_t index, const Group& from) {
    const Operand& operand = operands_[at(reader)][index];
    for (const ir::Layer& layer : operand.map.layers())
      if (!layer.guards.empty()) return false;  // a pad fills with its own value
    if (operand.map.shape().count() != count(operand.base)) return false;  // computed once, not repeated
    const bool cheap = from.nodes.size() <= 4 && std::none_of(from.nodes.begin(), from.nodes.end(), [&](NodeId id) {
                         return costly(graph_[id]);
                       });
    if (out_.inlined[at(reader)] && group(out_.group[at(reader)]).kind == Group::Kind::matmul && !cheap) return false;
    switch (graph_[reader].op->core) {
      case Core::elementwise:
      case Core::concat:
      case Core::reduce:
      case Core::arg_reduce:
      case Core::scan: return true;
      case Core::gather:
      case Core::take: return index == 1;
      case Core::matmul: {
        // Packing computes it again for every tile of the other operand.
        const Shape& shape = graph_[reader].type.shape;
        const std::int64_t again = index == 0 ? shape[-1] : shape[-2];
        return again <= 128 || cheap;
      }
      default: return false;
    }
  }

  // ---- whole groups of rows, one after the other or side by side

  // Two groups of rows as one: whether the members of each are lines then, and of which rows.
  struct Merged {
    std::int64_t lines = 1, length = 1;
    bool reduces = false, a_lines = false, b_lines = false;
  };

  bool merged_shape(const Group& a, const Group& b, Merged& out) const {
    const std::int64_t count_a = a.lines * a.length, count_b = b.lines * b.length;
    const Group& shaped = a.reduces ? a : b;
    out.lines = shaped.lines, out.length = shaped.length, out.reduces = a.reduces || b.reduces;
    if (!out.reduces) return count_a == count_b;
    if (out.length < 2 && (!a.reduces || !b.reduces)) return false;
    if (a.reduces && b.reduces) return a.lines == b.lines && a.length == b.length && out.length <= kLongestRow;
    const std::int64_t flat = a.reduces ? count_b : count_a;
    const bool as_lines = flat == out.lines;
    if (!as_lines && (flat != out.lines * out.length || out.length > kLongestRow)) return false;
    (a.reduces ? out.b_lines : out.a_lines) = as_lines;
    return true;
  }

  bool plain_rows(const Group& g) const {
    return g.kind == Group::Kind::rows && !g.nodes.empty() &&
           std::all_of(g.nodes.begin(), g.nodes.end(), [&](NodeId id) {
             return graph_[id].op->core == Core::elementwise || graph_[id].op->core == Core::reduce;
           });
  }

  // Every value that passes between the two does so element by element, or from a line to its row.
  bool edges_fit(int a, int b, const Merged& m) const {
    for (const auto& [from, to, from_lines, to_lines] :
         {std::tuple(a, b, m.a_lines, m.b_lines), std::tuple(b, a, m.b_lines, m.a_lines)}) {
      for (const NodeId id : out_.groups[at(to, 0)].nodes) {
        for (const Operand& operand : operands_[at(id)]) {
          if (reads_joined_part(operand, from)) return false;
          if (out_.group[at(operand.base)] != from || out_.inlined[at(operand.base)]) continue;
          const NodeId reader = final_reader(id);
          if (reader < 0) return false;
          const bool reduces = graph_[reader].op->core == Core::reduce;
          const bool line_from = out_.line[at(operand.base)] || from_lines;
          const bool line_to = !(reduces && reader != id) && (out_.line[at(reader)] || to_lines);
          if (line_from == line_to || (reduces && reader == id && !line_from)) {
            if (!alias(operand, line_from ? m.lines : m.lines * m.length)) return false;
          } else if (!line_from || (reduces && reader == id) || !spreads_lines(operand.map, m.lines, m.length)) {
            return false;
          }
        }
      }
    }
    return true;
  }

  // The member that an inlined node is computed for, if it is seen there as it is; -1 otherwise.
  NodeId final_reader(NodeId id) const {
    while (out_.inlined[at(id)]) {
      const auto [reader, index] = reader_of(id, -1);
      if (reader < 0 || !alias(operands_[at(reader)][index], count(id))) return -1;
      id = reader;
    }
    return id;
  }

  bool reads(int b, int a) const {
    for (const NodeId id : out_.groups[at(b, 0)].nodes)
      for (const Operand& operand : operands_[at(id)])
        if (out_.group[at(operand.base)] == a) return true;
    return false;
  }

  // No third group stands between the two.
  bool adjacent(int a, int b) const {
    for (int x = 0; x < static_cast<int>(out_.groups.size()); ++x) {
      if (x == a || x == b || out_.groups[at(x, 0)].nodes.empty()) continue;
      if ((needs_.needs(b, x) && needs_.needs(x, a)) || (needs_.needs(a, x) && needs_.needs(x, b))) return false;
    }
    return true;
  }

  void merge_rows() {
    const int n = static_cast<int>(out_.groups.size());
    for (bool again = true; again;) {
      again = false;
      for (int a = 0; a < n; ++a) {
        if (!plain_rows(group(a))) continue;
        for (int b = a + 1; b < n; ++b) {
          if (!plain_rows(group(b)) || group(a).nodes.size() + group(b).nodes.size() > kMostNodes) continue;
          Merged m;
          if (!merged_shape(group(a), group(b), m)) continue;
          const bool single = m.lines == 1 && (m.length == 1 || ((group(a).reduces || m.a_lines) && (group(b).reduces || m.b_lines)));
          const bool side_by_side = single && !(group(a).reduces && group(b).reduces);
          if (!reads(b, a) && !reads(a, b) && !side_by_side) continue;
          if (!edges_fit(a, b, m) || !adjacent(a, b)) continue;
          for (const NodeId id : group(a).nodes) out_.line[at(id)] = out_.line[at(id)] || m.a_lines;
          for (const NodeId id : group(b).nodes) out_.line[at(id)] = out_.line[at(id)] || m.b_lines;
          absorb(a, b);
          group(a).lines = m.lines, group(a).length = m.length, group(a).reduces = m.reduces;
          again = true;
        }
      }
    }
  }

  // ---- groups of one shape side by side

  bool independent(int a, int b) const { return !needs_.needs(a, b) && !needs_.needs(b, a); }

  bool shares_operand(const Group& a, const Group& b) const {
    for (const NodeId x : a.nodes)
      for (const Operand& p : operands_[at(x)])
        for (const NodeId y : b.nodes)
          for (const Operand& q : operands_[at(y)])
            if (p.base == q.base && graph_[p.base].op->core != Core::constant && count(p.base) > 1) return true;
    return false;
  }

  // Which axes are reduced must agree, for the rows of a columns kernel to be the same ones.
  bool same_lines(const Group& a, const Group& b) const {
    if (a.kind != b.kind || a.lines != b.lines || a.length != b.length || !a.reduces || !b.reduces) return false;
    if (a.kind == Group::Kind::rows) return a.length > kLongestRow || a.lines == 1;
    const auto order_of = [&](const Group& g) {
      for (const NodeId id : g.nodes)
        if (graph_[id].op->core == Core::reduce)
          return std::make_pair(reduce_shape(graph_, id).order, graph_[graph_[id].inputs[0]].type.shape);
      return std::make_pair(std::vector<int>{}, Shape{});
    };
    return order_of(a) == order_of(b);
  }

  bool same_left(const Group& a, const Group& b) const {
    if (a.kind != Group::Kind::matmul || b.kind != Group::Kind::matmul) return false;
    const NodeId x = first_product(a), y = first_product(b);
    const Operand &p = operands_[at(x)][0], &q = operands_[at(y)][0];
    return p.base == q.base && p.map == q.map && !out_.inlined[at(p.base)];
  }

  NodeId first_product(const Group& g) const {
    for (const NodeId id : g.nodes)
      if (graph_[id].op->core == Core::matmul) return id;
    return -1;
  }

  void merge_side_by_side() {
    const int n = static_cast<int>(out_.groups.size());
    for (int a = 0; a < n; ++a) {
      for (int b = a + 1; b < n; ++b) {
        Group &into = group(a), &from = group(b);
        if (into.nodes.empty() || from.nodes.empty() || into.nodes.size() + from.nodes.size() > kMostNodes) continue;
        const bool alike = same_left(into, from) || (same_lines(into, from) && shares_operand(into, from));
        if (!alike || !independent(a, b)) continue;
        absorb(a, b);
      }
    }
  }

  void absorb(int a, int b) {
    Group &into = group(a), &from = group(b);
    needs_.merge(a, b);
    for (const NodeId id : from.nodes) out_.group[at(id)] = a;
    into.nodes.insert(into.nodes.end(), from.nodes.begin(), from.nodes.end());
    std::sort(into.nodes.begin(), into.nodes.end());
    from.nodes.clear();
  }

  // The sum of a right operand over its rows (a bias gradient) is made while it is packed.
  void ride_with_products() {
    const int n = static_cast<int>(out_.groups.size());
    for (int c = 0; c < n; ++c) {
      const bool downward = group(c).kind == Group::Kind::columns ||
                            (group(c).kind == Group::Kind::rows && group(c).reduces && group(c).lines == 1);
      if (!downward || group(c).nodes.size() != 1) continue;
      const NodeId sum = group(c).nodes[0];
      if (graph_[sum].op->core != Core::reduce || graph_[sum].op->combine != ir::Combine::add) continue;
      if (graph_[sum].type.dtype != DType::f32) continue;
      const ReduceShape shape = reduce_shape(graph_, sum);
      const Operand& summed = operands_[at(sum)][0];
      if (out_.inlined[at(summed.base)] || shape.length * shape.lines == 0) continue;
      const IndexMap wanted = summed.map.permute(shape.order).reshape({shape.length, shape.lines});
      for (int m = 0; m < n; ++m) {
        if (group(m).kind != Group::Kind::matmul || !independent(c, m)) continue;
        const NodeId product = matching_product(group(m), summed.base, wanted);
        if (product < 0) continue;
        absorb(m, c);
        out_.product[at(sum)] = product;
        break;
      }
    }
  }

  NodeId matching_product(const Group& g, NodeId base, const IndexMap& wanted) const {
    for (const NodeId id : g.nodes) {
      if (graph_[id].op->core != Core::matmul) continue;
      const Operand& right = operands_[at(id)][1];
      const Shape& shape = right.map.shape();
      if (right.base != base || shape.count() != shape[-1] * shape[-2] || count(id) == 0) continue;
      const bool taken = std::any_of(g.nodes.begin(), g.nodes.end(), [&](NodeId other) {
        return graph_[other].op->core == Core::reduce && out_.product[at(other)] == id;
      });
      if (!taken && right.map.reshape({shape[-2], shape[-1]}) == wanted) return id;
    }
    return -1;
  }

  // ---- order

  // Groups by the last node they hold, as far as needs allow: close to the order of the program.
  // Who reads a parameter comes before the group that overwrites it.
  void order() {
    const int n = static_cast<int>(out_.groups.size());
    for (const ir::Result& result : graph_.results) {
      if (result.kind != ir::Result::Kind::update) continue;
      const int writer = out_.group[at(base_of(graph_, result.node))];
      if (writer < 0) continue;
      for (NodeId id = 0; id < graph_.size(); ++id) {
        const int reader = out_.group[at(id)];
        if (reader < 0 || reader == writer || needs_.needs(reader, writer)) continue;
        // A bad id is found before anything is overwritten.
        if (checks_ids(graph_[id])) needs_.link(writer, reader);
        for (const Operand& operand : operands_[at(id)]) {
          const Node& leaf = graph_[operand.base];
          if (leaf.op->core == Core::leaf && leaf.op->name != "input" && leaf.as<ir::LeafAttrs>().name == result.name)
            needs_.link(writer, reader);
        }
      }
    }
    std::vector<int> left;
    for (int g = 0; g < n; ++g)
      if (!group(g).nodes.empty()) left.push_back(g);
    std::sort(left.begin(), left.end(), [&](int a, int b) { return group(a).nodes.back() < group(b).nodes.back(); });
    std::vector<Group> sorted;
    std::vector<int> number(at(n, 0), -1);
    while (!left.empty()) {
      const auto ready = std::find_if(left.begin(), left.end(), [&](int g) {
        return std::none_of(left.begin(), left.end(), [&](int other) { return needs_.needs(g, other); });
      });
      if (ready == left.end()) internal_error("groups need each other: {}", print_node(graph_, group(left[0]).nodes[0]));
      number[at(*ready, 0)] = static_cast<int>(sorted.size());
      sorted.push_back(std::move(group(*ready)));
      left.erase(ready);
    }
    out_.groups = std::move(sorted);
    for (int& g : out_.group)
      if (g >= 0) g = number[at(g, 0)];
  }

  const Graph& graph_;
  const FuseOptions& options_;
  Fused out_;
  Needs needs_;
  std::vector<std::vector<Operand>> operands_;  // of each node that computes
  std::vector<int> uses_;                       // by nodes that compute, views looked through
  std::vector<bool> held_;                      // results
};

}  // namespace

bool computes(const Node& node) {
  switch (node.op->core) {
    case Core::leaf:
    case Core::constant:
    case Core::iota:
    case Core::view: return false;
    default: return true;
  }
}

Operand operand_of(const Graph& graph, NodeId id) {
  std::vector<NodeId> views;
  while (graph[id].op->core == Core::view) {
    views.push_back(id);
    id = graph[id].inputs[0];
  }
  Operand out{id, IndexMap::contiguous(graph[id].type.shape)};
  for (auto view = views.rbegin(); view != views.rend(); ++view)
    out.map = graph[*view].op->view(out.map, graph[*view].attrs);
  return out;
}

NodeId base_of(const Graph& graph, NodeId id) {
  while (graph[id].op->core == Core::view) id = graph[id].inputs[0];
  return id;
}

bool is_alias(const Graph& graph, NodeId id) {
  const Operand operand = operand_of(graph, id);
  return operand.map.is_contiguous() && operand.map.shape().count() == graph[operand.base].type.shape.count();
}

ReduceShape reduce_shape(const Graph& graph, NodeId id) {
  const auto& axes = graph[id].as<ir::AxesAttrs>().axes;
  const Shape& shape = graph[graph[id].inputs[0]].type.shape;
  ReduceShape out;
  std::vector<int> kept;
  bool seen_reduced = false;
  for (int d = 0; d < shape.rank(); ++d) {
    const bool reduced = std::find(axes.begin(), axes.end(), d) != axes.end();
    (reduced ? out.length : out.lines) *= shape[d];
    if (!reduced) kept.push_back(d);
    if (shape[d] == 1) continue;
    if (reduced) seen_reduced = true;
    else if (seen_reduced) out.along_rows = false;
  }
  out.order = out.along_rows ? kept : axes;
  const std::vector<int>& rest = out.along_rows ? axes : kept;
  out.order.insert(out.order.end(), rest.begin(), rest.end());
  return out;
}

Fused fuse(const Graph& graph, const FuseOptions& options) { return Fuser(graph, options).run(); }

}  // namespace tensorgrad::schedule
