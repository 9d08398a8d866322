// Primitive: all that the compiler knows about one op, as one constexpr record. The records stand
// in ops/; the type stands here because graphs point at it.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "ir/index_map.h"
#include "ir/scalar.h"
#include "tensorgrad/tensor.h"

namespace tensorgrad::ir {

// What a gradient rule sees: the node's operands, its result, and the gradient of the result.
struct GradientArgs {
  std::vector<Tensor> in;
  Tensor out;
  Tensor g;
  const Node& node;

  template <class T>
  const T& as() const {
    return node.as<T>();
  }
};

// How a primitive is computed.
enum class Core : std::uint8_t {
  input,  // leaves: they are in memory before the run
  parameter,
  flat_parameters,  // the trained parameters as one tensor: Graph::flat says where each of them is
  state,
  flat_state,  // state with one element per element of the flat parameters
  constant,    // a scalar; iota: its own position
  iota,
  elementwise,  // `scalar` gives the value of one element
  view,         // `view` gives the index map; nothing is computed
  concat,
  reduce,      // `combine` over some axes
  arg_reduce,  // position of the first best element, by `combine` = max or min
  scan,        // running `combine` along an axis
  matmul,
  gather,       // row of a table per id
  take,         // element along an axis per id
  segment_sum,  // adds rows of equal id, in order
  scatter_add,  // adds elements along an axis, in order
  fold,         // adds sliding windows back
  attention,    // of q, k, v and perhaps a start: ir/sequence.h says how its result is packed
  attention_gradient,  // of q, k, v, what attention gave, the gradient of its rows, and perhaps a
                       // start
  selective_scan,      // of u, delta, A_log, B, C and D
  selective_scan_gradient,  // of the same, what the scan gave, and the gradient of y
  composite,                // `expand` writes it with other ops, after differentiation
};

// The ops that the compiler asks for by identity. All others are `other`: their record says all
// that the compiler needs to know.
enum class OpId : std::uint8_t {
  other,
  constant,
  copy,
  add,
  sub,
  mul,
  div,
  neg,
  where,
  softmax,
  reshape,
  permute,
  broadcast_to,
  narrow,
  pad,
  concat,
  stop_gradient,
};
inline constexpr int kOpIds = static_cast<int>(OpId::stop_gradient) + 1;

struct Primitive {
  std::string_view name;
  OpId id = OpId::other;
  Core core = Core::elementwise;
  int arity = 1;          // -1: any number, at least one
  std::size_t attrs = 0;  // which alternative of Attrs
  Type (*type)(std::span<const Type> in, const Attrs& attrs) = nullptr;

  // elementwise: one element of the result from one element of each operand
  Reg (*scalar)(ScalarProgram& p, std::span<const Reg> in, const Attrs& attrs) = nullptr;
  // view: from the map of the operand to the map of the result
  IndexMap (*view)(const IndexMap& in, const Attrs& attrs) = nullptr;
  // reduce, arg_reduce, scan
  Combine combine = Combine::none;
  // composite: the same value from simpler ops
  Tensor (*expand)(const std::vector<Tensor>& in, const Attrs& attrs) = nullptr;

  // Checks that a run makes: the rule that was broken, for messages; empty when it is about ids out
  // of range.
  std::string_view broken = {};

  // The gradient of each operand, written with ops; an invalid Tensor for none. Null when the
  // op has no gradient at all.
  std::vector<Tensor> (*gradient)(const GradientArgs& d) = nullptr;
};

inline bool is(const Node& node, OpId id) { return node.op->id == id; }

inline bool is_leaf(Core core) { return core <= Core::flat_state; }
inline bool is_leaf(const Node& node) { return is_leaf(node.op->core); }
// Parameters and state: a run may overwrite them.
inline bool is_writable(const Node& node) { return is_leaf(node) && node.op->core != Core::input; }
// The target that an update of this leaf has. The leaf is writable.
inline Target target_of(const Node& leaf) {
  const Core core = leaf.op->core;
  return {core == Core::flat_parameters || core == Core::flat_state, leaf.as<LeafAttrs>().name};
}

// The alternative of Attrs that holds T.
template <class T, std::size_t I = 0>
constexpr std::size_t attrs_index() {
  if constexpr (std::is_same_v<std::variant_alternative_t<I, Attrs>, T>)
    return I;
  else
    return attrs_index<T, I + 1>();
}

}  // namespace tensorgrad::ir
