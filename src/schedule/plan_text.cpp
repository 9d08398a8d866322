// Prints a Plan for people: a table of kernels, and under each kernel the tensors that it writes.
#include <fmt/format.h>

#include "ir/primitive.h"
#include "schedule/operand.h"
#include "schedule/plan.h"
#include "support/fail.h"
#include "support/integers.h"

namespace tensorgrad::schedule {

using ir::NodeId;
using ir::Space;

namespace {

// 1234567 as "1.23 M".
std::string scaled(std::int64_t value, const char* unit) {
  const char* const prefixes[] = {"", "k", "M", "G", "T"};
  auto x = static_cast<double>(value);
  int power = 0;
  for (; x >= 999.5 && power < 4; ++power) x /= 1000;
  return fmt::format("{:.{}f} {}{}", x,
                     power == 0  ? 0
                     : x < 9.995 ? 2
                     : x < 99.95 ? 1
                                 : 0,
                     prefixes[power], unit);
}

}  // namespace

std::string_view name(Group::Kind kind) {
  switch (kind) {
    case Group::Kind::rows:
      return "rows";
    case Group::Kind::columns:
      return "columns";
    case Group::Kind::matmul:
      return "matmul";
    case Group::Kind::single:
      return "single";
  }
  return "?";
}

std::string_view Step::kind() const { return copied >= 0 ? "copy" : name(group.kind); }

// The location of the most expensive member: a matmul, a single-node kernel, a reduction; otherwise
// of the first member that has a source line.
std::string Plan::where(const Step& step) const {
  const auto rank = [&](NodeId id) {
    const ir::CallSite& site = graph.sites[usize(graph[id].site)];
    if (site.file.empty()) return 0;
    const ir::Core core = graph[id].op->core;
    if (fused.inlined[usize(id)]) return 1;
    return core == ir::Core::elementwise ? 2 : core == ir::Core::reduce ? 3 : 4;
  };
  NodeId best = -1;
  for (const NodeId id : step.group.nodes)
    if (rank(id) > (best < 0 ? 0 : rank(best))) best = id;
  if (best < 0) return "";
  const ir::CallSite& site = graph.sites[usize(graph[best].site)];
  return fmt::format("{}{}at {}:{}", site.scope, site.scope.empty() ? "" : ", ",
                     base_name(site.file), site.line);
}

std::string Plan::text() const {
  std::int64_t operations = 0, read = 0, written = 0;
  for (const Step& step : steps)
    operations += step.operations, read += step.bytes_read, written += step.bytes_written;
  std::string out =
      fmt::format("plan: {} kernels, {}, {} read, {} written\n", steps.size(),
                  scaled(operations, "flop"), scaled(read, "B"), scaled(written, "B"));
  out += fmt::format("arena: {} bytes; {} bytes live at once at most\n", arena_bytes(),
                     4 * most_alive);
  for (const Space space :
       {Space::parameters, Space::gradients, Space::state, Space::inputs, Space::outputs})
    if (bytes(space)) out += fmt::format("{}: {} bytes\n", ir::name(space), bytes(space));
  out +=
      "\nA line is a kernel: number (and + where it may run at the same time as the one above), "
      "kind, rows x elements\n"
      "of its space (matmul: of its result), arithmetic, bytes read and written, the ops it is "
      "made of; ops in () are\n"
      "computed where they are read and stored nowhere. Layer and line of the user's call follow.\n"
      "Under it is what it writes: node, type, space @ first byte, bytes, last kernel that reads "
      "it.\n\n";
  for (std::size_t s = 0; s < steps.size(); ++s) {
    const Step& step = steps[s];
    std::vector<std::string> names;
    for (const NodeId id : step.group.nodes)
      names.push_back(
          fmt::format(fmt::runtime(fused.inlined[usize(id)] ? "({})" : "{}"), graph[id].op->name));
    std::string space = fmt::format("{}x{}", step.group.lines, step.group.length);
    for (const NodeId id : step.group.nodes)
      if (graph[id].op->core == ir::Core::matmul) space = graph[id].type.shape.text();
    const std::string place = where(step);
    const bool beside = s > 0 && steps[s - 1].stage == step.stage;
    out += fmt::format("{:4}{} {:8}{:16}{:>11}{:>10}{:>10}  {}{}{}\n", s, beside ? "+" : " ",
                       step.kind(), space, scaled(step.operations, "flop"),
                       scaled(step.bytes_read, "B"), scaled(step.bytes_written, "B"),
                       fmt::join(names, " "), place.empty() ? "" : "  # ", place);
    for (const Stored& stored : step.stored) {
      const std::int64_t size = 4 * graph[stored.node].type.shape.count();
      out += fmt::format("       %{:<5} {:20} {} @ {}, {} bytes, {}", stored.node,
                         graph[stored.node].type.text(), ir::name(stored.place.space),
                         4 * stored.place.offset, size,
                         stored.last_use >= static_cast<int>(steps.size())
                             ? "kept"
                             : fmt::format("until {}", stored.last_use));
      out += stored.over >= 0 ? fmt::format(", over %{}\n", stored.over) : "\n";
    }
  }
  return out;
}

}  // namespace tensorgrad::schedule
