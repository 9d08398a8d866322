// Whether two results are the same, bit by bit: NaN is NaN.
#pragma once

#include <cstring>
#include <span>

#include "tensorgrad/checkpoint.h"
#include "tensorgrad/safetensors.h"

namespace tensorgrad {

inline bool same(const Array& a, const Array& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  const auto bytes = [](const Array& x) {
    return x.dtype() == f32 ? std::as_bytes(x.floats()) : std::as_bytes(x.ints());
  };
  return bytes(a).empty() || std::memcmp(bytes(a).data(), bytes(b).data(), bytes(a).size()) == 0;
}

inline bool same(const NamedArrays& a, const NamedArrays& b) {
  if (a.size() != b.size()) return false;
  for (const auto& [name, array] : a)
    if (const auto other = b.find(name); other == b.end() || !same(array, other->second))
      return false;
  return true;
}

inline bool same(const TensorFile& a, const TensorFile& b) {
  return same(a.tensors, b.tensors) && a.metadata == b.metadata;
}

inline bool same(const Checkpoint& a, const Checkpoint& b) {
  return same(a.parameters, b.parameters) && same(a.optimizer, b.optimizer) && a.step == b.step &&
         a.seed == b.seed && a.position == b.position && a.tokenizer == b.tokenizer &&
         a.config == b.config && a.more == b.more;
}

}  // namespace tensorgrad
