#include "compare.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "support/fail.h"

namespace tensorgrad::tool {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// |result - reference|; 0 for equal infinities and for two NaNs.
double difference(double result, double reference) {
  if (result == reference || (std::isnan(result) && std::isnan(reference))) return 0;
  const double error = std::fabs(result - reference);
  return std::isnan(error) ? kInfinity : error;
}

void check_type(const std::string& name, const Array& result, const Array& reference) {
  if (result.dtype() != reference.dtype() || result.shape() != reference.shape())
    user_error("{} is {}{}, the reference is {}{}", name, tensorgrad::name(result.dtype()),
               result.shape().text(), tensorgrad::name(reference.dtype()),
               reference.shape().text());
}

}  // namespace

const Tolerance& tolerance_for(std::string_view device) {
  static constexpr Tolerance kCpu{.op = 5e-6, .loss = 2e-5, .gradient = 1e-5, .parameters = 1e-3};
  static constexpr Tolerance kWebGpu{.op = 5e-5, .loss = 2e-4, .gradient = 1e-4, .parameters = {}};
  return device == "cpu" ? kCpu : kWebGpu;
}

void Comparison::add(const std::string& name, double error, double allowed) {
  // If nothing is allowed, any error is infinite.
  const double ratio = error == 0 ? 0 : std::isfinite(error) ? error / allowed : kInfinity;
  if (where_.empty() || ratio > worst_) worst_ = ratio, where_ = name;
}

void Comparison::largest_error(const std::string& name, const Array& result, const Array& reference,
                               double tolerance, double least) {
  check_type(name, result, reference);
  if (reference.dtype() != f32) {
    const auto got = result.ints(), wanted = reference.ints();
    add(name, std::equal(got.begin(), got.end(), wanted.begin()) ? 0 : kInfinity, tolerance);
    return;
  }
  const auto got = result.floats(), wanted = reference.floats();
  double error = 0, largest = least;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    error = std::max(error, difference(got[i], wanted[i]));
    if (std::isfinite(wanted[i])) largest = std::max(largest, std::fabs(double{wanted[i]}));
  }
  add(name, error, tolerance * largest);
}

void Comparison::values(const std::string& name, const Array& result, const Array& reference,
                        double tolerance) {
  largest_error(name, result, reference, tolerance, 1);
}

void Comparison::scaled(const std::string& name, const Array& result, const Array& reference,
                        double tolerance) {
  largest_error(name, result, reference, tolerance, 0);
}

void Comparison::distance(const std::string& name, const Array& result, const Array& reference,
                          double tolerance) {
  check_type(name, result, reference);
  const auto got = result.floats(), wanted = reference.floats();
  double error = 0, size = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const double d = difference(got[i], wanted[i]);
    error += d * d;
    if (std::isfinite(wanted[i])) size += double{wanted[i]} * double{wanted[i]};
  }
  add(name, std::sqrt(error), tolerance * std::sqrt(size));
}

void Comparison::number(const std::string& name, double result, double reference,
                        double tolerance) {
  add(name, difference(result, reference), tolerance * std::fabs(reference));
}

}  // namespace tensorgrad::tool
