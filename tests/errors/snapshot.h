// Everything that a step may change, to compare before and after.
#pragma once

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::errors {

struct Snapshot {
  std::string parameters;
  std::map<std::string, std::string> state;  // the bytes, so that NaN equals itself
  friend bool operator==(const Snapshot&, const Snapshot&) = default;
};

inline Snapshot snapshot(const TrainingHandle& train) {
  Snapshot out{train.fingerprint(), {}};
  for (const auto& [name, array] : train.optimizer_state()) {
    const auto bytes =
        array.dtype() == f32 ? std::as_bytes(array.floats()) : std::as_bytes(array.ints());
    out.state[name].assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  return out;
}

// The same without the step count, which a failed step advances too.
inline Snapshot numbers_of(const TrainingHandle& train) {
  Snapshot out = snapshot(train);
  out.state.erase("step");
  return out;
}

}  // namespace tensorgrad::errors
