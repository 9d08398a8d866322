#include "ops/builder.h"

#include <algorithm>
#include <atomic>

#include "ops/table.h"
#include "tensorgrad/ops.h"

namespace tensorgrad {

Tensor TensorAccess::make(std::uint64_t trace, ir::NodeId node, const ir::Type& type) {
  Tensor t;
  t.trace_ = trace, t.node_ = node, t.dtype_ = type.dtype, t.shape_ = type.shape;
  return t;
}

std::int64_t Tensor::size(int axis, Site site) const {
  const int at = axis < 0 ? axis + rank() : axis;
  if (at < 0 || at >= rank())
    fail_in_call("size",
                 fmt::format("axis {} does not exist: the tensor is {}{}", axis,
                             tensorgrad::name(dtype_), shape_.text()),
                 site);
  return shape_[at];
}

}  // namespace tensorgrad

namespace tensorgrad::ops {

namespace {

thread_local Builder* t_builder = nullptr;
thread_local Call* t_call = nullptr;

std::string module_of(const std::string& parameter) {
  const auto dot = parameter.rfind('.');
  return dot == std::string::npos ? "" : parameter.substr(0, dot);
}

}  // namespace

Builder::Builder(ir::Graph start, bool training, std::uint64_t model)
    : graph(std::move(start)), training_(training), model_(model) {
  static std::atomic<std::uint64_t> next{1};
  id_ = next++;
}

Tensor Builder::leaf(ir::Core kind, const std::string& name, const ir::Type& type) {
  for (; indexed_nodes_ < graph.size(); ++indexed_nodes_) {
    const ir::Node& node = graph[indexed_nodes_];
    if (ir::is_leaf(node))
      leaves_.try_emplace({node.op->core, node.as<ir::LeafAttrs>().name}, indexed_nodes_);
  }
  if (const auto known = leaves_.find({kind, name}); known != leaves_.end())
    return tensor(known->second);
  return tensor(
      graph.append(leaf_primitive(kind), {}, ir::LeafAttrs{name, type.dtype, type.shape}));
}

std::int32_t Builder::intern(const ir::CallSite& site) {
  const auto hash = [](const ir::CallSite& s) {
    const std::hash<std::string_view> text;
    return ((text(s.file) * 31 + static_cast<std::size_t>(s.line)) * 31 + text(s.scope)) * 31 +
           text(s.composite);
  };
  for (; indexed_sites_ < graph.sites.size(); ++indexed_sites_)
    sites_.emplace(hash(graph.sites[indexed_sites_]), static_cast<std::int32_t>(indexed_sites_));
  const auto [first, last] = sites_.equal_range(hash(site));
  for (auto known = first; known != last; ++known)
    if (graph.sites[usize(known->second)] == site) return known->second;
  graph.sites.push_back(site);
  return static_cast<std::int32_t>(graph.sites.size()) - 1;
}

void Builder::replace(ir::Graph other) {
  graph = std::move(other);
  leaves_.clear(), indexed_nodes_ = 0;
  sites_.clear(), indexed_sites_ = 0;
}

Builder::Mark Builder::mark() const {
  return {graph.nodes.size(), graph.results.size(), graph.sites.size(), random_sites_};
}

void Builder::return_to(const Mark& mark) {
  ir::Graph shorter = std::move(graph);
  const auto cut = [](auto& list, std::size_t size) {
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(size), list.end());
  };
  cut(shorter.nodes, mark.nodes);
  cut(shorter.results, mark.results);
  cut(shorter.sites, mark.sites);
  replace(std::move(shorter));
  random_sites_ = mark.random_sites;
}

Tensor Builder::parameter(const Param& param, const Call& call) {
  if (ParamAccess::index(param) < 0 || ParamAccess::model(param) != model_)
    call.fail("use the parameters of the model that the function receives",
              "this parameter ({}) is not part of the model being compiled",
              param.name().empty() ? "f32" + param.shape().text() : param.name());
  return leaf(ir::Core::parameter, param.name(), {DType::f32, param.shape()});
}

BuildScope::BuildScope(Builder& builder) : before_(t_builder) { t_builder = &builder; }
BuildScope::~BuildScope() { t_builder = before_; }

Builder* current_builder() { return t_builder; }

Call::Call(std::string_view name, Site site)
    : name_(name), site_(site), parent_(t_call), builder_(t_builder) {
  if (!builder_)
    throw UserError(user_message(
        name, "called outside a trace",
        "ops work inside the function given to compile(), compile_forward() or attach()", "",
        site.file, site.line));
  t_call = this;
  call_fails = [](const std::string& rule) { t_call->fail_text(rule, ""); };
}

Call::~Call() {
  t_call = parent_;
  if (!parent_) call_fails = nullptr;
}

const Call& Call::outermost() const {
  const Call* call = this;
  // Stops at a call of another builder: a trace starts inside such a call only by mistake.
  while (call->parent_ && call->parent_->builder_ == builder_) call = call->parent_;
  return *call;
}

Tensor Call::constant(double value, DType dtype) const {
  return emit(primitive(ir::OpId::constant), {}, ir::ConstantAttrs{value, dtype});
}

Tensor Call::tensor(const Operand& operand, DType scalar_dtype) const {
  if (TensorAccess::is_scalar(operand))
    return constant(TensorAccess::scalar(operand), scalar_dtype);
  if (const Param* param = TensorAccess::param(operand)) {
    Tensor t = builder_->parameter(*param, *this);
    scope_ = module_of(param->name());
    return t;
  }
  const Tensor& t = TensorAccess::tensor(operand);
  if (!t.valid()) fail("", "an operand is an empty Tensor (default-constructed)");
  if (TensorAccess::trace(t) != builder_->id())
    fail("a Tensor lives only while the function that made it is being traced",
         "an operand belongs to another trace: {}{}", tensorgrad::name(t.dtype()),
         t.shape().text());
  return t;
}

Tensor Call::emit(const ir::Primitive& op, const std::vector<Tensor>& in, ir::Attrs attrs) const {
  std::vector<ir::NodeId> ids;
  ids.reserve(in.size());
  ir::CallSite site;
  for (const Tensor& t : in) {
    ids.push_back(TensorAccess::node(t));
    ir::NodeId base = ids.back();  // looks through views: a bias is broadcast, a weight reshaped
    while (builder_->graph[base].op->core == ir::Core::view) base = builder_->graph[base].inputs[0];
    const ir::Node& node = builder_->graph[base];
    if (node.op->core == ir::Core::parameter) site.scope = module_of(node.as<ir::LeafAttrs>().name);
  }
  std::int32_t number = builder_->forced_site;
  if (number < 0) {
    const Call& outer = outermost();
    site.file = outer.site_.file;
    site.line = outer.site_.line;
    if (outer.name_ != op.name) site.composite = outer.name_;
    number = builder_->intern(site);
  }
  try {
    return builder_->tensor(builder_->graph.append(op, std::move(ids), std::move(attrs), number));
  } catch (const BrokenRule& broken) {
    fail_text(broken.rule, broken.hint);
  }
}

void Call::fail_text(const std::string& rule, const std::string& hint) const {
  const Call& outer = outermost();
  std::string op(name_);
  if (outer.name_ != name_) op += fmt::format(" (in {})", outer.name_);
  std::string scope;
  for (const Call* call = this; call && scope.empty(); call = call->parent_) scope = call->scope_;
  throw UserError(user_message(op, rule, hint, scope, outer.site_.file, outer.site_.line));
}

int Call::axis(const Tensor& x, int axis, int extra) const {
  const int rank = x.rank() + extra;
  const int at = axis < 0 ? axis + rank : axis;
  if (at < 0 || at >= rank) fail("", "axis {} does not exist: {}", axis, describe("x", x));
  return at;
}

std::vector<int> Call::axes(const Tensor& x, const Axes& axes) const {
  std::vector<int> out;
  if (axes.values().empty()) {
    for (int d = 0; d < x.rank(); ++d) out.push_back(d);
    return out;
  }
  for (const int a : axes.values()) out.push_back(axis(x, a));
  std::sort(out.begin(), out.end());
  if (std::adjacent_find(out.begin(), out.end()) != out.end())
    fail("", "an axis is named twice: [{}], {}", fmt::join(axes.values(), ","), describe("x", x));
  return out;
}

void Call::require_elements(const Tensor& x, int axis) const {
  if (x.shape()[axis] == 0) fail("", "axis {} is empty: {}", axis, describe("x", x));
}

void Call::require_f32(std::string_view label, const Tensor& x) const {
  if (x.dtype() != DType::f32)
    fail(fmt::format("cast({}, tg::f32)?", label), "needs f32: {}", describe(label, x));
}

void Call::require_i32(std::string_view label, const Tensor& x) const {
  if (x.dtype() != DType::i32)
    fail(fmt::format("cast({}, tg::i32)?", label), "needs i32: {}", describe(label, x));
}

std::string Call::describe(std::string_view label, const Tensor& x) const {
  const ir::Node& node = builder_->graph[TensorAccess::node(x)];
  std::string own;
  if (is_leaf(node)) own = node.as<ir::LeafAttrs>().name + " ";
  if (own == std::string(label) + " ") own.clear();
  return fmt::format("{} is {}{}{}", label, own, tensorgrad::name(x.dtype()), x.shape().text());
}

DType promote(DType a, DType b) {
  if (a == DType::f32 || b == DType::f32) return DType::f32;
  if (a == DType::i32 || b == DType::i32) return DType::i32;
  return DType::boolean;
}

Shape broadcast_shapes(const Call& call, const std::vector<Tensor>& tensors,
                       std::initializer_list<std::string_view> labels) {
  int rank = 0;
  for (const Tensor& t : tensors) rank = std::max(rank, t.rank());
  Shape shape;
  for (int d = 0; d < rank; ++d) {
    std::int64_t size = 1;
    for (const Tensor& t : tensors) {
      const int own = d - (rank - t.rank());
      if (own < 0 || t.shape()[own] == 1) continue;
      const std::int64_t mine = t.shape()[own];
      if (size != 1 && mine != size) {
        std::vector<std::string> parts;
        for (std::size_t i = 0; i < tensors.size(); ++i)
          parts.push_back(call.describe(labels.begin()[i], tensors[i]));
        call.fail("sizes match from the right, or are 1; reshape or unsqueeze one of them",
                  "shapes do not broadcast: {} ({} against {})", fmt::join(parts, ", "), size,
                  mine);
      }
      size = mine;
    }
    shape.push_back(size);
  }
  return shape;
}

}  // namespace tensorgrad::ops
