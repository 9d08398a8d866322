// The pipeline: how a function becomes an executable. One table (pipeline.cpp) lists its stages in
// the order they run. `tg show`, `tg passes`, --without, timings and the docs read that table.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/kernel.h"
#include "ops/builder.h"
#include "optim/update.h"
#include "runtime/device.h"
#include "schedule/plan.h"
#include "tensorgrad/compile.h"
#include "trace/trace.h"

namespace tensorgrad::detail {

// What to compile. The same for all executables of a program.
struct Request {
  struct Parameter {
    std::string name;
    Shape shape;
    std::int64_t offset = 0;  // in the flat parameters
    bool decay = false, normalize = false;
  };

  trace::TraceOptions trace;
  // Training: the parameters that the loss is differentiated by, and their update. Forward programs
  // have none, and no stages `differentiate` and `update`.
  std::vector<Parameter> trained;
  std::int64_t flat_elements = 0;
  optim::UpdateOptions update;
  std::vector<std::string> without;  // passes left out

  bool trains() const { return !trained.empty(); }
};

// One executable on its way through the stages. Each stage reads what earlier ones made.
struct Compilation {
  Request request;
  const trace::Source* source = nullptr;  // only while stage `trace` runs
  // The update that this executable makes; none: it ends with the gradients.
  std::optional<optim::Purpose> purpose;
  bool captures = false;  // it also returns captured values

  // The device, and where tensors that outlive a run lie.
  runtime::Device* device = nullptr;
  const schedule::Layout* parameters = nullptr;
  schedule::Layout *state = nullptr, *inputs = nullptr;
  int tag = 0;  // of the executable, in reports of bad ids
  CompileCallback progress;

  // What the stages make.
  ops::Builder builder;  // until `update`: the graph that ops append to
  Tensor loss;
  std::vector<optim::Trained> trained;
  std::shared_ptr<const ir::Graph> traced, recognised, differentiated, updated, simplified,
      materialised;
  schedule::Fused fused;
  schedule::Plan plan;
  std::vector<ir::Kernel> kernels;
  std::shared_ptr<const runtime::Emitted> emitted;
  std::shared_ptr<runtime::Loaded> loaded;

  std::vector<StageTime> times;  // of the stages that have run, in order
};

struct Stage {
  enum class Id : std::uint8_t {
    trace,
    recognise,
    differentiate,
    update,
    simplify,
    materialise,
    fuse,
    plan,
    lower,
    emit,
    load,
  };
  Id id;
  StageInfo info;
  Completion<Done> (*run)(Compilation&);
  std::string (*show)(const Compilation&);
  // Whether an executable of the request has the stage.
  bool (*applies)(const Compilation&) = [](const Compilation&) { return true; };
};

// The stages in the order they run.
std::span<const Stage> pipeline();

// Runs the stages from `first` to `last` that apply, and notes how long each takes. All but `emit`
// and `load` are done in the call, which throws their errors.
Completion<Done> run_stages(const std::shared_ptr<Compilation>& compilation, Stage::Id first,
                            Stage::Id last);

// The text of a stage. Throws a UserError if there is no such stage, or if the program lacks it.
std::string show_stage(const Compilation& compilation, std::string_view name);

}  // namespace tensorgrad::detail
