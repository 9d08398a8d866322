// The validity rules for nodes and results of a Graph. The parser checks each line with them and
// verify() checks a whole graph, so the two always agree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "ir/graph.h"
#include "ir/primitive.h"

namespace tensorgrad::ir {

// Returns "takes 2 operands, not 3", or an empty string if the arity is right.
std::string arity_fault(const Primitive& op, std::size_t operands);

// Checks ranges, nodes and results in graph order and remembers the names seen so far. Each check
// returns the error as text, or an empty string if there is none.
class Checker {
 public:
  explicit Checker(const Graph& graph) : graph_(graph) {}

  std::string node(NodeId id);
  std::string range(const FlatRange& range);
  std::string result(const Result& result);

 private:
  std::string leaf(const Node& node, NodeId id);
  std::string flat_gradient(const Result& result) const;
  std::string update(const Result& result) const;

  const Graph& graph_;
  std::map<std::pair<Core, std::string>, NodeId> leaves_;  // by op and name
  std::set<std::pair<Result::Kind, std::string>> results_;
  std::set<std::string> ranges_;    // names of the parameters
  std::int64_t end_of_ranges_ = 0;  // end of the last range in the flat parameters
};

}  // namespace tensorgrad::ir
