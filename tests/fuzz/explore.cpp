#include "tests/fuzz/explore.h"

#include <fmt/format.h>

#include "support/fail.h"
#include "tests/fuzz/generate.h"
#include "tests/fuzz/shrink.h"
#include "tests/fuzz/slope.h"

namespace tensorgrad::fuzz {

Verdict check_program(const Program& program, std::uint64_t seed, const std::string& device) {
  Built built;
  try {
    built = build(program);
  } catch (const UserError& error) {
    return {Verdict::Kind::unclear, error.what()};
  } catch (const std::exception& error) {
    return {Verdict::Kind::fails, error.what(), "build"};
  }
  Verdict verdict = check(built, configurations(seed, device));
  if (verdict.kind != Verdict::Kind::agrees || device != "cpu")
    return verdict;  // gradients are the same everywhere
  if (const std::string slope = slope_difference(built, seed); !slope.empty())
    return {Verdict::Kind::fails, slope, "differentiate"};
  return verdict;
}

Explored explore(std::uint64_t seed, const std::string& device) {
  const Program program = generate(seed);
  Explored out{check_program(program, seed, device), ""};
  if (out.verdict.kind != Verdict::Kind::fails) return out;
  Verdict last = out.verdict;
  const Program small = shrink(program, [&](const Program& candidate) {
    const Verdict verdict = check_program(candidate, seed, device);
    const bool same =
        verdict.kind == Verdict::Kind::fails && verdict.configuration == out.verdict.configuration;
    if (same) last = verdict;
    return same;
  });
  out.report = fmt::format("seed {} fails ({}): {}\nshrunk from {} instructions to {}: {}\n{}",
                           seed, out.verdict.configuration, out.verdict.what, program.code.size(),
                           small.code.size(), last.what, small.text());
  if (last.configuration != "build") out.report += ir::print(build(small).graph);
  out.report +=
      fmt::format("replay: build/release/tests/test_fuzz --device {} --seed {}\n", device, seed);
  return out;
}

}  // namespace tensorgrad::fuzz
