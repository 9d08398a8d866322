// The models that `tg bench` measures and `tg show` prints: one training step each, or one matmul,
// compiled and fed with random data that stays on the device.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <variant>

#include "command.h"
#include "tensorgrad/compile.h"

namespace tensorgrad::tool {

class BenchProgram {
 public:
  explicit BenchProgram(TrainingHandle training) : handle_(std::move(training)) {}
  explicit BenchProgram(ForwardHandle forward) : handle_(std::move(forward)) {}

  // Enqueues one step or run on the resident data.
  Result step();
  const ProgramHandle& program() const;
  ProgramHandle& program();

 private:
  std::variant<TrainingHandle, ForwardHandle> handle_;
};

struct BenchModel {
  std::string_view name;
  std::string_view description;
  std::int64_t batch = 1;
  std::int64_t gemm = 0;  // N of an N x N x N matmul
  BenchProgram (*build)(const BenchModel& model, std::int64_t batch,
                        const DeviceOptions& where) = nullptr;
};

std::span<const BenchModel> bench_models();

// Throws a usage error if there is no such model.
const BenchModel& find_bench_model(std::string_view name);

// "Models:" and a line for each, for help texts.
std::string bench_model_list();

}  // namespace tensorgrad::tool
