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

void Tuner::Work::report() const {
  if (progress) progress({done, static_cast<std::int64_t>(unknown.size()), CompileWork::tuning});
}

Completion<std::vector<Kernel>> Tuner::choose(std::vector<Kernel> kernels,
                                              const wgsl::Target& target,
                                              const CompileCallback& progress) {
  if (tuning_ == Tuning::off) return kernels;
  const auto work = std::make_shared<Work>(Work{std::move(kernels), target, progress, {}});
  find_open(*work);
  if (tuning_ == Tuning::measure) find_unknown(*work);
  if (!work->unknown.empty()) work->report();
  return measure(work, 0).map([this, work](Done&) {
    apply(*work);
    return std::move(work->kernels);
  });
}

void Tuner::find_open(Work& work) const {
  for (std::size_t i = 0; i < work.kernels.size(); ++i) {
    const Kernel& kernel = work.kernels[i];
    const auto* const matmul = kernel.get_if<ir::MatmulKernel>();
    if (!matmul || operations(*matmul) < kWorthwhile) continue;
    const std::vector<ir::MatmulTiles> all = kernels::alternatives(*matmul, ir::gpu_model());
    if (all.size() < 2) continue;
    Choice choice{.kernel = i, .alone = kernel};
    // The key is the text of the choice by shape, which comes first.
    choice.alone.get_if<ir::MatmulKernel>()->variant = all[0];
    if (!compact(choice.alone, choice.elements)) continue;
    const std::vector<wgsl::Shader> by_shape =
        wgsl::emit({&choice.alone, 1}, work.target, wgsl::checks_ids(choice.alone));
    choice.key = digest(by_shape);
    choice.name = by_shape[0].name;
    work.open.push_back(std::move(choice));
  }
}

// Each distinct matmul once, unless it was measured before; in the order of their keys.
void Tuner::find_unknown(Work& work) const {
  std::map<std::string, std::size_t> unknown;
  for (std::size_t i = 0; i < work.open.size(); ++i)
    if (!choices_.find(adapter_, work.open[i].key)) unknown.emplace(work.open[i].key, i);
  for (const auto& [key, index] : unknown) work.unknown.push_back(index);
}

void Tuner::apply(Work& work) {
  for (const Choice& choice : work.open) {
    const auto text = choices_.find(adapter_, choice.key);
    const auto size = ir::parse_tile_size(text.value_or(""));
    if (!size) continue;
    auto& matmul = *work.kernels[choice.kernel].get_if<ir::MatmulKernel>();
    // A file from another machine may name tiles that are not an alternative here.
    if (const auto tiles = kernels::alternative(matmul, ir::gpu_model(), *size))
      matmul.variant = *tiles;
  }
  choices_.save();
}

Completion<Done> Tuner::measure(const std::shared_ptr<Work>& work, std::size_t next) {
  if (next == work->unknown.size()) return Done{};
  const Choice& choice = work->open[work->unknown[next]];
  Completion<Done> out;
  fastest(choice, work->target).then([=, this, &choice](const Completion<ir::TileSize>& found) {
    try {
      try {
        choices_.add(adapter_, choice.key, ir::text(found.get()), choice.name);
      } catch (const DeviceError&) {  // no memory for trials, or a driver that rejects one of them
        if (gpu_.lost()) throw;
      }
      ++work->done;
      work->report();
      measure(work, next + 1).then([out](const Completion<Done>& rest) { rest.pass_to(out); });
    } catch (...) {
      out.set_error(std::current_exception());
    }
  });
  return out;
}

Completion<ir::TileSize> Tuner::fastest(const Choice& choice, const wgsl::Target& target) {
  ++measured_;
  try {
    return trials(choice.alone, target)
        .map([this, elements = choice.elements](Trials& all_trials) {
          return best_of(std::make_shared<const Trials>(std::move(all_trials)), 0, elements, {});
        })
        .map([](const Best& best) { return best.tiles.value(); });
  } catch (...) {
    return failed_now<ir::TileSize>();
  }
}

Completion<Tuner::Best> Tuner::best_of(const std::shared_ptr<const Trials>& all_trials,
                                       std::size_t next, const Elements& elements, Best best) {
  if (next == all_trials->size()) return best;
  const std::shared_ptr<Trial> trial = (*all_trials)[next];
  return microseconds(trial, elements).map([=, this](const double time) {
    trial->memory = {};
    trial->groups.clear();
    const bool better = !best.tiles || time < kClearly * best.microseconds;
    return best_of(all_trials, next + 1, elements, better ? Best{trial->tiles, time} : best);
  });
}

// Compiles the trials concurrently.
Completion<Tuner::Trials> Tuner::trials(const Kernel& kernel, const wgsl::Target& target) {
  Trials out;
  std::vector<PipelineSpec> specs;
  Kernel with = kernel;
  auto& matmul = *with.get_if<ir::MatmulKernel>();
  for (const ir::MatmulTiles& tiles : kernels::alternatives(matmul, ir::gpu_model())) {
    matmul.variant = tiles;
    out.push_back(std::make_shared<Trial>());
    out.back()->tiles = tiles.size();
    out.back()->shaders = wgsl::emit({&with, 1}, target, wgsl::checks_ids(with));
    for (const wgsl::Shader& shader : out.back()->shaders) specs.push_back(spec_of(shader));
  }
  return gpu_.pipelines(specs).map([out](const Gpu::PipelineList& pipelines) {
    std::size_t next = 0;
    for (const auto& trial : out)
      for (std::size_t i = 0; i < trial->shaders.size(); ++i)
        trial->pipelines.push_back(pipelines[next++]);
    return out;
  });
}

Completion<Done> Tuner::allocate(const std::shared_ptr<Trial>& trial, const Elements& elements) {
  std::array<std::int64_t, wgsl::kRegions> counts{};
  for (const wgsl::Shader& shader : trial->shaders)
    for (const wgsl::Binding& b : shader.bindings) {
      std::int64_t& count = counts[usize(b.region)];
      count = std::max(count, b.region == wgsl::Region::scratch  ? shader.scratch_elements
                              : b.region == wgsl::Region::faults ? 4
                                                                 : elements[usize(b.region)]);
    }
  std::vector<Completion<Done>> made;
  for (std::size_t region = 0; region < counts.size(); ++region) {
    if (counts[region] == 0) continue;
    const std::uint64_t bytes = 4 * static_cast<std::uint64_t>((counts[region] + 7) / 4 * 4);
    gpu_.check_binding(bytes, "trials of a matmul");
    made.push_back(gpu_.buffer(bytes, "trials of a matmul")
                       .map([trial, region](const std::shared_ptr<Buffer>& buffer) {
                         trial->memory[region] = buffer;
                         return Done{};
                       }));
  }
  return all(made).map([this, trial](Done&) {
    for (std::size_t i = 0; i < trial->shaders.size(); ++i) {
      std::vector<Binding> bindings;
      for (const wgsl::Binding& b : trial->shaders[i].bindings)
        bindings.push_back({trial->memory[usize(b.region)].get()});
      trial->groups.push_back(gpu_.bind(*trial->pipelines[i], bindings));
    }
    return Done{};
  });
}

Completion<double> Tuner::microseconds(const std::shared_ptr<Trial>& trial,
                                       const Elements& elements) {
  return allocate(trial, elements)
      .map([this, trial](Done&) { return time(trial, 1); })  // clocks rise, caches fill
      .map([this, trial](double&) { return time(trial, 1); })
      .map([this, trial](const double one) {
        return shortest(trial, static_cast<int>(std::clamp(kTrial / one, 1.0, 50.0)), kTrials);
      });
}

Completion<double> Tuner::shortest(const std::shared_ptr<Trial>& trial, int repeats, int trials) {
  return time(trial, repeats).map([=, this](const double first) {
    if (trials == 1) return Completion<double>(first);
    return shortest(trial, repeats, trials - 1).map([first](const double rest) {
      return std::min(first, rest);
    });
  });
}

void Tuner::dispatch(const Trial& trial, int repeats) {
  for (int r = 0; r < repeats; ++r)
    for (std::size_t i = 0; i < trial.groups.size(); ++i) {
      const auto& [x, y, z] = trial.shaders[i].workgroups;
      gpu_.dispatch(*trial.pipelines[i], *trial.groups[i], x, y, z);
    }
}

// By the clock of the device, if it has one: the program may poll late.
Completion<double> Tuner::time(const std::shared_ptr<Trial>& trial, int repeats) {
  using Clock = std::chrono::steady_clock;
  if (gpu_.info().timestamps) {
    gpu_.profile(true);
    dispatch(*trial, repeats);
    gpu_.profile(false);
    return gpu_.take_times().map([repeats](const std::vector<DispatchTime>& times) {
      double sum = 0;
      for (const DispatchTime& each : times)
        sum += static_cast<double>(each.end_ns - each.begin_ns);
      return sum / 1000 / repeats;
    });
  }
  return gpu_.done().map([this, trial, repeats](Done&) {
    const auto start = Clock::now();
    dispatch(*trial, repeats);
    return gpu_.done().map([start, repeats](Done&) {
      return std::chrono::duration<double, std::micro>(Clock::now() - start).count() / repeats;
    });
  });
}

}  // namespace tensorgrad::webgpu
