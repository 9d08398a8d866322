// Ops on numbers written down: the value and the gradients are what PyTorch documents or what a
// hand computes. Both the CPU and the interpreter must give them, so that they are not merely
// wrong together.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "checks/samples.h"

namespace tensorgrad::checks {

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kIntMax = std::numeric_limits<std::int32_t>::max();
inline constexpr double kIntMin = std::numeric_limits<std::int32_t>::min();

using Numbers = std::vector<double>;

// A vector of the numbers.
inline Arg vec(Numbers values, DType dtype = f32) {
  const Shape shape{static_cast<std::int64_t>(values.size())};
  return given(shape, std::move(values), dtype);
}

struct Want {
  Numbers value;  // row-major
  // Of sum(value * cotangent) for each f32 operand; none: not asked.
  std::vector<Numbers> gradients = {};
  Numbers cotangent = {1};  // repeated to fill
  double tolerance = 1e-6;  // relative to each number
};

void expect(const std::vector<Arg>& args, const std::function<Tensor(const Tensors&)>& function,
            const Want& want);

// The text of the UserError that tracing the function ends in.
std::string error_of(const std::vector<Arg>& args,
                     const std::function<Tensor(const Tensors&)>& function);

}  // namespace tensorgrad::checks
