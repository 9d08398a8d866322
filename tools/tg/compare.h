// Compares a result with its reference: the allowed error and the actual one.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tensorgrad/array.h"

namespace tensorgrad::tool {

// The errors allowed on a device; the table is in tests/fixtures/README.md.
struct Tolerance {
  double op;        // largest absolute error for values up to 1; scales with larger values
  double loss;      // relative
  double gradient;  // largest error relative to the tensor's largest value
  std::optional<double>
      parameters;  // relative L2 error per tensor; not compared if there is no such limit
};
const Tolerance& tolerance_for(std::string_view device);

// Collects errors, each divided by the allowed error, and keeps the worst. A NaN on one side only
// is an infinite error. Integers must be equal; otherwise the error is infinite.
class Comparison {
 public:
  // Largest absolute error; allowed: tolerance * max(1, largest reference value).
  void values(const std::string& name, const Array& result, const Array& reference,
              double tolerance);
  // Largest absolute error; allowed: tolerance * largest reference value.
  void scaled(const std::string& name, const Array& result, const Array& reference,
              double tolerance);
  // |result - reference|_2; allowed: tolerance * |reference|_2.
  void distance(const std::string& name, const Array& result, const Array& reference,
                double tolerance);
  void number(const std::string& name, double result, double reference, double tolerance);

  double worst() const { return worst_; }
  // The tensor of worst().
  const std::string& where() const { return where_; }

 private:
  void add(const std::string& name, double error, double allowed);
  void largest_error(const std::string& name, const Array& result, const Array& reference,
                     double tolerance, double least);

  double worst_ = 0;
  std::string where_;
};

}  // namespace tensorgrad::tool
