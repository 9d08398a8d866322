// The words of the enums of nn.h.
#pragma once

#include "ops/words.h"
#include "tensorgrad/nn.h"

namespace tensorgrad {

template <>
struct Words<NormKind> {
  static constexpr const char* kWhat = "norm";
  static constexpr Word<NormKind> kAll[] = {{"layer", NormKind::layer}, {"rms", NormKind::rms}};
};
template <>
struct Words<Activation> {
  static constexpr const char* kWhat = "activation";
  static constexpr Word<Activation> kAll[] = {{"gelu", Activation::gelu},
                                              {"gelu_tanh", Activation::gelu_tanh},
                                              {"relu", Activation::relu},
                                              {"silu", Activation::silu},
                                              {"tanh", Activation::tanh}};
};

}  // namespace tensorgrad
