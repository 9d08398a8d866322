// A row of the table on a device against the interpreter: value and gradients, and how far they may
// be off. The one implementation behind the tests on a GPU and `tg devices --self-test`.
#pragma once

#include <string>
#include <vector>

#include "checks/eval_graph.h"
#include "checks/samples.h"
#include "runtime/device.h"

namespace tensorgrad::checks {

// What a device owes.
struct Demands {
  double looser = 1;       // times the tolerance of the row
  bool non_finite = true;  // elements that are to be NaN or infinity count
};
Demands demands_of(const runtime::Device& device);

struct Wrong {
  std::string result;  // "out", or the operand whose gradient it is: "gradient of x0"
  eval::Mismatch first;
  std::size_t elements = 0;  // how many are wrong
};

struct RowOutcome {
  std::vector<Wrong> wrong;
  std::string damage;  // memory changed that no kernel may write
  double worst = 0;    // the largest error as a share of what is allowed

  bool passed() const { return wrong.empty() && damage.empty(); }
  std::string text() const;  // what is wrong, a line for each result; empty when nothing is
};

RowOutcome check_row(runtime::Device& device, const Sample& row,
                     const CompileCallback& progress = {});

// The comparison alone: results of `graph` in its order.
RowOutcome compare_results(const ir::Graph& graph, const std::vector<reference::Value>& got,
                           const std::vector<reference::Value>& want, double tolerance,
                           const Demands& demands);

// All rows, in turns of one of each op, so that any number of the first are a fair sample. An op's
// rows come as in the table, where those that combine ops are last: a software driver can take 20 s
// to compile one of these. Rows of a single element come after the others.
std::vector<const Sample*> rows_by_turns();

}  // namespace tensorgrad::checks
