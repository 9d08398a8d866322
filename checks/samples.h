// The table of samples: each row says how to call an op, with which operands, and how exact the
// result must be. The tests in tests/ops and `tg devices --self-test` use this table. A new op
// needs a row; coverage_test checks that.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tensorgrad/ops.h"

namespace tensorgrad::checks {

using Tensors = std::vector<Tensor>;

// One operand: its type and its values. Random values depend only on the name of the row.
struct Arg {
  DType dtype = f32;
  Shape shape;
  double low = -2, high = 2;        // range of uniform random values; i32: both ends included
  std::vector<double> values = {};  // instead of random values; repeated to fill the shape
  std::vector<double> avoid = {};   // where the derivative jumps: no value is near
  double step = 0, phase = 0;       // only values (n + phase) * step; 0: any value
  bool spread = false;              // no two values are near each other
  bool differentiable = true;       // f32 only

  Arg away_from(std::vector<double> points) const { return with(&Arg::avoid, std::move(points)); }
  // Two operands on grids of different phase are never near each other.
  Arg on_grid(double distance, double shift) const {
    return with(&Arg::step, distance).with(&Arg::phase, shift);
  }
  Arg apart() const { return with(&Arg::spread, true); }
  Arg fixed() const { return with(&Arg::differentiable, false); }

 private:
  template <class T>
  Arg with(T Arg::*field, T value) const {
    Arg copy = *this;
    copy.*field = std::move(value);
    return copy;
  }
};

inline Arg real(const Shape& shape, double low = -2, double high = 2) {
  return {f32, shape, low, high};
}
inline Arg ints(const Shape& shape, int low, int high) {
  return {i32, shape, static_cast<double>(low), static_cast<double>(high)};
}
inline Arg bools(const Shape& shape) { return {boolean, shape, 0, 1}; }
inline Arg given(const Shape& shape, std::vector<double> values, DType dtype = f32) {
  return {dtype, shape, 0, 0, std::move(values)};
}

struct Sample {
  std::string op;       // a function or operator of tensorgrad/ops.h
  std::string variant;  // the purpose of this row
  std::vector<Arg> args;
  std::function<Tensor(const Tensors&)> function;
  // Allowed error of value and gradients, relative to max(1, largest value).
  double tolerance = 2e-6;
  // False if the gradient is not the derivative, or if the values are where it jumps.
  bool differentiable = true;

  // Letters, digits and underscores: "softmax_middle_axis".
  std::string name() const;
};

using Samples = std::vector<Sample>;
using In = const Tensors&;

// For ops whose value is not f32.
inline Samples without_gradient(Samples rows) {
  for (Sample& row : rows) row.differentiable = false;
  return rows;
}

const Samples& samples();

// One function per file samples_<family>.cpp.
Samples unary_samples();
Samples binary_samples();
Samples logic_samples();
Samples reduce_samples();
Samples position_samples();
Samples view_samples();
Samples movement_samples();
Samples matmul_samples();
Samples indexing_samples();
Samples builder_samples();
Samples normalise_samples();
Samples attention_samples();
Samples conv1d_samples();
Samples ssd_samples();
Samples state_space_samples();
Samples loss_samples();
Samples window_samples();
Samples random_samples();
Samples operand_samples();
Samples chain_samples();

}  // namespace tensorgrad::checks
