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
  virtual std::unique_ptr<Layer> copy() const = 0;
  // Calls the function with each parameter and its path in the layer: "attn.q.W".
  using Visit = std::function<void(const std::string& path, Param& param)>;
  virtual void visit(const Visit& visit) = 0;
  virtual Tensor call(const Operand& input) const = 0;
};

struct PublicLayer {
  std::string_view name;
  std::string_view sentence;
  std::string_view input;  // the name of the parameter of its call
  ops::Parameters own;     // of the constructor
  std::unique_ptr<Layer> (*function)(const ops::Given& given) = nullptr;

  std::vector<ops::Parameter> parameters() const { return own.list(); }
  std::vector<ops::Parameter> inputs() const { return {{input, ops::Kind::tensor, false, {}, {}}}; }
  // `arguments` has one entry per parameter of the constructor.
  std::unique_ptr<Layer> make(std::span<const ops::Argument> arguments, Site site) const;
};

std::span<const PublicLayer> layers();
const PublicLayer* find_layer(std::string_view name);
std::vector<std::string> layer_names();

}  // namespace tensorgrad::nn
