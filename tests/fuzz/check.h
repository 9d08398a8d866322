// Compares a built program with the interpreter in several configurations of the compiler: passes
// switched off, fusion on and off, numbers of threads, memory with guards, on the CPU or on a GPU.
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

// Of a program with this seed: the usual one always (on the CPU also no fusion), the others by
// turns.
std::vector<Configuration> configurations(std::uint64_t seed, const std::string& device = "cpu");
// All that any program meets.
std::vector<Configuration> all_configurations(const std::string& device = "cpu");

struct Verdict {
  enum class Kind : std::uint8_t { agrees, unclear, fails };
  Kind kind = Kind::agrees;
  std::string what;           // fails: which result, where, by how much; unclear: why
  std::string configuration;  // fails
  double sharp = 1;           // agrees: the part of the results that was known to three digits
};

using Evaluate = std::function<eval::Evaluated(const ir::Graph&, const reference::Leaves&,
                                               const eval::EvalOptions&)>;

// Errors that are thrown on the way count as failures. `evaluate` can be replaced to test the
// check.
Verdict check(const Built& built, const std::vector<Configuration>& configurations,
              const Evaluate& evaluate = eval::evaluate);

}  // namespace tensorgrad::fuzz
