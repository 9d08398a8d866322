#include "tests/fuzz/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <map>
#include <set>

#include "passes/canonicalise.h"
#include "passes/cse.h"
#include "passes/dce.h"
#include "passes/expand.h"
#include "tests/fuzz/expect.h"

namespace tensorgrad::fuzz {
namespace {

constexpr int kFewRuns = 2, kManyRuns = 24;

struct Pass {
  const char* name;
  ir::Graph (*run)(const ir::Graph&);
};
constexpr Pass kPasses[] = {{"expand", passes::expand},
                            {"canonicalise", passes::canonicalise},
                            {"cse", passes::cse},
                            {"dce", passes::dce}};

ir::Graph simplify(ir::Graph graph, const std::vector<std::string>& without) {
  for (const Pass& pass : kPasses)
    if (std::find(without.begin(), without.end(), pass.name) == without.end()) graph = pass.run(graph);
  ir::verify(graph);
  return graph;
}

Configuration without(std::vector<std::string> names) {
  std::string title = "without";
  for (const std::string& name : names) title += " " + name;
  return {names.empty() ? "as usual" : title, names, {}};
}

Configuration random_subset(Random random) {
  std::vector<std::string> names;
  for (const Pass& pass : kPasses)
    if (random.chance(0.5)) names.push_back(pass.name);
  Configuration made = without(names);
  if (random.chance(0.5)) made.options.fuse = false, made.name += ", without fusion";
  return made;
}

const Configuration kUsual{"as usual", {}, {}};
const Configuration kUnfused{"without fusion", {}, {.fuse = false}};
const Configuration kTwo{"2 threads", {}, {.threads = 2}};
const Configuration kThree{"3 threads", {}, {.threads = 3}};
const Configuration kGuards{"guards", {}, {.guards = true}};
const Configuration kUnfusedGuards{"guards, without fusion", {}, {.fuse = false, .guards = true}};

}  // namespace

std::vector<Configuration> all_configurations() {
  std::vector<Configuration> all{kUsual, kUnfused, kTwo, kThree, kGuards, kUnfusedGuards};
  std::vector<std::string> names;
  for (const Pass& pass : kPasses) {
    all.push_back(without({pass.name}));
    names.push_back(pass.name);
  }
  all.push_back(without(names));
  return all;
}

std::vector<Configuration> configurations(std::uint64_t seed) {
  const std::vector<Configuration> all = all_configurations();
  std::vector<Configuration> chosen{kUsual, kUnfused, seed % 2 ? kTwo : kThree, random_subset(Random(seed))};
  chosen.push_back(all[4 + seed % (all.size() - 4)]);
  return chosen;
}

Verdict check(const Built& built, const std::vector<Configuration>& configurations, const Evaluate& evaluate) {
  using Kind = Verdict::Kind;
  Expected expected;
  try {
    ir::verify(built.graph);
    expected = expect(built.graph, built.leaves, kFewRuns);
  } catch (const std::exception& error) {
    return {Kind::fails, fmt::format("the interpreter: {}", error.what()), "interpreter"};
  }
  if (!expected.finite) return {Kind::unclear, "a value is too large or not finite"};

  const bool flat = built.graph.find(ir::Result::Kind::gradient, ir::kFlat) >= 0;
  bool many = false;
  std::map<std::pair<std::vector<std::string>, bool>, eval::Evaluated> seen;  // by what may decide bits
  for (const Configuration& configuration : configurations) {
    eval::EvalOptions options = configuration.options;
    if (flat) options.parameters = &built.parameters;
    if (flat && options.guards) continue;  // parts of the flat tensor cannot be moved apart
    const auto fail = [&](const std::string& what) { return Verdict{Kind::fails, what, configuration.name}; };
    eval::Evaluated got;
    try {
      got = evaluate(simplify(built.graph, configuration.without), built.leaves, options);
    } catch (const std::exception& error) {
      return fail(error.what());
    }
    if (!got.damage.empty()) return fail(got.damage);
    for (std::size_t r = 0; r < expected.results.size(); ++r) {
      std::string difference = fuzz::difference(expected, r, got.results[r]);
      if (!difference.empty() && !many) {  // a tie that few runs missed?
        many = true;
        expected = expect(built.graph, built.leaves, kManyRuns);
        allow_alike(expected);
        difference = fuzz::difference(expected, r, got.results[r]);
      }
      if (!difference.empty()) return fail(fmt::format("{}: {}", built.graph.results[r].name, difference));
    }
    const auto [first, is_new] = seen.try_emplace({configuration.without, options.fuse}, got);
    if (!is_new && first->second.bits != got.bits) return fail("other bits than with one thread");
  }
  return {Kind::agrees, "", "", sharp_part(expected)};
}

}  // namespace tensorgrad::fuzz
