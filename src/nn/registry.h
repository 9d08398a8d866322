// All public ops, and the layers of nn.h and mamba.h as data: how to make one, its parameters, and
// how to call it.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ops/registry.h"
#include "tensorgrad/param.h"

namespace tensorgrad::nn {

// The ops of ops.h and the functions of nn.h.
std::span<const ops::PublicFamily> families();
// Returns the op with that name, or null.
const ops::PublicOp* find_op(std::string_view name);
std::vector<std::string> op_names();

// A layer whose type is known at run time only.
class Layer {
 public:
  virtual ~Layer() = default;
  virtual std::shared_ptr<Layer> copy() const = 0;
  // Calls the function with each parameter and its path in the layer: "attn.q.W".
  using Visit = std::function<void(const std::string& path, Param& param)>;
  virtual void visit(const Visit& visit) = 0;
  // `arguments` has one entry per input.
  virtual std::vector<Tensor> call(std::span<const ops::Argument> arguments, Site site) const = 0;
};

struct PublicLayer {
  std::string_view name;
  std::string_view sentence;
  std::vector<ops::Parameter> parameters;  // of the constructor
  std::vector<ops::Parameter> inputs;      // of the call
  std::function<std::shared_ptr<Layer>(std::span<const ops::Argument> arguments, Site site)> make;
};

std::span<const PublicLayer> layers();
const PublicLayer* find_layer(std::string_view name);
std::vector<std::string> layer_names();

}  // namespace tensorgrad::nn
