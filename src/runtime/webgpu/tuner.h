// Tuner: finds the fastest tiles for a matmul on this adapter among those that give the same bits.
// It measures once and stores the result in a file.
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
  off,       // default tiles, chosen by shape
  remember,  // uses the file, never measures
  measure,
};

// The value of TENSORGRAD_TUNE, if it is set: "on" or "off". Any other value is a UserError.
std::optional<bool> asked_to_tune();

// Follows TENSORGRAD_TUNE. By default, hardware adapters are measured and software adapters are
// not.
Tuning tuning_for(const AdapterInfo& adapter);

using Elements = std::array<std::int64_t, ir::kSpaces>;  // elements per space

class Tuner {
 public:
  Tuner(Gpu& gpu, Tuning tuning, Choices choices = Choices(Choices::default_file()));

  // Replaces the tiles of matmuls by faster ones that give the same bits. Reports to `progress` how
  // many of the measurements are done; makes no report if there is nothing to measure.
  void choose(std::vector<ir::Kernel>& kernels, const wgsl::Target& target,
              const CompileCallback& progress = {});

  std::int64_t measured() const { return measured_; }  // number of matmuls measured so far

 private:
  // A matmul with more than one choice of tiles.
  struct Choice {
    ir::MatmulKernel* matmul;
    ir::Kernel alone;  // compact
    Elements elements{};
    std::string key, name;  // of the shader with the default tiles
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

// Moves the kernel's tensors next to each other at the start of each space, and computes how many
// elements of each space it then needs. The same matmul in another model or layer then has the same
// text. Returns false if the range of a load cannot be determined.
bool compact(ir::Kernel& kernel, Elements& elements);

}  // namespace tensorgrad::webgpu
