// What makes a node or a result of a Graph valid: asked by the parser about each line it reads and
// by verify() about a whole graph, so that the two never disagree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "ir/graph.h"

namespace tensorgrad::ir {

// "takes 2 operands, not 3", or empty when the number is right.
std::string arity_fault(const Primitive& op, std::size_t operands);

// Asked about ranges, nodes and results in the graph's order; remembers the names it has seen. An
// answer says what is wrong; it is empty when nothing is.
class Checker {
 public:
  explicit Checker(const Graph& graph) : graph_(graph) {}

  std::string node(NodeId id);
  std::string range(const FlatRange& range);
  std::string result(const Result& result);

 private:
  std::string leaf(const Node& node, NodeId id);
  std::string update(const Result& result) const;

  const Graph& graph_;
  std::map<std::pair<std::string, std::string>, NodeId> leaves_;  // by op and name
  std::set<std::pair<Result::Kind, std::string>> results_;
  std::set<std::string> ranges_;    // names of their parameters
  std::int64_t end_of_ranges_ = 0;  // of the flat parameters
};

}  // namespace tensorgrad::ir
