// Program: a random program as plain data. An instruction names a row of the table, earlier values
// as operands, and a few random numbers, its dice, from which the row derives sizes, axes and
// variants. A row makes any operands of the right element types fit, so that a program is still
// valid after the shrinker has removed parts.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "ops/builder.h"
#include "reference/interpret.h"
#include "schedule/layout.h"

namespace tensorgrad::fuzz {

inline constexpr int kDice = 8;
using Dice = std::array<std::uint16_t, kDice>;  // 0 is the simplest choice everywhere

struct Row;

struct Instr {
  const Row* row = nullptr;
  std::vector<int> in;
  Dice dice{};
  bool tame = false;  // applies tanh, because the result grew too large

  friend bool operator==(const Instr&, const Instr&) = default;
};

// Writes the value, made to fit, to a state; or, with value -1, makes a gradient step on a
// parameter.
struct Update {
  int leaf = 0, value = -1;
  friend bool operator==(const Update&, const Update&) = default;
};

struct Program {
  std::vector<std::int64_t> sizes;  // sizes for the axes of leaves
  std::vector<Instr> code;
  std::vector<int> outputs;
  std::vector<int> loss;    // the values it combines; none: no gradients
  std::vector<int> wanted;  // parameters whose gradients are results
  std::vector<Update> updates;
  int optimizer = 0;  // trains the wanted parameters as one flat tensor; 0: none

  // One line per instruction, then the results.
  std::string text() const;
  friend bool operator==(const Program&, const Program&) = default;
};

struct Built {
  ir::Graph graph;
  reference::Leaves leaves;
  schedule::Layout parameters;
  std::vector<ir::NodeId> values;  // of the instructions; empty if an optimizer renumbered them
};

// Throws a UserError if an op refuses its operands, which rows avoid.
Built build(const Program& program);

// Builds one instruction at a time, so that the generator can inspect the values so far.
struct Made {
  Tensor tensor;
  std::int64_t limit = 0;  // i32: values are 0 .. limit-1; 0: unknown
};

class Assembler {
 public:
  explicit Assembler(const std::vector<std::int64_t>& sizes) : sizes_(sizes) {}
  const Made& add(const Instr& instr);
  void drop_last() { values_.pop_back(); }

  ops::Builder builder;
  const std::vector<Made>& values() const { return values_; }
  reference::Leaves leaves;

 private:
  const std::vector<std::int64_t>& sizes_;
  std::vector<Made> values_;
  ir::NodeId checked_ = 0;  // nodes up to here are small enough to run
};

// Values for a leaf: f32 in [low, high), or integers below it.
reference::Value draw(const ir::Type& type, std::uint64_t seed, double low, double high);

// The same sequence on every platform, which the distributions of <random> do not guarantee.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) { state_ = bits() ^ 0xd1b54a32d192ed03u; }
  std::uint64_t bits() {  // splitmix64; mixing keeps neighbouring seeds independent
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  int below(int n) { return static_cast<int>(bits() % static_cast<std::uint64_t>(n)); }
  bool chance(double p) { return unit() < p; }
  double unit() { return static_cast<double>(bits() >> 11) * 0x1p-53; }

 private:
  std::uint64_t state_;
};

}  // namespace tensorgrad::fuzz
