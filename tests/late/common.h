// A program on a device that the test pumps by hand, and its twin on the CPU.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>

#include "tests/compile/common.h"
#include "tests/support/error_of.h"
#include "tests/support/late_device.h"

namespace tensorgrad::late_tests {

using namespace compile_tests;

inline Batch bad_batch(std::uint32_t seed) {
  Batch batch(seed);
  batch.x[0] = std::nanf("");
  return batch;
}

// Floats with a NaN fail a step; id 9 is out of range.
struct Words {
  Embedding table{5, 3};
  Linear l{3, 2};
};
inline Tensor words_loss(const Words& m, const Inputs& in) {
  return mean(square(capture("y", m.l(m.table(in["ids"])) * in["s"])));
}
inline std::vector<InputSpec> words_inputs() { return {{"ids", {4}, i32}, {"s", {1}}}; }
inline Feed words_feed(std::int32_t id, float s) {
  return {{"ids", Ints{0, id, 1, 2}}, {"s", Floats{s}}};
}

class Async : public testing::Test {
 protected:
  Async() { add_late_device("hand", device); }
  ~Async() override {
    poll();  // callbacks of what is dropped
    add_late_device();
  }

  // Pumps and polls until nothing moves any more.
  void settle() const {
    do {
      poll();
      poll();
    } while (device->pump_all() > 0);
  }

  template <class T>
  T settled(const Future<T>& future) const {
    settle();
    EXPECT_TRUE(future.ready());
    return future.take();
  }

  TrainingOptions options(TrainingOptions given = {}, const char* name = "hand") const {
    if (given.inputs.empty()) given.inputs = mlp_inputs();
    given.device = name;
    given.threads = 1;
    return given;
  }

  Training<Mlp> train(const TrainingOptions& given = {}) const {
    return settled(compile_async(Mlp{}, options(given), mlp_loss));
  }
  // The same program on the CPU.
  Training<Mlp> twin(const TrainingOptions& given = {}) const {
    return compile(Mlp{}, options(given, "cpu"), mlp_loss);
  }
  std::string weights(const Training<Mlp>& program) const {
    return bytes_of(settled(program.download_async()));
  }

  const std::shared_ptr<LateDevice> device =
      std::make_shared<LateDevice>(LateDevice::Pace::by_hand);
};

}  // namespace tensorgrad::late_tests
