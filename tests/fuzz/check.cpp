#include "tests/fuzz/check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <exception>
#include <map>

#include "passes/pipeline.h"
#include "schedule/arena.h"
#include "schedule/fuse.h"
#include "tests/fuzz/expect.h"

namespace tensorgrad::fuzz {
namespace {

constexpr int kFewRuns = 2, kManyRuns = 24;

// The passes of stage simplify and the parts of the scheduler.
std::vector<std::string> parts() {
  std::vector<std::string> names;
  for (const passes::Pass& pass : passes::pipeline()) names.emplace_back(pass.name);
  for (const schedule::Switch& part : schedule::switches()) names.emplace_back(part.name);
  return names;
}

Configuration with_all(int threads, bool guards = false) {
  return {fmt::format("{} threads{}", threads, guards ? ", guards" : ""),
          {.threads = threads, .simplify = true, .guards = guards}};
}

// Temporaries are in several arenas, and stages run their kernels in reverse order.
Configuration in_pieces() {
  return {"in pieces, backwards",
          {.threads = 1, .simplify = true, .piece = 128, .backwards = true}};
}

Configuration without(const std::vector<std::string>& names, int threads = 1) {
  return {fmt::format("without {}", fmt::join(names, " ")),
          {.threads = threads, .simplify = true, .without = names}};
}

Configuration random_subset(Random random) {
  std::vector<std::string> names;
  for (const std::string& part : parts())
    if (random.chance(part == "fuse" ? 0.1 : 0.4)) names.push_back(part);
  return without(names, 2);
}

// The same on a GPU, where the number of threads has no meaning.
Configuration on(const std::string& device, Configuration configuration) {
  eval::EvalOptions& options = configuration.options;
  options.device = device;
  const std::string what = options.guards                        ? ", guards"
                           : options.piece < schedule::kOnePiece ? ", in pieces, backwards"
                           : options.without.empty()             ? ""
                                                                 : " " + configuration.name;
  return {device + what, options};
}

}  // namespace

std::vector<Configuration> all_configurations(const std::string& device) {
  std::vector<Configuration> all{with_all(1),       with_all(2), with_all(3),
                                 with_all(2, true), in_pieces(), without(parts())};
  for (const std::string& part : parts()) all.push_back(without({part}));
  if (device == "cpu") return all;
  all.erase(all.begin() + 2);  // with one repetition
  for (Configuration& configuration : all) configuration = on(device, configuration);
  return all;
}

std::vector<Configuration> configurations(std::uint64_t seed, const std::string& device) {
  std::vector<Configuration> all = all_configurations(device);
  if (device == "cpu")
    return {with_all(1), without({"fuse"}),           with_all(seed % 2 ? 2 : 3),
            in_pieces(), random_subset(Random(seed)), all[3 + seed % (all.size() - 3)]};
  // Compiling shaders takes long, so run only one more configuration besides the repetition.
  all.push_back(on(device, random_subset(Random(seed))));
  return {all[0], all[1], all[2 + seed % (all.size() - 2)]};
}

Verdict check(const Built& built, const std::vector<Configuration>& configurations,
              const Evaluate& evaluate) {
  using Kind = Verdict::Kind;
  const Rounding rounding = configurations.at(0).options.device == "cpu" ? kOnTheCpu : kOnAGpu;
  Expected expected;
  try {
    ir::verify(built.graph);
    expected = expect(built.graph, built.leaves, kFewRuns, rounding);
  } catch (const std::exception& error) {
    return {Kind::fails, fmt::format("the interpreter: {}", error.what()), "interpreter"};
  }
  if (!expected.finite) return {Kind::unclear, "a value is too large or not finite"};

  const bool flat = built.graph.find(ir::Result::Kind::flat_gradient, "") >= 0;
  bool many = false;
  // Results may differ by the passes left out. On a GPU also by memory layout, because that is text
  // of the shader, and a driver may then fuse other multiplications and additions.
  std::map<std::vector<std::string>, eval::Evaluated> seen;
  for (const Configuration& configuration : configurations) {
    eval::EvalOptions options = configuration.options;
    if (flat) options.parameters = &built.parameters;
    if (flat && options.guards) continue;  // the flat tensor must stay contiguous
    const auto fail = [&](const std::string& what) {
      return Verdict{Kind::fails, what, configuration.name};
    };
    eval::Evaluated got;
    try {
      got = evaluate(built.graph, built.leaves, options);
    } catch (const std::exception& error) {
      return fail(error.what());
    }
    if (!got.damage.empty()) return fail(got.damage);
    for (std::size_t r = 0; r < expected.results.size(); ++r) {
      std::string difference = fuzz::difference(expected, r, got.results[r]);
      if (!difference.empty() && !many) {  // maybe a tie that the runs with roundings missed
        many = true;
        expected = expect(built.graph, built.leaves, kManyRuns, rounding);
        allow_alike(expected);
        difference = fuzz::difference(expected, r, got.results[r]);
      }
      if (!difference.empty())
        return fail(fmt::format("{}: {}", built.graph.results[r].name, difference));
    }
    std::vector<std::string> key = options.without;
    if (options.device != "cpu" && (options.piece < schedule::kOnePiece || options.guards))
      key.push_back(configuration.name);
    const auto [first, is_new] = seen.try_emplace(key, got);
    if (!is_new && first->second.bits != got.bits) return fail("other bits than the first time");
  }
  return {Kind::agrees, "", "", sharp_part(expected)};
}

}  // namespace tensorgrad::fuzz
