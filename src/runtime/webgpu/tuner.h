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
  // many of the measurements are done; makes no report if there is nothing to measure. The tuner
  // must outlive the completion.
  Completion<std::vector<ir::Kernel>> choose(std::vector<ir::Kernel> kernels,
                                             const wgsl::Target& target,
                                             const CompileCallback& progress = {});

  std::int64_t measured() const { return measured_; }  // number of matmuls measured so far

 private:
  // A matmul with more than one choice of tiles.
  struct Choice {
    std::size_t kernel = 0;  // index in the list
    ir::Kernel alone;        // compact
    Elements elements{};
    std::string key, name;  // of the shader with the default tiles
  };
  // One call of choose().
  struct Work {
    std::vector<ir::Kernel> kernels;
    wgsl::Target target;
    CompileCallback progress;
    std::vector<Choice> open;
    std::vector<std::size_t> unknown = {};  // of `open`: to measure
    std::int64_t done = 0;
    void report() const;
  };
  struct Trial {
    ir::TileSize tiles;
    std::vector<wgsl::Shader> shaders;
    Gpu::PipelineList pipelines;
    // Memory of the shaders, while they are measured.
    std::array<std::shared_ptr<Buffer>, wgsl::kRegions> memory;
    std::vector<std::shared_ptr<const BindGroup>> groups;
  };
  using Trials = std::vector<std::shared_ptr<Trial>>;

  void find_open(Work& work) const;
  void find_unknown(Work& work) const;
  void apply(Work& work);
  // Each of these measures one thing after the other.
  Completion<Done> measure(const std::shared_ptr<Work>& work, std::size_t next);
  Completion<ir::TileSize> fastest(const Choice& choice, const wgsl::Target& target);
  struct Best {
    std::optional<ir::TileSize> tiles;
    double microseconds = 0;
  };
  Completion<Best> best_of(const std::shared_ptr<const Trials>& trials, std::size_t next,
                           const Elements& elements, Best best);
  Completion<double> microseconds(const std::shared_ptr<Trial>& trial, const Elements& elements);
  Completion<double> shortest(const std::shared_ptr<Trial>& trial, int repeats, int trials);
  Completion<double> time(const std::shared_ptr<Trial>& trial, int repeats);

  Completion<Trials> trials(const ir::Kernel& kernel, const wgsl::Target& target);
  Completion<Done> allocate(const std::shared_ptr<Trial>& trial, const Elements& elements);
  void dispatch(const Trial& trial, int repeats);

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
