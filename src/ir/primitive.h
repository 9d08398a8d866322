// Primitive: everything that the compiler knows about one op, as one constexpr record. The records
// are in ops/; the type is here because graphs point at it.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "ir/index_map.h"
#include "ir/scalar.h"
#include "tensorgrad/tensor.h"

namespace tensorgrad::ir {

// The arguments of a gradient rule: the node's operands, its result, and the gradient of the
// result.
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
  input,  // leaves: in memory before the run
  parameter,
  flat_parameters,  // the trained parameters as one tensor: Graph::flat has the location of each
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
  gather,       // one row of a table per id
  take,         // one element along an axis per id
  segment_sum,  // adds rows with equal ids, in order
  scatter_add,  // adds elements along an axis, in order
  fold,         // adds sliding windows back
  attention,    // of q, k, v and optionally a start: ir/sequence.h describes the packed result
  attention_gradient,       // of q, k, v, the result of attention, the gradient of its rows, and
                            // optionally a start
  selective_scan,           // of u, delta, A_log, B, C and D
  selective_scan_gradient,  // of the same operands, the result of the scan, and the gradient of y
  composite,                // `expand` rewrites it with other ops, after differentiation
};

// The ops that the compiler tests for by identity. All others are `other`: their record contains
// everything that the compiler needs to know.
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
  std::size_t attrs = 0;  // index of the alternative of Attrs
  Type (*type)(std::span<const Type> in, const Attrs& attrs) = nullptr;

  // elementwise: one element of the result from one element of each operand
  Reg (*scalar)(ScalarProgram& p, std::span<const Reg> in, const Attrs& attrs) = nullptr;
  // view: from the map of the operand to the map of the result
  IndexMap (*view)(const IndexMap& in, const Attrs& attrs) = nullptr;
  // reduce, arg_reduce, scan
  Combine combine = Combine::none;
  // composite: the same value from simpler ops
  Tensor (*expand)(const std::vector<Tensor>& in, const Attrs& attrs) = nullptr;

  // For run-time checks: the rule that was violated, for messages. Empty if the check is for ids
  // out of range.
  std::string_view broken = {};

  // Returns the gradient of each operand, written with ops; an invalid Tensor means no gradient.
  // Null if the op has no gradient at all.
  std::vector<Tensor> (*gradient)(const GradientArgs& d) = nullptr;
};

inline bool is(const Node& node, OpId id) { return node.op->id == id; }

inline bool is_leaf(Core core) { return core <= Core::flat_state; }
inline bool is_leaf(const Node& node) { return is_leaf(node.op->core); }
// Parameters and state, which a run may overwrite.
inline bool is_writable(const Node& node) { return is_leaf(node) && node.op->core != Core::input; }
// The target of an update of this leaf. The leaf must be writable.
inline Target target_of(const Node& leaf) {
  const Core core = leaf.op->core;
  return {core == Core::flat_parameters || core == Core::flat_state, leaf.as<LeafAttrs>().name};
}

// The index of the alternative of Attrs that holds T.
template <class T, std::size_t I = 0>
constexpr std::size_t attrs_index() {
  if constexpr (std::is_same_v<std::variant_alternative_t<I, Attrs>, T>)
    return I;
  else
    return attrs_index<T, I + 1>();
}

}  // namespace tensorgrad::ir
