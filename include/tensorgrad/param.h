// Param: a trainable tensor as a field of a model. The model is plain data; a Param holds its
// shape, how it starts, and two flags. Its name is its path in the model (`layers.0.attn.q.W`).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tensorgrad/shape.h"

namespace tensorgrad {

// How a parameter starts. Random ones are keyed by (seed, name): the order of fields is free.
struct Init {
  enum class Kind : std::uint8_t {
    zeros, ones, constant, normal, uniform, log_of_uniform, step_size, literal
  };
  Kind kind = Kind::zeros;
  float a = 0, b = 0;         // constant: value; normal: mean, deviation; the other random ones: low, high
  bool scale_by_fan = false;  // kaiming and xavier: a and b are multiplied by 1/sqrt(fan)
  bool both_fans = false;     // xavier: fan is the mean of inputs and outputs
  std::vector<float> values;  // literal
};

namespace init {
Init zeros();
Init ones();
Init constant(float value);
Init normal(float deviation, float mean = 0);
Init uniform(float low, float high);
// Normal with deviation gain/sqrt(inputs); the default gain suits relu.
Init kaiming(float gain = 1.41421356f);
// Uniform in +-gain/sqrt(inputs): PyTorch's default for linear and convolution layers is gain 1.
Init kaiming_uniform(float gain = 1);
// Uniform in +-gain*sqrt(6/(inputs+outputs)).
Init xavier(float gain = 1);
// The logarithm of a number drawn evenly from low to high.
Init log_of_uniform(float low, float high);
// A number x whose softplus lies between low and high, the logarithm of softplus(x) drawn evenly: how step sizes start.
Init step_size(float low, float high);
// The given numbers, row-major.
Init literal(std::vector<float> values);
}  // namespace init

class Param {
 public:
  // Weight decay is on for matrices and larger, off for vectors and scalars, unless said otherwise.
  Param(Shape shape, Init init) : shape_(shape), init_(std::move(init)), decay_(shape.rank() >= 2) {}

  Param& decay(bool on) { decay_ = on; return *this; }
  // A frozen parameter is not updated and costs no backward.
  Param& freeze(bool on = true) { frozen_ = on; return *this; }

  const Shape& shape() const { return shape_; }
  const Init& init() const { return init_; }
  bool decays() const { return decay_; }
  bool frozen() const { return frozen_; }
  // The path in the model, once compiled; empty before.
  const std::string& name() const { return name_; }

  // Another field that is the same parameter: `m.head = m.embedding.shared()` ties the two, also
  // in copies of the model. The parameter goes by the name of the first of them in field order.
  Param shared() {
    if (!tie_) tie_ = std::make_shared<const int>(0);
    return *this;
  }

 private:
  friend struct ParamAccess;
  Shape shape_;
  Init init_;
  bool decay_ = true;
  bool frozen_ = false;
  std::string name_;
  std::uint64_t model_ = 0;  // which compiled model it belongs to, 0 for none
  int index_ = -1;           // which parameter of that model
  std::shared_ptr<const int> tie_;
};

}  // namespace tensorgrad
