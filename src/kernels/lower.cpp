#include "kernels/lower.h"

#include <algorithm>
#include <functional>
#include <map>

#include "ir/primitive.h"
#include "schedule/operand.h"
#include "support/fail.h"
#include "support/integers.h"

namespace tensorgrad::kernels {

using ir::Core;
using ir::Graph;
using ir::IndexMap;
using ir::Instr;
using ir::Kernel;
using ir::Load;
using ir::Node;
using ir::NodeId;
using ir::Reg;
using ir::ScalarOp;
using ir::ScalarProgram;
using schedule::Group;
using schedule::Plan;

namespace {

// What a core does to the map of an operand before its program reads it.
using Finish = std::function<IndexMap(const IndexMap&)>;

IndexMap as_is(const IndexMap& map) { return map; }

// The axis of a map moved to the end.
IndexMap axis_last(const IndexMap& map, int axis) {
  std::vector<int> order;
  for (int d = 0; d < map.shape().rank(); ++d)
    if (d != axis) order.push_back(d);
  order.push_back(axis);
  return map.permute(order);
}

class Lowering {
 public:
  Lowering(const Plan& plan, const schedule::Step& step)
      : plan_(plan), graph_(plan.graph), step_(step) {}

  Kernel run() {
    if (step_.copied >= 0) {
      copy();
      return std::move(kernel_);
    }
    const Group& group = step_.group;
    std::vector<std::string> names;
    for (const NodeId id : group.nodes) names.emplace_back(graph_[id].op->name);
    kernel_.name = fmt::format("{}", fmt::join(names, "_"));
    kernel_.lines = group.lines, kernel_.length = group.length;
    switch (group.kind) {
      case Group::Kind::rows:
        rows();
        break;
      case Group::Kind::columns:
        columns();
        break;
      case Group::Kind::matmul:
        matmul();
        break;
      case Group::Kind::single:
        single();
        break;
    }
    return std::move(kernel_);
  }

 private:
  const Shape& shape_of(NodeId id) const { return graph_[id].type.shape; }
  bool inlined(NodeId id) const { return plan_.fused.inlined[usize(id)]; }

  ir::Store store_of(const schedule::Stored& stored, Reg value) const {
    return {stored.place, graph_[stored.node].type.dtype, value, stored.node};
  }

  // ---- reading operands into a program

  // The value of an operand: a register of this program, an inlined node, or memory.
  Reg value(ScalarProgram& program, NodeId id, const Finish& finish, bool line) {
    views_.clear();
    memo_.clear();
    return visit(program, id, finish, line);
  }

  // `views_` are those above the node, the nearest last.
  Reg visit(ScalarProgram& program, NodeId id, const Finish& finish, bool line) {
    const Node& node = graph_[id];
    if (node.op->core == Core::view) {
      views_.push_back(id);
      const Reg r = visit(program, node.inputs[0], finish, line);
      views_.pop_back();
      return r;
    }
    if (schedule::computes(node) && inlined(id)) {
      const std::pair key(id, views_);
      if (const auto known = memo_.find(key); known != memo_.end()) return known->second;
      std::vector<Reg> regs;
      for (const NodeId input : node.inputs) regs.push_back(visit(program, input, finish, line));
      return memo_[key] = emit(program, id, regs, line);
    }
    if (const auto own = regs_.find(id); own != regs_.end()) return own->second;
    return load(program, id, finish, line);
  }

  // The node's value from its operands', per line or per element as the node is. (Numbers are both,
  // so that an op on numbers and lines alone could be taken for the other kind.)
  Reg emit(ScalarProgram& program, NodeId id, const std::vector<Reg>& regs, bool line) {
    const std::size_t before = program.code.size();
    Reg r = graph_[id].op->scalar(program, regs, graph_[id].attrs);
    for (std::size_t i = before; i < program.code.size(); ++i) {
      program.code[i].node = id;
      if (line && program.code[i].op != ScalarOp::constant) program.code[i].line = true;
    }
    if (!line && program.line(r))
      r = program.push({.op = ScalarOp::spread, .dtype = program.dtype(r), .a = r});
    return r;
  }

  IndexMap map_of(NodeId id) const {
    IndexMap map = IndexMap::contiguous(shape_of(id));
    for (auto view = views_.rbegin(); view != views_.rend(); ++view)
      map = graph_[*view].op->view(map, graph_[*view].attrs);
    return map;
  }

  Load make_load(NodeId id, IndexMap map) const {
    Load out;
    out.dtype = graph_[id].type.dtype;
    out.map = std::move(map);
    if (graph_[id].op->core == Core::constant) {
      out.source = Load::Source::constant;
      out.value = graph_[id].as<ir::ConstantAttrs>().value;
    } else if (graph_[id].op->core == Core::iota) {
      out.source = Load::Source::iota;
    } else if (const auto& place = plan_.places[usize(id)]) {
      out.place = *place;
    } else {
      internal_error("a kernel reads what is not in memory: {}", ir::print_node(graph_, id));
    }
    return out;
  }

  Reg load(ScalarProgram& program, NodeId id, const Finish& finish, bool line) {
    const Load made = make_load(id, finish(map_of(id)));
    if (made.source == Load::Source::constant && made.map.is_strided())
      return program.constant(made.value, made.dtype);
    for (std::size_t i = 0; i < program.code.size(); ++i) {
      const Instr& instr = program.code[i];
      if (instr.op != ScalarOp::load || instr.line != line) continue;
      const Load& other = kernel_.loads[usize(instr.slot)];
      if (other.source == made.source && other.place == made.place && other.value == made.value &&
          other.dtype == made.dtype && other.map == made.map)
        return static_cast<Reg>(i);
    }
    return program.push(
        {.op = ScalarOp::load, .dtype = made.dtype, .slot = add(made), .line = line});
  }

  int add(Load made) {
    kernel_.loads.push_back(std::move(made));
    return static_cast<int>(kernel_.loads.size()) - 1;
  }

  // An operand that is memory (or a number) seen through views, with no program on it.
  Load operand(NodeId node, std::size_t i) {
    const schedule::Operand seen = schedule::operand_of(graph_, graph_[node].inputs[i]);
    return make_load(seen.base, seen.map);
  }

  // ---- rows

  void rows() {
    kernel_.kind = Kernel::Kind::rows;
    ScalarProgram& p = kernel_.program;
    for (const NodeId id : step_.group.nodes) {
      if (inlined(id)) continue;
      const Node& node = graph_[id];
      const bool line = plan_.fused.line[usize(id)];
      Reg r = -1;
      switch (node.op->core) {
        case Core::elementwise: {
          std::vector<Reg> in;
          for (const NodeId input : node.inputs) in.push_back(value(p, input, as_is, line));
          r = emit(p, id, in, line);
          break;
        }
        case Core::reduce:
          r = reduction(id, value(p, node.inputs[0], as_is, false));
          break;
        case Core::gather:
          r = gather(id);
          break;
        case Core::take:
          r = take(id);
          break;
        case Core::concat:
          r = concat(id);
          break;
        default:
          internal_error("not a row op: {}", ir::print_node(graph_, id));
      }
      regs_[id] = r;
    }
    store_members();
  }

  Reg reduction(NodeId id, Reg operand) {
    return kernel_.program.push({.op = ScalarOp::reduce,
                                 .dtype = graph_[id].type.dtype,
                                 .a = operand,
                                 .node = id,
                                 .combine = graph_[id].op->combine,
                                 .line = true});
  }

  // Values that are loads or numbers are stored through a register of their own all the same; a
  // value per line that is stored per element (a copy of a spread) is spread first.
  void store_members() {
    ScalarProgram& p = kernel_.program;
    for (const schedule::Stored& stored : step_.stored) {
      Reg r = regs_.at(stored.node);
      if (p.line(r) && !plan_.fused.line[usize(stored.node)])
        r = p.push({.op = ScalarOp::spread, .dtype = p.dtype(r), .a = r});
      if (!p.line(r) && plan_.fused.line[usize(stored.node)]) {
        // Only a number can be both; it becomes one per line.
        ir::Instr number = p.code[usize(r)];
        number.line = true;
        r = p.push(number);
      }
      kernel_.stores.push_back(store_of(stored, r));
    }
  }

  // [..., D]: row ids[...] of the table.
  Reg gather(NodeId id) {
    const Node& node = graph_[id];
    const Shape space = node.type.shape, table_shape = shape_of(node.inputs[0]);
    Load table = operand(id, 0);
    const std::int64_t stride = table.map.stride(0);
    table.map = table.map.narrow(0, 0, 1).reshape({table_shape[1]}).broadcast(space);
    const Reg ids = value(
        kernel_.program, node.inputs[1],
        [&](const IndexMap& map) {
          Shape with_one = map.shape();
          with_one.push_back(1);
          return map.reshape(with_one).broadcast(space);
        },
        false);
    return indirect(id, std::move(table), ids, table_shape[0], stride);
  }

  Reg take(NodeId id) {
    const Node& node = graph_[id];
    const int axis = node.as<ir::AxisAttrs>().axis;
    Load x = operand(id, 0);
    const std::int64_t stride = x.map.stride(axis);
    x.map = x.map.narrow(axis, 0, 1).broadcast(node.type.shape);
    const Reg ids = value(kernel_.program, node.inputs[1], as_is, false);
    return indirect(id, std::move(x), ids, shape_of(node.inputs[0])[axis], stride);
  }

  Reg indirect(NodeId id, Load data, Reg ids, std::int64_t extent, std::int64_t stride) {
    const DType dtype = data.dtype;
    const int slot = add(std::move(data));
    return kernel_.program.push({.op = ScalarOp::gather,
                                 .dtype = dtype,
                                 .a = ids,
                                 .slot = slot,
                                 .extent = extent,
                                 .stride = stride,
                                 .node = id});
  }

  // Each part is read at its own range of the axis; elsewhere its value does not matter.
  Reg concat(NodeId id) {
    const Node& node = graph_[id];
    ScalarProgram& p = kernel_.program;
    const int axis = node.as<ir::AxisAttrs>().axis;
    const Shape& space = node.type.shape;
    const std::int64_t total = space[axis];
    Load position;
    position.source = Load::Source::iota;
    position.dtype = DType::i32;
    Shape along;
    for (int d = 0; d < space.rank(); ++d) along.push_back(d == axis ? space[d] : 1);
    position.map = IndexMap::contiguous({total}).reshape(along).broadcast(space);
    const Reg where = p.load(add(position), DType::i32);
    Reg out = -1;
    std::int64_t end = total;
    for (std::size_t i = node.inputs.size(); i-- > 0;) {
      const std::int64_t size = shape_of(node.inputs[i])[axis], start = end - size;
      const Reg part = value(
          p, node.inputs[i],
          [&](const IndexMap& map) { return map.pad(axis, start, total - end, 0); }, false);
      if (out < 0) {
        out = part;
      } else {
        const Reg bound = p.constant(static_cast<double>(end), DType::i32);
        out = p.select(p.compare(ScalarOp::less, where, bound), part, out);
      }
      end = start;
    }
    return out;
  }

  // ---- columns

  void columns() {
    kernel_.kind = Kernel::Kind::columns;
    for (const NodeId id : step_.group.nodes) {
      if (inlined(id)) continue;
      const Node& node = graph_[id];
      if (node.op->core == Core::reduce) {
        const std::vector<int> order = schedule::reduce_shape(graph_, id).order;
        regs_[id] =
            reduction(id, value(
                              kernel_.program, node.inputs[0],
                              [&](const IndexMap& map) { return map.permute(order); }, false));
      } else {
        std::vector<Reg> in;
        for (const NodeId input : node.inputs)
          in.push_back(value(kernel_.program, input, as_is, true));
        regs_[id] = emit(kernel_.program, id, in, true);
      }
    }
    store_members();
  }

  // ---- matmul

  void matmul() {
    kernel_.kind = Kernel::Kind::matmul;
    std::vector<NodeId> products;
    for (const NodeId id : step_.group.nodes)
      if (graph_[id].op->core == Core::matmul) products.push_back(id);
    const Shape& left = shape_of(graph_[products[0]].inputs[0]);
    kernel_.M = left[-2], kernel_.K = left[-1];
    for (int d = 0; d < left.rank() - 2; ++d) kernel_.batches *= left[d];
    keep_last(kernel_.a, value(kernel_.a, graph_[products[0]].inputs[0], as_is, false));
    for (const NodeId product : products) part(product);
  }

  // A program's value is its last register.
  static void keep_last(ScalarProgram& program, Reg value) {
    if (value == static_cast<Reg>(program.code.size()) - 1) return;
    program.code.push_back(program.code[usize(value)]);
  }

  void part(NodeId product) {
    ir::MatmulPart out;
    out.N = graph_[product].type.shape[-1];
    regs_.clear();
    keep_last(out.b, value(out.b, graph_[product].inputs[1], as_is, false));
    ScalarProgram& p = out.epilogue;
    regs_[product] = p.push({.op = ScalarOp::accumulator, .dtype = DType::f32});
    for (const NodeId id : step_.group.nodes) {
      if (inlined(id) || plan_.fused.product[usize(id)] != product ||
          graph_[id].op->core != Core::elementwise)
        continue;
      std::vector<Reg> in;
      for (const NodeId input : graph_[id].inputs) in.push_back(value(p, input, as_is, false));
      regs_[id] = emit(p, id, in, false);
    }
    for (const schedule::Stored& stored : step_.stored) {
      if (plan_.fused.product[usize(stored.node)] != product) continue;
      if (graph_[stored.node].op->core == Core::reduce) {
        out.column_sums = store_of(stored, -1);
        out.sums_columns = true;
      } else {
        out.stores.push_back(store_of(stored, regs_.at(stored.node)));
      }
    }
    kernel_.parts.push_back(std::move(out));
  }

  // ---- kernels of one node

  void single() {
    const NodeId id = step_.group.nodes.back();
    switch (graph_[id].op->core) {
      case Core::arg_reduce:
        arg_reduce(id);
        break;
      case Core::scan:
        scan(id);
        break;
      case Core::segment_sum:
        segment_sum(id);
        break;
      case Core::scatter_add:
        scatter_add(id);
        break;
      case Core::fold:
        fold(id);
        break;
      case Core::attention:
        attention(id, false);
        break;
      case Core::attention_gradient:
        attention(id, true);
        break;
      case Core::selective_scan:
        selective_scan(id, false);
        break;
      case Core::selective_scan_gradient:
        selective_scan(id, true);
        break;
      default:
        internal_error("no kernel for {}", ir::print_node(graph_, id));
    }
    if (kernel_.stores.empty())
      for (const schedule::Stored& stored : step_.stored)
        kernel_.stores.push_back(store_of(stored, 0));
  }

  void set_rows(const Shape& space) {
    kernel_.length = space.back();
    kernel_.lines = kernel_.length ? space.count() / kernel_.length : 0;
  }

  void arg_reduce(NodeId id) {
    const int axis = graph_[id].as<ir::AxisAttrs>().axis;
    kernel_.kind = Kernel::Kind::arg_reduce;
    kernel_.combine = graph_[id].op->combine;
    set_rows(axis_last(IndexMap::contiguous(shape_of(graph_[id].inputs[0])), axis).shape());
    keep_last(kernel_.program,
              value(
                  kernel_.program, graph_[id].inputs[0],
                  [&](const IndexMap& map) { return axis_last(map, axis); }, false));
  }

  void scan(NodeId id) {
    const auto& a = graph_[id].as<ir::CumsumAttrs>();
    kernel_.kind = Kernel::Kind::scan;
    kernel_.reverse = a.reverse;
    kernel_.store_map = axis_last(IndexMap::contiguous(graph_[id].type.shape), a.axis);
    set_rows(kernel_.store_map.shape());
    const Reg r = value(
        kernel_.program, graph_[id].inputs[0],
        [&](const IndexMap& map) { return axis_last(map, a.axis); }, false);
    for (const schedule::Stored& stored : step_.stored)
      kernel_.stores.push_back(store_of(stored, r));
  }

  void segment_sum(NodeId id) {
    kernel_.kind = Kernel::Kind::segment_sum;
    kernel_.extent = graph_[id].as<ir::RowsAttrs>().rows;
    const std::int64_t P = shape_of(graph_[id].inputs[1]).count(),
                       D = shape_of(graph_[id].inputs[0]).back();
    kernel_.length = P, kernel_.lines = D;
    Load values = operand(id, 0), ids = operand(id, 1);
    values.map = values.map.reshape({P, D});
    ids.map = ids.map.reshape({P});
    add(std::move(ids));
    add(std::move(values));
  }

  void scatter_add(NodeId id) {
    const auto& a = graph_[id].as<ir::ScatterAttrs>();
    kernel_.kind = Kernel::Kind::scatter_add;
    kernel_.extent = a.size;
    kernel_.store_map = axis_last(IndexMap::contiguous(graph_[id].type.shape), a.axis);
    Load values = operand(id, 0), ids = operand(id, 1);
    values.map = axis_last(values.map, a.axis);
    ids.map = axis_last(ids.map, a.axis);
    set_rows(values.map.shape());
    add(std::move(ids));
    add(std::move(values));
  }

  // out[i] = sum over k of g[(i - k*dilation) / stride, k], where the division is exact: a sum over
  // the last axis of g seen with zeros between the windows and skewed.
  void fold(NodeId id) {
    const auto& a = graph_[id].as<ir::WindowAttrs>();
    Load g = operand(id, 0);
    IndexMap map = g.map;
    int axis = a.axis;
    if (a.stride > 1) {
      if (map.shape().rank() == kMaxRank) {  // the split needs one axis more
        Shape joined{1, map.shape()[axis], 1, a.size};
        for (int d = 0; d < kMaxRank - 1; ++d)
          if (d != axis) joined[d < axis ? 0 : 2] *= map.shape()[d];
        map = map.reshape(joined);
        axis = 1;
      }
      Shape split = map.shape();
      split.insert(axis + 1, 1);
      map = map.reshape(split).pad(axis + 1, 0, a.stride - 1, 0);
      Shape merged = map.shape();
      merged.erase(axis + 1);
      merged[axis] *= a.stride;
      map = map.reshape(merged);
    }
    const std::int64_t reach = (a.size - 1) * a.dilation;
    const std::int64_t behind = std::max<std::int64_t>(0, a.length - map.shape()[axis]);
    const int last = map.shape().rank() - 1;
    map =
        map.pad(axis, reach, behind, 0).skew(axis, last, a.dilation).narrow(axis, reach, a.length);
    // The few taps of a window go first, so that rows are long.
    std::vector<int> order{last};
    for (int d = 0; d < last; ++d) order.push_back(d);
    g.map = map.permute(order);
    kernel_.kind = Kernel::Kind::columns;
    kernel_.length = a.size;
    kernel_.lines = graph_[id].type.shape.count();
    const DType dtype = g.dtype;
    const Reg x = kernel_.program.load(add(std::move(g)), dtype);
    const Reg sum = kernel_.program.push({.op = ScalarOp::reduce,
                                          .dtype = dtype,
                                          .a = x,
                                          .node = id,
                                          .combine = ir::Combine::add,
                                          .line = true});
    for (const schedule::Stored& stored : step_.stored)
      kernel_.stores.push_back(store_of(stored, sum));
  }

  void attention(NodeId id, bool gradient) {
    const Node& node = graph_[id];
    const Shape &q = shape_of(node.inputs[0]), &k = shape_of(node.inputs[1]),
                &v = shape_of(node.inputs[2]);
    const auto& attrs = node.as<ir::AttentionAttrs>();
    const std::size_t operands = gradient ? 5 : 3;
    kernel_.kind = gradient ? Kernel::Kind::attention_gradient : Kernel::Kind::attention;
    kernel_.attention = {.B = q[0],
                         .H = q[1],
                         .G = k[1],
                         .T = q[2],
                         .S = k[2],
                         .D = q[3],
                         .V = v[3],
                         .causal = attrs.causal,
                         .cached = node.inputs.size() > operands,
                         .scale = attrs.scale};
    const ir::AttentionShape& s = kernel_.attention;
    kernel_.lines = s.B * s.H * s.T, kernel_.length = s.S;
    for (std::size_t i = 0; i < 3; ++i) add(operand(id, i));
    if (gradient) {
      const Load packed = operand(id, 3);
      Load out = packed, lse = packed;
      out.map = packed.map.narrow(0, s.out().offset, s.B * s.T * s.H * s.V)
                    .reshape({s.B, s.T, s.H, s.V})
                    .permute({0, 2, 1, 3});
      lse.map = packed.map.narrow(0, s.lse(), s.B * s.H * s.T).reshape({s.B, s.H, s.T});
      add(std::move(out));
      add(std::move(lse));
      add(operand(id, 4));
    }
    if (s.cached) add(operand(id, operands));
  }

  void selective_scan(NodeId id, bool gradient) {
    const Node& node = graph_[id];
    const Shape &u = shape_of(node.inputs[0]), &A = shape_of(node.inputs[2]);
    const auto& attrs = node.as<ir::SelectiveScanAttrs>();
    kernel_.kind = gradient ? Kernel::Kind::selective_scan_gradient : Kernel::Kind::selective_scan;
    kernel_.selective_scan = {
        .B = u[0], .L = u[1], .E = u[2], .N = A[1], .chunk = attrs.chunk, .zoh = attrs.zoh};
    const ir::SelectiveScanShape& s = kernel_.selective_scan;
    kernel_.lines = s.B * s.E * s.N, kernel_.length = s.L;
    for (std::size_t i = 0; i < 6; ++i) add(operand(id, i));
    if (!gradient) return;
    Load states = operand(id, 6);
    states.map = states.map.narrow(0, s.states(), s.B * s.kept() * s.E * s.N)
                     .reshape({s.B, s.kept(), s.E, s.N});
    add(std::move(states));
    add(operand(id, 7));
  }

  // Memory to memory.
  void copy() {
    kernel_.kind = Kernel::Kind::rows;
    kernel_.name = "copy";
    kernel_.length = shape_of(step_.copied).count();
    const Load from = make_load(step_.copied, IndexMap::contiguous(shape_of(step_.copied)));
    const Reg r = kernel_.program.load(add(from), from.dtype);
    for (const schedule::Stored& stored : step_.stored)
      kernel_.stores.push_back(store_of(stored, r));
  }

  const Plan& plan_;
  const Graph& graph_;
  const schedule::Step& step_;
  Kernel kernel_;
  std::map<NodeId, Reg> regs_;  // of the members computed so far, in the current program
  // Of the inlined nodes of the operand that is being read, each seen through its views.
  std::map<std::pair<NodeId, std::vector<NodeId>>, Reg> memo_;
  std::vector<NodeId> views_;  // above the node that is being read, the nearest last
};

}  // namespace

std::vector<Kernel> lower(const Plan& plan) {
  std::vector<Kernel> kernels;
  for (const schedule::Step& step : plan.steps) {
    kernels.push_back(Lowering(plan, step).run());
    kernels.back().stage = step.stage;
  }
  return kernels;
}

}  // namespace tensorgrad::kernels
