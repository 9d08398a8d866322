// What a graph's results should be, by the double interpreter, and how far from that a device that
// rounds to f32 may be: measured, by interpreting again with roundings put in at random. Where a
// rounding decides (a comparison near a tie), the measure is large and the element says nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "reference/interpret.h"

namespace tensorgrad::fuzz {

struct Expected {
  std::vector<reference::Value> results;     // one for each of graph.results
  std::vector<std::vector<double>> allowed;  // how far each element may be off
  bool finite = true;                        // and small enough to stay so in f32
};

// How much of an operand or a result is lost at most.
struct Rounding {
  double part = 0;      // of a number
  double absolute = 0;  // of a logarithm, sine or cosine, however small it is
};
inline constexpr Rounding kOnTheCpu{0x1p-20, 0};      // eight times a float's, so that few runs do
inline constexpr Rounding kOnAGpu{0x1p-18, 0x1p-20};  // what WGSL promises of exp, division and log

// `runs` with roundings; more of them miss fewer ties.
Expected expect(const ir::Graph& graph, const reference::Leaves& leaves, int runs,
                const Rounding& rounding = kOnTheCpu);

// Every element of a result may be off as far as the worst of them and as far again: where one of
// several equal numbers is chosen, roundings decide which.
void allow_alike(Expected& expected);

// The first element that is off by more than allowed; empty when there is none. i32 and bool are
// allowed to be off only where a rounding decides.
std::string difference(const Expected& expected, std::size_t result, const reference::Value& got);

// The part of all elements that are known to three digits.
double sharp_part(const Expected& expected);

// Every node's value with roundings put in.
std::vector<reference::Value> interpret_rounded(const ir::Graph& graph,
                                                const reference::Leaves& leaves, std::uint64_t seed,
                                                const Rounding& rounding = kOnTheCpu);

}  // namespace tensorgrad::fuzz
