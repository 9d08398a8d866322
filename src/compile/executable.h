// Executable: a planned graph, its loaded kernels, and the memory of its results and temporaries.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "compile/pipeline.h"
#include "runtime/device.h"
#include "tensorgrad/completion.h"

namespace tensorgrad::detail {

class Run;

struct Executable {
  Compilation made;
  std::shared_ptr<runtime::Buffer> outputs;
  std::array<std::shared_ptr<runtime::Buffer>, ir::kArenas> arenas;
  std::optional<std::int64_t> guard;  // where the result of the guard lies in `outputs`
  runtime::Spaces spaces;             // all memory that its kernels use
  std::weak_ptr<Run> latest;          // the run that wrote `outputs`
};

// Plans the graph in the call. Then allocates memory, and compiles the kernels. `front` has the
// stages to `differentiate`, and knows the device and the layouts.
Completion<std::shared_ptr<Executable>> make_executable(Compilation front);

}  // namespace tensorgrad::detail
