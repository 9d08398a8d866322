// Which of the tiles that give a matmul the same bits is fastest on this adapter: measured once,
// remembered in a file.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "codegen/wgsl/shader.h"
#include "ir/kernel.h"
#include "runtime/webgpu/choices.h"
#include "runtime/webgpu/gpu.h"

namespace tensorgrad::webgpu {

enum class Tuning {
  off,       // tiles as they were chosen by shape
  remember,  // what the file says; nothing is measured
  measure,
};

// What TENSORGRAD_TUNE says, if it is set: "on" or "off". Another word is a user's error.
std::optional<bool> asked_to_tune();

// As TENSORGRAD_TUNE says; without it, hardware is measured and software is not worth it.
Tuning tuning_for(const AdapterInfo& adapter);

using Elements = std::array<std::int64_t, ir::kSpaces>;  // of each space

class Tuner {
 public:
  Tuner(Gpu& gpu, Tuning tuning, Choices choices = Choices(Choices::default_file()));

  // Replaces the tiles of matmuls by faster ones of the same bits. `progress` is told how many of
  // those to measure are done; nothing where there are none.
  void choose(std::vector<ir::Kernel>& kernels, const wgsl::Target& target,
              const CompileCallback& progress = {});

  std::int64_t measured() const { return measured_; }  // matmuls so far

 private:
  // A matmul that has a choice.
  struct Choice {
    ir::MatmulKernel* matmul;
    ir::Kernel alone;  // compact
    Elements elements{};
    std::string key, name;  // of the shader with the tiles by shape
  };
  void measure(const std::vector<Choice>& open, const wgsl::Target& target,
               const CompileCallback& progress);
  ir::TileSize fastest(const ir::Kernel& kernel, const Elements& elements,
                       const wgsl::Target& target);
  struct Trial {
    ir::TileSize tiles;
    std::vector<wgsl::Shader> shaders;
    std::vector<std::shared_ptr<const Pipeline>> pipelines;
  };
  std::vector<Trial> trials(const ir::Kernel& kernel, const wgsl::Target& target);
  double microseconds(const Trial& trial, const Elements& elements);

  Gpu& gpu_;
  Tuning tuning_;
  std::string adapter_;
  Choices choices_;
  std::int64_t measured_ = 0;
};

// The kernel with its tensors side by side from the start of each space, and how many elements of
// each it needs then: the same matmul of another model or another layer is the same text. False
// when what a load reads is not plain to see.
bool compact(ir::Kernel& kernel, Elements& elements);

}  // namespace tensorgrad::webgpu
