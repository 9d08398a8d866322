// Makes a row of the table runnable: the graph of its value, the graph of its value and gradients,
// and the values of its operands.
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
  // The results of `forward`, and the gradient of sum(out * cotangent) for each differentiable
  // operand. Equal to `forward` if the row has no gradient.
  ir::Graph gradient;
  reference::Leaves leaves;
  std::vector<std::string> differentiable;  // the operands' names, as leaves: "parameter:x0"
};

enum class Cotangent : std::uint8_t {
  drawn,  // an input
  ones,   // a constant, as under a loss that is a sum
};
SampleGraph build(const Sample& sample, Cotangent cotangent = Cotangent::drawn);

// Whether the row has a gradient. Cheap, because every test program asks it for all rows.
bool has_gradient(const Sample& sample);

// Values for an operand, exactly f32, the same for the same seed.
std::vector<double> draw(const Arg& arg, std::uint32_t seed);
// Hashes a text to a seed.
std::uint32_t seed_of(const std::string& text);

}  // namespace tensorgrad::checks
