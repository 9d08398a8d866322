// The expected results of a graph, by the double interpreter, and the error that a device with f32
// arithmetic may have. The error is measured by interpreting again with random roundings. Where a
// rounding decides the result (a comparison near a tie), the measured error is large and the
// element is not checked.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "reference/interpret.h"

namespace tensorgrad::fuzz {

struct Expected {
  std::vector<reference::Value> results;     // one per result of the graph
  std::vector<std::vector<double>> allowed;  // allowed error of each element
  bool finite = true;                        // and small enough to stay so in f32
};

// The largest relative error of an operand or a result.
struct Rounding {
  double part = 0;      // of a number
  double absolute = 0;  // of a logarithm, sine or cosine, however small it is
};
inline constexpr Rounding kOnTheCpu{0x1p-20, 0};      // eight times a float's, so that few runs do
inline constexpr Rounding kOnAGpu{0x1p-18, 0x1p-20};  // what WGSL promises of exp, division and log

// `runs` with roundings; more runs miss fewer ties.
Expected expect(const ir::Graph& graph, const reference::Leaves& leaves, int runs,
                const Rounding& rounding = kOnTheCpu);

// Allows every element of a result twice the error of the worst element: where one of several equal
// values is chosen, roundings decide which.
void allow_alike(Expected& expected);

// The first element whose error is too large; empty if there is none. i32 and bool may differ only
// where a rounding decides.
std::string difference(const Expected& expected, std::size_t result, const reference::Value& got);

// The fraction of elements that are known to three digits.
double sharp_part(const Expected& expected);

// The value of every node with roundings inserted.
std::vector<reference::Value> interpret_rounded(const ir::Graph& graph,
                                                const reference::Leaves& leaves, std::uint64_t seed,
                                                const Rounding& rounding = kOnTheCpu);

}  // namespace tensorgrad::fuzz
