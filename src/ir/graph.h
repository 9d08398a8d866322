// Graph: a program as typed ops over static shapes, in topological order. The meaning of an op is
// its Primitive, a constexpr record defined in ops/; a Graph only points at it. Passes may assume
// that every node's inputs come before it and that its type follows from the type rule of its
// record.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "ir/attrs.h"
#include "support/integers.h"
#include "tensorgrad/shape.h"

namespace tensorgrad::ir {

struct Primitive;

using NodeId = std::int32_t;

struct Type {
  DType dtype = DType::f32;
  Shape shape;

  std::string text() const;  // "f32[32,784]"
  bool operator==(const Type&) const = default;
};

// The origin of a node: the user's source line, the module whose parameter it uses, and the
// composite (softmax, cross_entropy, ...) that the user called. The composite is empty if the user
// called the op directly.
struct CallSite {
  std::string file;
  int line = 0;
  std::string scope;
  std::string composite;
  bool operator==(const CallSite&) const = default;
};

struct Node {
  const Primitive* op = nullptr;
  std::vector<NodeId> inputs;
  Attrs attrs;
  Type type;
  std::int32_t site = 0;  // index into Graph::sites

  template <class T>
  const T& as() const {
    return std::get<T>(attrs);
  }
};

// A value that a run returns or keeps. An update writes a parameter or state after everything else
// has been computed.
struct Result {
  enum class Kind : std::uint8_t {
    output,
    capture,
    gradient,       // of the parameter with that name
    update,         // of the parameter or the state with that name
    flat_gradient,  // of the flat parameters; it has no name
    flat_update,    // of the flat state with that name; without a name, of the flat parameters
  };
  Kind kind = Kind::output;
  std::string name;
  NodeId node = -1;
};

inline bool is_update(const Result& result) {
  return result.kind == Result::Kind::update || result.kind == Result::Kind::flat_update;
}

// A tensor that an update may overwrite.
struct Target {
  bool flat = false;
  std::string_view name;
  bool operator==(const Target&) const = default;
  friend bool operator<(const Target& a, const Target& b) {
    return std::tie(a.flat, a.name) < std::tie(b.flat, b.name);
  }
};
inline Target target_of(const Result& update) {
  return {update.kind == Result::Kind::flat_update, update.name};
}

// The flat parameters are one tensor that contains the trained parameters. A FlatRange is the
// location of one parameter in it. Elements between the ranges belong to no parameter and are zero.
struct FlatRange {
  std::string parameter;
  std::int64_t offset = 0, elements = 0;
  bool operator==(const FlatRange&) const = default;
};

struct Graph {
  std::vector<Node> nodes;
  std::vector<Result> results;
  std::vector<FlatRange> flat;              // ascending; empty if there are no flat parameters
  std::vector<CallSite> sites{CallSite{}};  // the first one means "unknown"

  const Node& operator[](NodeId id) const { return nodes[usize(id)]; }
  Node& operator[](NodeId id) { return nodes[usize(id)]; }
  NodeId size() const { return static_cast<NodeId>(nodes.size()); }

  // Appends a node and derives its type from its record. Throws BrokenRule if a rule is violated.
  NodeId append(const Primitive& op, std::vector<NodeId> inputs, Attrs attrs,
                std::int32_t site = 0);
  // Returns the index of a call site. Equal call sites have equal indices.
  std::int32_t intern(const CallSite& site);
  // Returns the node of the result, or -1.
  NodeId find(Result::Kind kind, std::string_view name) const;
};

// Marks each node that a result needs.
std::vector<bool> live_nodes(const Graph& graph);
// Whether the node checks ids at run time.
bool checks_ids(const Node& node);

// Prints one line per node. parse(print(g)) equals g.
std::string print(const Graph& graph);
std::string print_node(const Graph& graph, NodeId id);

// Parses the output of print. `find` returns the record with that name, or null. Throws UserErrors
// with the line number.
using FindPrimitive = const Primitive* (*)(std::string_view name);
Graph parse(std::string_view text, FindPrimitive find);

// Throws InternalError if the graph violates a rule: order, arity, attributes, types, results.
void verify(const Graph& graph);

// Depends on structure, types and attributes, but not on call sites.
std::uint64_t structural_hash(const Graph& graph);

bool equal(const Attrs& a, const Attrs& b);
std::uint64_t hash(const Attrs& attrs);
std::string print(const Attrs& attrs);  // "{axis=1, start=2, length=3}", or empty

}  // namespace tensorgrad::ir
