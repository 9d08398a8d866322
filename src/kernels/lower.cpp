#include "kernels/lower.h"

#include <functional>
#include <numeric>

#include "ir/primitive.h"
#include "support/fail.h"

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
  Lowering(const Plan& plan, const schedule::Step& step) : plan_(plan), graph_(plan.graph), step_(step) {
    root_ = step.group.root;
    kernel_.node = root_;
    kernel_.name = std::string(step.copy ? "copy" : node().op->name);
    kernel_.store.place = step.place;
    kernel_.store.dtype = node().type.dtype;
    kernel_.store.map = IndexMap::contiguous(node().type.shape);
  }

  Kernel run() {
    if (step_.copy) {
      map_kernel();
      value(root_, as_is);
      return std::move(kernel_);
    }
    switch (node().op->core) {
      case Core::view:
      case Core::constant:
      case Core::iota:
        map_kernel();
        read(root_, as_is);
        break;
      case Core::elementwise: {
        map_kernel();
        std::vector<Reg> in;
        for (const NodeId input : node().inputs) in.push_back(value(input, as_is));
        node().op->scalar(kernel_.program, in, node().attrs);
        break;
      }
      case Core::concat: concat(); break;
      case Core::reduce: reduce(); break;
      case Core::arg_reduce: arg_reduce(); break;
      case Core::scan: scan(); break;
      case Core::matmul: matmul(); break;
      case Core::gather: gather(); break;
      case Core::take: take(); break;
      case Core::segment_sum: segment_sum(); break;
      case Core::scatter_add: scatter_add(); break;
      case Core::fold: fold(); break;
      case Core::leaf: internal_error("a leaf is not computed: {}", ir::print_node(graph_, root_));
    }
    return std::move(kernel_);
  }

 private:
  const Node& node() const { return graph_[root_]; }
  const ir::Type& in(std::size_t i) const { return graph_[node().inputs[i]].type; }

  void map_kernel() {
    kernel_.kind = Kernel::Kind::map;
    kernel_.space = node().type.shape;
  }

  // Reads a node through the views above it, the nearest last. The root of this step may be a view
  // that is about to be materialised: `read` looks through it, `value` takes what lies in memory.
  Reg value(NodeId id, const Finish& finish) { return visit(id, finish, false); }
  Reg read(NodeId id, const Finish& finish) { return visit(id, finish, true); }

  Reg visit(NodeId id, const Finish& finish, bool through) {
    const Node& n = graph_[id];
    const bool stored = plan_.places[static_cast<std::size_t>(id)].has_value() && !through;
    if (stored || n.op->core == Core::leaf || n.op->core == Core::constant || n.op->core == Core::iota)
      return load(id, finish);
    if (n.op->core == Core::view) {
      views_.push_back(id);
      const Reg r = value(n.inputs[0], finish);
      views_.pop_back();
      return r;
    }
    std::vector<Reg> regs;
    for (const NodeId input : n.inputs) regs.push_back(value(input, finish));
    return n.op->scalar(kernel_.program, regs, n.attrs);
  }

  IndexMap map_of(NodeId id) const {
    IndexMap map = IndexMap::contiguous(graph_[id].type.shape);
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
    } else {
      out.place = *plan_.places[static_cast<std::size_t>(id)];
    }
    return out;
  }

  Reg load(NodeId id, const Finish& finish) {
    const Load made = make_load(id, finish(map_of(id)));
    if (made.source == Load::Source::constant && made.map.is_strided())
      return kernel_.program.constant(made.value, made.dtype);
    for (std::size_t i = 0; i < kernel_.program.code.size(); ++i) {
      const Instr& instr = kernel_.program.code[i];
      if (instr.op != ScalarOp::load) continue;
      const Load& other = kernel_.loads[static_cast<std::size_t>(instr.slot)];
      if (other.source == made.source && other.place == made.place && other.value == made.value &&
          other.dtype == made.dtype && other.map == made.map)
        return static_cast<Reg>(i);
    }
    return kernel_.program.load(add(made), made.dtype);
  }

  int add(Load made) {
    kernel_.loads.push_back(std::move(made));
    return static_cast<int>(kernel_.loads.size()) - 1;
  }

  // An operand that is memory (or a number) seen through views, with no program on it.
  Load operand(std::size_t i) {
    NodeId id = node().inputs[i];
    views_.clear();
    while (!plan_.places[static_cast<std::size_t>(id)] && graph_[id].op->core == Core::view) {
      views_.push_back(id);
      id = graph_[id].inputs[0];
    }
    Load out = make_load(id, map_of(id));
    views_.clear();
    return out;
  }

  Reg iota_along(const Shape& space, int axis) {
    Load made;
    made.source = Load::Source::iota;
    made.dtype = DType::i32;
    Shape along;
    for (int d = 0; d < space.rank(); ++d) along.push_back(d == axis ? space[d] : 1);
    made.map = IndexMap::contiguous({space[axis]}).reshape(along).broadcast(space);
    return kernel_.program.load(add(made), DType::i32);
  }

  // Each part is read at its own range of the axis; elsewhere its value does not matter.
  void concat() {
    map_kernel();
    const int axis = node().as<ir::AxisAttrs>().axis;
    const std::int64_t total = kernel_.space[axis];
    const Reg position = iota_along(kernel_.space, axis);
    Reg out = -1;
    std::int64_t end = total;
    for (std::size_t i = node().inputs.size(); i-- > 0;) {
      const std::int64_t size = in(i).shape[axis], start = end - size;
      const Reg part = value(node().inputs[i], [&](const IndexMap& map) {
        return map.pad(axis, start, total - end, 0);
      });
      if (out < 0) {
        out = part;
      } else {
        const Reg bound = kernel_.program.constant(static_cast<double>(end), DType::i32);
        out = kernel_.program.select(kernel_.program.compare(ScalarOp::less, position, bound), part, out);
      }
      end = start;
    }
  }

  // Rows are combined along memory where the last axis is reduced; else whole rows are added up.
  void reduce() {
    const auto& axes = node().as<ir::AxesAttrs>().axes;
    const int rank = in(0).shape.rank();
    std::vector<int> kept;
    for (int d = 0; d < rank; ++d)
      if (std::find(axes.begin(), axes.end(), d) == axes.end()) kept.push_back(d);
    kernel_.kind = Kernel::Kind::reduce;
    kernel_.combine = node().op->combine;
    kernel_.reduced = static_cast<int>(axes.size());
    kernel_.leading = !kept.empty() && kept.back() == rank - 1;
    std::vector<int> order = kernel_.leading ? axes : kept;
    const std::vector<int>& rest = kernel_.leading ? kept : axes;
    order.insert(order.end(), rest.begin(), rest.end());
    for (const int d : order) kernel_.space.push_back(in(0).shape[d]);
    value(node().inputs[0], [&](const IndexMap& map) { return map.permute(order); });
  }

  void arg_reduce() {
    const int axis = node().as<ir::AxisAttrs>().axis;
    kernel_.kind = Kernel::Kind::arg_reduce;
    kernel_.combine = node().op->combine;
    kernel_.space = axis_last(IndexMap::contiguous(in(0).shape), axis).shape();
    value(node().inputs[0], [&](const IndexMap& map) { return axis_last(map, axis); });
  }

  void scan() {
    const auto& a = node().as<ir::CumsumAttrs>();
    kernel_.kind = Kernel::Kind::scan;
    kernel_.combine = node().op->combine;
    kernel_.reverse = a.reverse;
    kernel_.store.map = axis_last(kernel_.store.map, a.axis);
    kernel_.space = kernel_.store.map.shape();
    value(node().inputs[0], [&](const IndexMap& map) { return axis_last(map, a.axis); });
  }

  void matmul() {
    kernel_.kind = Kernel::Kind::matmul;
    kernel_.space = node().type.shape;
    add(operand(0));
    add(operand(1));
  }

  // [..., D]: row ids[...] of the table.
  void gather() {
    map_kernel();
    Load table = operand(0);
    const Shape space = kernel_.space;
    const std::int64_t rows = in(0).shape[0], stride = table.map.stride(0);
    table.map = table.map.narrow(0, 0, 1).reshape({in(0).shape[1]}).broadcast(space);
    const Reg id = value(node().inputs[1], [&](const IndexMap& map) {
      Shape with_one = map.shape();
      with_one.push_back(1);
      return map.reshape(with_one).broadcast(space);
    });
    indirect(std::move(table), id, rows, stride);
  }

  void take() {
    map_kernel();
    const int axis = node().as<ir::AxisAttrs>().axis;
    Load x = operand(0);
    const std::int64_t stride = x.map.stride(axis);
    x.map = x.map.narrow(axis, 0, 1).broadcast(kernel_.space);
    const Reg id = value(node().inputs[1], as_is);
    indirect(std::move(x), id, in(0).shape[axis], stride);
  }

  void indirect(Load data, Reg id, std::int64_t extent, std::int64_t stride) {
    const DType dtype = data.dtype;
    const int slot = add(std::move(data));
    kernel_.program.push({.op = ScalarOp::gather, .dtype = dtype, .a = id, .slot = slot, .extent = extent, .stride = stride});
  }

  void segment_sum() {
    kernel_.kind = Kernel::Kind::segment_sum;
    kernel_.extent = node().as<ir::RowsAttrs>().rows;
    const std::int64_t P = in(1).shape.count(), D = in(0).shape.back();
    kernel_.space = {P, D};
    Load values = operand(0), ids = operand(1);
    values.map = values.map.reshape({P, D});
    ids.map = ids.map.reshape({P});
    add(std::move(ids));
    add(std::move(values));
  }

  void scatter_add() {
    const auto& a = node().as<ir::ScatterAttrs>();
    kernel_.kind = Kernel::Kind::scatter_add;
    kernel_.extent = a.size;
    Load values = operand(0), ids = operand(1);
    values.map = axis_last(values.map, a.axis);
    ids.map = axis_last(ids.map, a.axis);
    kernel_.space = values.map.shape();
    kernel_.stride = kernel_.store.map.stride(a.axis);
    kernel_.store.map = axis_last(kernel_.store.map, a.axis);
    add(std::move(ids));
    add(std::move(values));
  }

  // out[i] = sum over k of g[(i - k*dilation) / stride, k], where the division is exact: a sum over
  // the last axis of g seen with zeros between the windows and skewed.
  void fold() {
    const auto& a = node().as<ir::WindowAttrs>();
    Load g = operand(0);
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
    map = map.pad(axis, reach, behind, 0).skew(axis, last, a.dilation).narrow(axis, reach, a.length);
    // The few taps of a window go first, so that rows are long.
    std::vector<int> order{last};
    for (int d = 0; d < last; ++d) order.push_back(d);
    g.map = map.permute(order);
    kernel_.kind = Kernel::Kind::reduce;
    kernel_.combine = ir::Combine::add;
    kernel_.reduced = 1;
    kernel_.leading = true;
    kernel_.space = g.map.shape();
    const DType dtype = g.dtype;
    kernel_.program.load(add(std::move(g)), dtype);
  }

  const Plan& plan_;
  const Graph& graph_;
  const schedule::Step& step_;
  NodeId root_ = -1;
  Kernel kernel_;
  std::vector<NodeId> views_;  // above the node that is being read, the nearest last
};

}  // namespace

std::vector<Kernel> lower(const Plan& plan) {
  std::vector<Kernel> kernels;
  for (const schedule::Step& step : plan.steps) kernels.push_back(Lowering(plan, step).run());
  return kernels;
}

}  // namespace tensorgrad::kernels
