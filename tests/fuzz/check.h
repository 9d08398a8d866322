// Compares a built program with the interpreter in several configurations of the compiler: passes
// left out, fusion on and off, numbers of threads, memory with guards, on the CPU or on a GPU.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "checks/eval_graph.h"
#include "tests/fuzz/program.h"

namespace tensorgrad::fuzz {

struct Configuration {
  std::string name;
  eval::EvalOptions options;
};

// The configurations for a program with this seed: always the usual one (on the CPU also no
// fusion), the others in turn.
std::vector<Configuration> configurations(std::uint64_t seed, const std::string& device = "cpu");
// All configurations.
std::vector<Configuration> all_configurations(const std::string& device = "cpu");

struct Verdict {
  enum class Kind : std::uint8_t { agrees, unclear, fails };
  Kind kind = Kind::agrees;
  std::string what;           // fails: which result, where, by how much; unclear: why
  std::string configuration;  // fails
  double sharp = 1;           // agrees: the fraction of the results that was known to three digits
};

using Evaluate = std::function<eval::Evaluated(const ir::Graph&, const reference::Leaves&,
                                               const eval::EvalOptions&)>;

// Exceptions count as failures. `evaluate` can be replaced to test the check.
Verdict check(const Built& built, const std::vector<Configuration>& configurations,
              const Evaluate& evaluate = eval::evaluate);

}  // namespace tensorgrad::fuzz
