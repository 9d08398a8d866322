// Compares a row of the table on a device with the interpreter: value and gradients, within a
// tolerance. Used by the tests on a GPU and by `tg devices --self-test`.
#pragma once

#include <string>
#include <vector>

#include "checks/eval_graph.h"
#include "checks/samples.h"
#include "runtime/device.h"
#include "tensorgrad/completion.h"

namespace tensorgrad::checks {

// The accuracy that a device must have.
struct Demands {
  double looser = 1;       // times the tolerance of the row
  bool non_finite = true;  // also compares elements that must be NaN or infinite
};
Demands demands_of(const runtime::Device& device);

struct Wrong {
  std::string result;  // "out", or the operand whose gradient it is: "gradient of x0"
  eval::Mismatch first;
  std::size_t elements = 0;  // number of wrong elements
};

struct RowOutcome {
  std::vector<Wrong> wrong;
  std::string damage;  // a kernel wrote outside of its results
  double worst = 0;    // the largest error divided by the allowed error

  bool passed() const { return wrong.empty() && damage.empty(); }
  std::string text() const;  // the failures, one line per result; empty if there are none
};

RowOutcome check_row(runtime::Device& device, const Sample& row,
                     const CompileCallback& progress = {});
// The same without waiting: polling the device completes it. Keep the device until then.
Completion<RowOutcome> check_row_later(runtime::Device& device, const Sample& row,
                                       const CompileCallback& progress = {});

// Only compares: results of `graph` in its order.
RowOutcome compare_results(const ir::Graph& graph, const std::vector<reference::Value>& got,
                           const std::vector<reference::Value>& want, double tolerance,
                           const Demands& demands);

// All rows, one of each op in turn, so that any number of the first rows is a fair sample. The rows
// of an op keep the order of the table, where rows that combine ops come last: a software driver
// can take 20 s to compile one of these. Rows of a single element come last of all.
std::vector<const Sample*> rows_by_turns();

}  // namespace tensorgrad::checks
