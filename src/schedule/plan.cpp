#include "schedule/plan.h"

#include <algorithm>
#include <utility>

#include "schedule/placing.h"
#include "support/integers.h"
#include "support/order.h"

namespace tensorgrad::schedule {

using ir::Graph;

std::int64_t Plan::arena_bytes() const {
  std::int64_t out = 0;
  for (int i = 0; i < ir::kArenas; ++i) out += bytes(ir::arena(i));
  return out;
}

namespace {

// Puts the groups of one stage into separate stages, those that write least first.
Fused apart(const Plan& plan, int stage) {
  Fused out = plan.fused;
  const auto first = std::find_if(out.groups.begin(), out.groups.end(),
                                  [&](const Group& g) { return g.stage == stage; });
  const auto last =
      std::find_if(first, out.groups.end(), [&](const Group& g) { return g.stage != stage; });
  const std::size_t begin = usize(first - out.groups.begin());
  std::vector<std::int64_t> written;
  for (std::size_t g = begin; g < usize(last - out.groups.begin()); ++g)
    written.push_back(plan.steps[g].bytes_written);
  std::vector<int> renamed(out.groups.size());
  for (std::size_t g = 0; g < renamed.size(); ++g) renamed[g] = static_cast<int>(g);
  std::vector<Group> sorted(out.groups.begin(), first);
  int turn = 0;
  for (const std::size_t i : order_by(written)) {
    const std::size_t g = begin + i;
    renamed[g] = static_cast<int>(sorted.size());
    sorted.push_back(plan.fused.groups[g]);
    sorted.back().stage = stage + turn++;
  }
  for (auto g = last; g != out.groups.end(); ++g) {
    sorted.push_back(*g);
    sorted.back().stage += turn - 1;
  }
  out.groups = std::move(sorted);
  for (int& g : out.group)
    if (g >= 0) g = renamed[usize(g)];
  return out;
}

bool shares_stage(const Plan& plan, int stage) {
  return std::count_if(plan.fused.groups.begin(), plan.fused.groups.end(),
                       [&](const Group& g) { return g.stage == stage; }) > 1;
}

// The minimum saving in bytes that justifies one more stage.
std::int64_t worthwhile(std::int64_t arena_bytes, const ir::DeviceModel& model) {
  return std::max(model.take_turns.bytes, arena_bytes / model.take_turns.share);
}

}  // namespace

Plan plan(const Graph& graph, Fused fused, const Layouts& layouts, const ir::DeviceModel& model,
          const std::vector<std::string>& without, std::int64_t piece) {
  Plan best = place(graph, std::move(fused), layouts, without, piece);
  // Kernels that run concurrently need their memory at the same time. If this determines the peak,
  // they run one after the other.
  while (shares_stage(best, best.peak_stage)) {
    Plan other = place(graph, apart(best, best.peak_stage), layouts, without, piece);
    if (other.arena_bytes() + worthwhile(best.arena_bytes(), model) > best.arena_bytes()) break;
    best = std::move(other);
  }
  return best;
}

}  // namespace tensorgrad::schedule
