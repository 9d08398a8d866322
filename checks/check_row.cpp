#include "checks/check_row.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <map>
#include <memory>

#include "checks/sample_graph.h"
#include "runtime/device.h"

namespace tensorgrad::checks {
namespace {

std::string result_name(const ir::Result& result) {
  return result.kind == ir::Result::Kind::gradient ? "gradient of " + result.name : result.name;
}

std::int64_t operand_elements(const Sample& sample) {
  std::int64_t count = 0;
  for (const Arg& arg : sample.args) count += arg.shape.count();
  return count;
}

RowOutcome outcome_of(const eval::Evaluated& got, const SampleGraph& made, const Sample& row,
                      const Demands& demands) {
  const auto want = eval::interpret_results(made.gradient, made.leaves);
  RowOutcome out = compare_results(made.gradient, got.results, want, row.tolerance, demands);
  out.damage = got.damage;
  return out;
}

}  // namespace

// On GPUs, exp, log, sin and the like are less exact than in libm, sums are computed in f32, and
// WGSL guarantees nothing for non-finite values.
Demands demands_of(const runtime::Device& device) {
  const bool cpu = device.threads() > 0;
  return cpu ? Demands{} : Demands{.looser = 8, .non_finite = false};
}

std::string RowOutcome::text() const {
  std::string lines = damage;
  for (const Wrong& result : wrong) {
    if (!lines.empty()) lines += '\n';
    lines += fmt::format("{}: {}", result.result, result.first.text());
    if (result.elements > 1) lines += fmt::format(" and {} more", result.elements - 1);
  }
  return lines;
}

RowOutcome compare_results(const ir::Graph& graph, const std::vector<reference::Value>& got,
                           const std::vector<reference::Value>& want, double tolerance,
                           const Demands& demands) {
  RowOutcome out;
  for (std::size_t i = 0; i < want.size(); ++i) {
    reference::Value wanted = want[i];
    for (std::size_t j = 0; j < wanted.data.size(); ++j)
      if (!demands.non_finite && !std::isfinite(wanted.data[j])) wanted.data[j] = got[i].data[j];
    const eval::Comparison found = eval::compare(got[i], wanted, demands.looser * tolerance);
    out.worst = std::max(out.worst, found.worst);
    if (!found.wrong.empty())
      out.wrong.push_back({result_name(graph.results[i]), found.wrong.front(), found.wrong.size()});
  }
  return out;
}

Completion<RowOutcome> check_row_later(runtime::Device& device, const Sample& row,
                                       const CompileCallback& progress) {
  const auto made = std::make_shared<const SampleGraph>(build(row));
  const auto got = eval::evaluate_later(device, made->gradient, made->leaves,
                                        {.simplify = true, .progress = progress});
  const Completion<RowOutcome> out;
  got.then([&device, &row, made, out](const Completion<eval::Evaluated>& self) {
    try {
      out.set(outcome_of(self.get(), *made, row, demands_of(device)));
    } catch (const runtime::IndexFailure& failure) {  // a failure of the row: no row has bad ids
      RowOutcome refused;
      refused.damage = fmt::format("id {} was refused, and is none of the row's", failure.value);
      refused.worst = HUGE_VAL;
      out.set(refused);
    } catch (...) {
      out.set_error(std::current_exception());
    }
  });
  return out;
}

RowOutcome check_row(runtime::Device& device, const Sample& row, const CompileCallback& progress) {
  return wait_for(device, check_row_later(device, row, progress), "a row");
}

std::vector<const Sample*> rows_by_turns() {
  std::map<std::string, std::vector<const Sample*>> of_op;
  for (const Sample& row : samples()) of_op[row.op].push_back(&row);
  std::vector<const Sample*> out;
  std::size_t longest = 0;
  for (auto& [op, rows] : of_op) {
    std::stable_partition(rows.begin(), rows.end(),
                          [](const Sample* row) { return operand_elements(*row) > 1; });
    longest = std::max(longest, rows.size());
  }
  for (std::size_t turn = 0; turn < longest; ++turn)
    for (const auto& [op, rows] : of_op)
      if (turn < rows.size()) out.push_back(rows[turn]);
  return out;
}

}  // namespace tensorgrad::checks
