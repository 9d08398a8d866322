// One seed from beginning to end: generate, check, and where it fails shrink and report.
#pragma once

#include <cstdint>
#include <string>

#include "tests/fuzz/check.h"

namespace tensorgrad::fuzz {

struct Explored {
  Verdict verdict;
  std::string report;  // of a failure: the shrunk program, its graph, how to replay it
};

Explored explore(std::uint64_t seed, const std::string& device = "cpu");

// Checks a program in the configurations of this seed; an op that refuses its operands is unclear.
Verdict check_program(const Program& program, std::uint64_t seed,
                      const std::string& device = "cpu");

}  // namespace tensorgrad::fuzz
