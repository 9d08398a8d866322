// Builder: the graph that ops append to while a trace, a gradient or an optimizer is recorded.
// Call: one op call. It knows the user's line and turns a broken rule into a complete error
// message.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/graph.h"
#include "ir/primitive.h"
#include "support/fail.h"
#include "tensorgrad/param.h"
#include "tensorgrad/tensor.h"

namespace tensorgrad {

struct TensorAccess {
  static Tensor make(std::uint64_t trace, ir::NodeId node, const ir::Type& type);
  static std::uint64_t trace(const Tensor& t) { return t.trace_; }
  static ir::NodeId node(const Tensor& t) { return t.node_; }
  static const Tensor& tensor(const Operand& o) { return o.tensor_; }
  static const Param* param(const Operand& o) { return o.param_; }
  static bool is_scalar(const Operand& o) { return o.is_scalar_; }
  static double scalar(const Operand& o) { return o.scalar_; }
  static DType scalar_dtype(const Operand& o) { return o.scalar_dtype_; }
};

struct ParamAccess {
  static void bind(Param& p, std::string name, std::uint64_t model, int index) {
    p.name_ = std::move(name), p.model_ = model, p.index_ = index;
  }
  static std::uint64_t model(const Param& p) { return p.model_; }
  static int index(const Param& p) { return p.index_; }
  static const void* tie(const Param& p) { return p.tie_.get(); }
};

}  // namespace tensorgrad

namespace tensorgrad::ops {

class Builder {
 public:
  // `training` enables dropout. `model` is the model whose parameters may be used.
  explicit Builder(ir::Graph graph = {}, bool training = true, std::uint64_t model = 0);

  ir::Graph graph;

  std::uint64_t id() const { return id_; }
  bool training() const { return training_; }

  Tensor tensor(ir::NodeId node) const { return TensorAccess::make(id_, node, graph[node].type); }
  // Returns the leaf of that kind and name; creates it at its first use.
  Tensor leaf(ir::Core kind, const std::string& name, const ir::Type& type);
  // Returns the number of a call site in the graph, the same for equal ones.
  std::int32_t intern(const ir::CallSite& site);
  // Makes another graph the builder's.
  void replace(ir::Graph other);
  // Where the graph ends. Returning there removes what was appended since.
  struct Mark {
    std::size_t nodes, results, sites;
    std::int64_t random_sites;
  };
  Mark mark() const;
  void return_to(const Mark& mark);
  Tensor parameter(const Param& param, const class Call& call);
  // The i32 scalars that key random numbers; the runtime sets them at each step.
  Tensor seed() { return leaf(ir::Core::input, kSeedInput, {DType::i32, {}}); }
  Tensor step() { return leaf(ir::Core::input, kStepInput, {DType::i32, {}}); }
  std::int64_t next_random_site() { return random_sites_++; }

  // Set while gradients are recorded: new nodes get this call site of the forward pass.
  std::int32_t forced_site = -1;

  static constexpr const char* kSeedInput = "$seed";
  static constexpr const char* kStepInput = "$step";
  static constexpr const char* kRateInput = "$rate";

 private:
  std::uint64_t id_;
  bool training_;
  std::uint64_t model_;
  std::int64_t random_sites_ = 0;
  // Nodes and sites are only ever appended to a graph: what is new is indexed when it is looked
  // for.
  std::map<std::pair<ir::Core, std::string>, ir::NodeId> leaves_;
  ir::NodeId indexed_nodes_ = 0;
  std::unordered_multimap<std::size_t, std::int32_t> sites_;  // by hash
  std::size_t indexed_sites_ = 0;
};

// Makes `builder` the current builder of this thread, which ops append to.
class BuildScope {
 public:
  explicit BuildScope(Builder& builder);
  ~BuildScope();
  BuildScope(const BuildScope&) = delete;
  BuildScope& operator=(const BuildScope&) = delete;

 private:
  Builder* before_;
};

// The current builder of this thread, or null.
Builder* current_builder();

// One op call, linked into the call stack of its thread. Composites open one too, so that all nodes
// inside keep the line of the outermost call, which is the user's.
class Call {
 public:
  Call(std::string_view name, Site site);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  Builder& builder() const { return *builder_; }
  std::string_view name() const { return name_; }

  // Returns the operand as a tensor of this trace. A scalar becomes a constant of `scalar_dtype`.
  Tensor tensor(const Operand& operand, DType scalar_dtype) const;
  // The same with f32 for scalars, for ops that take only real values.
  Tensor tensor(const Operand& operand) const { return tensor(operand, DType::f32); }
  Tensor constant(double value, DType dtype) const;

  Tensor emit(const ir::Primitive& op, const std::vector<Tensor>& in, ir::Attrs attrs = {}) const;

  // Normalises an axis to count from 0; `extra` allows positions behind the last axis (stack).
  int axis(const Tensor& x, int axis, int extra = 0) const;
  // Normalises axes to count from 0, ascending; all axes if none is given.
  std::vector<int> axes(const Tensor& x, const Axes& axes) const;
  // Fails the call if the axis has no elements.
  void require_elements(const Tensor& x, int axis) const;
  void require_f32(std::string_view label, const Tensor& x) const;
  void require_i32(std::string_view label, const Tensor& x) const;

  template <class... Args>
  [[noreturn]] void fail(std::string hint, fmt::format_string<Args...> format,
                         Args&&... args) const {
    fail_text(fmt::format(format, std::forward<Args>(args)...), hint);
  }
  // "x is l1.W f32[1,64]"; includes the name only if x is an input or a parameter.
  std::string describe(std::string_view label, const Tensor& x) const;

 private:
  [[noreturn]] void fail_text(const std::string& rule, const std::string& hint) const;
  const Call& outermost() const;

  std::string_view name_;
  Site site_;
  Call* parent_;
  Builder* builder_;
  mutable std::string scope_;  // module of the last parameter used
};

// The wider of two types, in the order bool, i32, f32.
DType promote(DType a, DType b);
// Broadcasts shapes, right-aligned; fails the call if they do not fit.
Shape broadcast_shapes(const Call& call, const std::vector<Tensor>& tensors,
                       std::initializer_list<std::string_view> labels = {"a", "b"});

}  // namespace tensorgrad::ops
