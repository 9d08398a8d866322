// From a row of the table to what can be run: the graph of its value, the graph of its value and
// gradients, and the numbers of its operands.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "checks/samples.h"
#include "ir/graph.h"
#include "reference/interpret.h"

namespace tensorgrad::checks {

struct SampleGraph {
  ir::Graph forward;  // results: the output "out", and captures
  // Results: those of `forward`, and the gradient of sum(out * cotangent) for each differentiable
  // operand. The same as `forward` where the row has no gradient.
  ir::Graph gradient;
  reference::Leaves leaves;
  std::vector<std::string> differentiable;  // the operands' names, as leaves: "parameter:x0"
};

enum class Cotangent : std::uint8_t {
  drawn,  // an input
  ones,   // a number of the program, as under a loss that is a sum: kernels are given constants
};
SampleGraph build(const Sample& sample, Cotangent cotangent = Cotangent::drawn);

// Whether the row says that it has a gradient; cheap, because every test program asks all rows.
bool has_gradient(const Sample& sample);

// Numbers for an operand, f32 exactly, the same for the same seed.
std::vector<double> draw(const Arg& arg, std::uint32_t seed);
// A seed from a text.
std::uint32_t seed_of(const std::string& text);

}  // namespace tensorgrad::checks
