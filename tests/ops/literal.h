// Ops on explicit values: the expected value and gradients are documented by PyTorch or computed by
// hand. Both the CPU and the interpreter must give them, so that they are not wrong in the same
// way.
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

// A vector of the values.
inline Arg vec(Numbers values, DType dtype = f32) {
  const Shape shape{static_cast<std::int64_t>(values.size())};
  return given(shape, std::move(values), dtype);
}

struct Want {
  Numbers value;  // row-major
  // Gradients of sum(value * cotangent) for each f32 operand; none: not checked.
  std::vector<Numbers> gradients = {};
  Numbers cotangent = {1};  // repeated to fill
  double tolerance = 1e-6;  // relative to each value
};

void expect(const std::vector<Arg>& args, const std::function<Tensor(const Tensors&)>& function,
            const Want& want);

// The text of the UserError that tracing the function throws.
std::string error_of(const std::vector<Arg>& args,
                     const std::function<Tensor(const Tensors&)>& function);

}  // namespace tensorgrad::checks
