// Param: a trainable tensor as a field of a model. The model is plain data: a Param holds its
// shape, its initial values and two flags. Its name is its path in the model (`layers.0.attn.q.W`).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tensorgrad/shape.h"

namespace tensorgrad {

// The initial values of a parameter. Random values are keyed by (seed, name), so the order of
// fields does not matter.
struct Init {
  enum class Kind : std::uint8_t {
    zeros,
    ones,
    constant,
    normal,
    uniform,
    log_of_uniform,
    step_size,
    literal,
    function
  };
  Kind kind = Kind::zeros;
  float a = 0, b = 0;  // constant: value; normal: mean, deviation; other random kinds: low, high
  bool scale_by_fan = false;  // kaiming and xavier: a and b are multiplied by 1/sqrt(fan)
  bool both_fans = false;     // xavier: fan is the mean of inputs and outputs
  std::vector<float> values;  // literal
  std::function<float(std::int64_t)> function = {};  // function of the row-major index
};

namespace init {
Init zeros();
Init ones();
Init constant(float value);
Init normal(float deviation, float mean = 0);
Init uniform(float low, float high);
// Normal with standard deviation gain/sqrt(inputs). The default gain suits relu.
Init kaiming(float gain = 1.41421356f);
// Uniform in +-gain/sqrt(inputs). Gain 1 is the default of PyTorch for linear and convolution
// layers.
Init kaiming_uniform(float gain = 1);
// Uniform in +-gain*sqrt(6/(inputs+outputs)).
Init xavier(float gain = 1);
// The logarithm of a value drawn uniformly from low to high.
Init log_of_uniform(float low, float high);
// A value x for which log(softplus(x)) is uniform from log(low) to log(high). For step sizes of
// state-space models.
Init step_size(float low, float high);
// The given values, row-major.
Init literal(std::vector<float> values);
// Element i, row-major, is f(i). compile() calls f once per element, in ascending order, and stores
// the values. reset() uses the stored values.
Init function(std::function<float(std::int64_t i)> f);
}  // namespace init

// Changes the initial values or the weight decay of one parameter of a layer.
struct ParamOptions {
  std::optional<Init> init = {};
  std::optional<bool> decay = {};
};

// A trainable tensor.
class Param {
 public:
  // The default initial values: init::kaiming_uniform() for rank 2 and above, 0 for vectors and
  // scalars, which are mostly biases.
  explicit Param(Shape shape)
      : Param(shape, shape.rank() >= 2 ? init::kaiming_uniform() : init::zeros()) {}
  // Weight decay is on for rank 2 and above, off for vectors and scalars. decay() changes it.
  Param(Shape shape, Init init)
      : shape_(shape), init_(std::move(init)), decay_(shape.rank() >= 2) {}
  // A parameter of a layer: `own` are the initial values unless the options replace them.
  Param(Shape shape, const Init& own, const ParamOptions& options)
      : Param(shape, options.init.value_or(own)) {
    if (options.decay) decay_ = *options.decay;
  }

  // Turns weight decay on or off.
  Param& decay(bool on) {
    decay_ = on;
    return *this;
  }
  // Freezes the parameter: it is not updated and costs no backward pass.
  Param& freeze(bool on = true) {
    frozen_ = on;
    return *this;
  }

  const Shape& shape() const { return shape_; }
  const Init& init() const { return init_; }
  bool decays() const { return decay_; }
  bool frozen() const { return frozen_; }
  // Returns the path in the model once it is compiled; empty before.
  const std::string& name() const { return name_; }

  // Returns another field for the same parameter: `m.head = m.embedding.shared()` ties the two,
  // also in copies of the model. The parameter has the name of the first of them in field order.
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
  std::uint64_t model_ = 0;  // the compiled model that it belongs to; 0: none
  int index_ = -1;           // its index in that model
  std::shared_ptr<const int> tie_;
};

}  // namespace tensorgrad
