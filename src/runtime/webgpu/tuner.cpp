#include "runtime/webgpu/tuner.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>

#include "kernels/tiles.h"
#include "runtime/webgpu/shader_spec.h"
#include "support/fail.h"
#include "support/integers.h"
#include "support/sha256.h"

namespace tensorgrad::webgpu {

namespace {

using ir::Kernel;

constexpr std::int64_t kWorthwhile =
    std::int64_t{1} << 30;         // operations: smaller matmuls share the device with others
constexpr double kClearly = 0.97;  // of the time of the default tiles; a smaller gain is noise
constexpr double kTrial = 1000;    // target duration of a trial in microseconds
constexpr int kTrials = 3;

std::int64_t operations(const ir::MatmulKernel& matmul) {
  std::int64_t out = 0;
  for (const ir::MatmulPart& part : matmul.parts)
    out += 2 * matmul.batches * matmul.M * matmul.K * part.N;
  return out;
}

// A view may be a small part of its tensor. A trial does not need the whole tensor, only the offset
// of the first element that the view reads,
std::int64_t start(const ir::IndexMap& map) { return map.layers()[0].address.offset; }

bool runs_backwards(const ir::IndexMap& map) {
  for (int axis = 0; axis < map.shape().rank(); ++axis)
    if (map.stride(axis) < 0) return true;
  return false;
}

// and the number of elements from there to the last one.
std::int64_t reach(const ir::IndexMap& map) {
  std::int64_t last = 0;
  for (int axis = 0; axis < map.shape().rank(); ++axis)
    last += map.stride(axis) * std::max<std::int64_t>(0, map.shape()[axis] - 1);
  return last + 1;
}

std::string digest(const std::vector<wgsl::Shader>& shaders) {
  Sha256 sha;
  for (const wgsl::Shader& shader : shaders) sha.update(std::as_bytes(std::span(shader.wgsl)));
  return sha.finish().substr(0, 16);
}

}  // namespace

std::optional<bool> asked_to_tune() {
  const char* named = std::getenv("TENSORGRAD_TUNE");
  const std::string text = named ? named : "";
  if (text.empty()) return {};
  if (text != "on" && text != "off")
    user_error("TENSORGRAD_TUNE: '{}' is neither 'on' nor 'off'", text);
  return text == "on";
}

Tuning tuning_for(const AdapterInfo& adapter) {
  return asked_to_tune().value_or(!adapter.software) ? Tuning::measure : Tuning::off;
}

bool compact(Kernel& kernel, Elements& elements) {
  // In the order of first use, not of addresses.
  struct Tensor {
    ir::Place place;
    std::int64_t count = 0, offset = 0;
  };
  std::vector<Tensor> tensors;
  const auto find = [&](const ir::Place& place) {
    return std::find_if(tensors.begin(), tensors.end(),
                        [&](const Tensor& t) { return t.place == place; });
  };
  const auto note = [&](const ir::Place& place, std::int64_t count) {
    if (const auto known = find(place); known != tensors.end())
      known->count = std::max(known->count, count);
    else
      tensors.push_back({place, count});
  };
  for (const ir::Load& load : kernel.loads) {
    if (load.source != ir::Load::Source::memory) continue;
    if (!load.map.is_strided() || runs_backwards(load.map)) return false;
    note({load.place.space, load.place.offset + start(load.map)}, reach(load.map));
  }
  ir::for_each_store(kernel, [&](const ir::Store& store) { note(store.place, store.elements); });
  elements.fill(0);
  for (Tensor& tensor : tensors) {
    std::int64_t& end = elements[usize(tensor.place.space)];
    tensor.offset = end + tensor.place.offset % 4;  // keeps the alignment to quads
    end += round_up(tensor.place.offset % 4 + tensor.count, 64);
  }
  const auto move = [&](ir::Place& place, std::int64_t first = 0) {
    place.offset = find({place.space, place.offset + first})->offset - first;
  };
  for (ir::Load& load : kernel.loads)
    if (load.source == ir::Load::Source::memory) move(load.place, start(load.map));
  ir::for_each_store(kernel, [&](ir::Store& store) { move(store.place); });
  return true;
}

Tuner::Tuner(Gpu& gpu, Tuning tuning, Choices choices)
    : gpu_(gpu),
      tuning_(tuning),
      adapter_(gpu.info().name + " / " + gpu.info().driver),
      choices_(std::move(choices)) {}

void Tuner::choose(std::vector<Kernel>& kernels, const wgsl::Target& target,
                   const CompileCallback& progress) {
  if (tuning_ == Tuning::off) return;
  std::vector<Choice> open;
  for (Kernel& kernel : kernels) {
    auto* const matmul = kernel.get_if<ir::MatmulKernel>();
    if (!matmul || operations(*matmul) < kWorthwhile) continue;
    const std::vector<ir::MatmulTiles> all = kernels::alternatives(*matmul, ir::gpu_model());
    if (all.size() < 2) continue;
    Choice choice{.matmul = matmul, .alone = kernel};
    // The key is the text of the choice by shape, which comes first.
    choice.alone.get_if<ir::MatmulKernel>()->variant = all[0];
    if (!compact(choice.alone, choice.elements)) continue;
    const std::vector<wgsl::Shader> by_shape =
        wgsl::emit({&choice.alone, 1}, target, wgsl::checks_ids(choice.alone));
    choice.key = digest(by_shape);
    choice.name = by_shape[0].name;
    open.push_back(std::move(choice));
  }
  if (tuning_ == Tuning::measure) measure(open, target, progress);
  for (const Choice& choice : open) {
    const auto text = choices_.find(adapter_, choice.key);
    const auto size = ir::parse_tile_size(text.value_or(""));
    if (!size) continue;
    // A file from another machine may name tiles that are not an alternative here.
    if (const auto tiles = kernels::alternative(*choice.matmul, ir::gpu_model(), *size))
      choice.matmul->variant = *tiles;
  }
  choices_.save();
}

// Measures each distinct matmul once, unless it was measured before.
void Tuner::measure(const std::vector<Choice>& open, const wgsl::Target& target,
                    const CompileCallback& progress) {
  std::map<std::string, const Choice*> unknown;
  for (const Choice& choice : open)
    if (!choices_.find(adapter_, choice.key)) unknown.emplace(choice.key, &choice);
  if (unknown.empty()) return;
  std::int64_t done = 0;
  const auto report = [&] {
    if (progress) progress({done, static_cast<std::int64_t>(unknown.size()), CompileWork::tuning});
  };
  report();
  for (const auto& [key, choice] : unknown) {
    try {
      choices_.add(adapter_, key, ir::text(fastest(choice->alone, choice->elements, target)),
                   choice->name);
    } catch (const DeviceError&) {  // no memory for trials, or a driver that rejects one of them
      if (gpu_.lost()) throw;
    }
    ++done;
    report();
  }
}

ir::TileSize Tuner::fastest(const Kernel& kernel, const Elements& elements,
                            const wgsl::Target& target) {
  ++measured_;
  std::optional<ir::TileSize> best;
  double shortest = 0;
  for (const Trial& trial : trials(kernel, target)) {
    const double time = microseconds(trial, elements);
    if (!best || time < kClearly * shortest) best = trial.tiles, shortest = time;
  }
  return best.value();
}

// Compiles the trials concurrently.
std::vector<Tuner::Trial> Tuner::trials(const Kernel& kernel, const wgsl::Target& target) {
  std::vector<Trial> out;
  std::vector<PipelineSpec> specs;
  Kernel with = kernel;
  auto& matmul = *with.get_if<ir::MatmulKernel>();
  for (const ir::MatmulTiles& tiles : kernels::alternatives(matmul, ir::gpu_model())) {
    matmul.variant = tiles;
    out.push_back({tiles.size(), wgsl::emit({&with, 1}, target, wgsl::checks_ids(with)), {}});
    for (const wgsl::Shader& shader : out.back().shaders) specs.push_back(spec_of(shader));
  }
  const auto pipelines = gpu_.pipelines(specs);
  std::size_t next = 0;
  for (Trial& trial : out)
    for (std::size_t i = 0; i < trial.shaders.size(); ++i)
      trial.pipelines.push_back(pipelines[next++]);
  return out;
}

double Tuner::microseconds(const Trial& trial, const Elements& elements) {
  std::array<std::shared_ptr<Buffer>, wgsl::kRegions> memory;
  std::vector<std::shared_ptr<const BindGroup>> groups;
  for (std::size_t i = 0; i < trial.shaders.size(); ++i) {
    const wgsl::Shader& shader = trial.shaders[i];
    std::vector<Binding> bindings;
    for (const wgsl::Binding& b : shader.bindings) {
      const auto region = usize(b.region);
      const std::int64_t count = b.region == wgsl::Region::scratch  ? shader.scratch_elements
                                 : b.region == wgsl::Region::faults ? 4
                                                                    : elements[region];
      const std::uint64_t bytes = 4 * static_cast<std::uint64_t>((count + 7) / 4 * 4);
      gpu_.check_binding(bytes, "trials of a matmul");
      if (!memory[region]) memory[region] = gpu_.buffer(bytes, "trials of a matmul");
      bindings.push_back({memory[region].get()});
    }
    groups.push_back(gpu_.bind(*trial.pipelines[i], bindings));
  }
  const auto time = [&](int repeats) {
    gpu_.wait();
    const auto start = std::chrono::steady_clock::now();
    for (int r = 0; r < repeats; ++r)
      for (std::size_t i = 0; i < groups.size(); ++i) {
        const auto& [x, y, z] = trial.shaders[i].workgroups;
        gpu_.dispatch(*trial.pipelines[i], *groups[i], x, y, z);
      }
    gpu_.submit();
    gpu_.wait();
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
               .count() /
           repeats;
  };
  time(1);  // warm-up: clocks rise, caches fill
  const int repeats = static_cast<int>(std::clamp(kTrial / time(1), 1.0, 50.0));
  double best = time(repeats);
  for (int i = 1; i < kTrials; ++i) best = std::min(best, time(repeats));
  return best;
}

}  // namespace tensorgrad::webgpu
