// Runs one seed: generates a program, checks it, and shrinks and reports a failure.
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

// Checks a program in the configurations of this seed. If an op refuses its operands, the result is
// unclear.
Verdict check_program(const Program& program, std::uint64_t seed,
                      const std::string& device = "cpu");

}  // namespace tensorgrad::fuzz
