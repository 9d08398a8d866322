// Runs a Graph on a device from its leaves, without a model or a session: plan, lower, load,
// submit, read. Poisons all memory first and checks afterwards the memory that no kernel owns, so
// that it detects wild writes and reads of unwritten memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "reference/interpret.h"
#include "schedule/arena.h"
#include "schedule/layout.h"
#include "tensorgrad/completion.h"
#include "tensorgrad/progress.h"

namespace tensorgrad::runtime {
class Device;
}

namespace tensorgrad::eval {

struct EvalOptions {
  std::string device = "cpu";
  int threads = 1;
  bool simplify = false;             // run the passes of stage `simplify` first
  std::vector<std::string> without;  // passes and parts of the scheduler to leave out
  bool guards = false;               // every tensor has its own memory, with poison on both sides
  std::int64_t piece = schedule::kOnePiece;  // maximum elements per arena of temporaries
  bool backwards = false;  // run the kernels of each stage in reverse order, which must not matter
  // The layout of the parameters, needed if the graph also reads them as one flat tensor. Null:
  // any.
  const schedule::Layout* parameters = nullptr;
  CompileCallback progress = {};
};

struct Evaluated {
  std::vector<reference::Value> results;         // one per result of the graph
  std::vector<std::vector<std::uint32_t>> bits;  // the same as raw memory
  // The first element, by name and offset, that changed although no kernel of the plan may write
  // it; empty if there is none.
  std::string damage;
};

// Rounds leaves to f32. Throws a UserError if a leaf is missing.
Evaluated evaluate(const ir::Graph& graph, const reference::Leaves& leaves,
                   const EvalOptions& options = {});
// Runs on this device and ignores the device and threads of the options.
Evaluated evaluate_on(runtime::Device& device, const ir::Graph& graph,
                      const reference::Leaves& leaves, const EvalOptions& options = {});
// The same without waiting: polling the device completes it. Keep the device until then.
Completion<Evaluated> evaluate_later(runtime::Device& device, const ir::Graph& graph,
                                     const reference::Leaves& leaves,
                                     const EvalOptions& options = {});

// Computes the values of the graph's results with the interpreter.
std::vector<reference::Value> interpret_results(const ir::Graph& graph,
                                                const reference::Leaves& leaves);

// An element whose error exceeds the allowed error.
struct Mismatch {
  std::size_t element = 0;
  ir::Type type;  // of the tensor
  double got = 0, want = 0, error = 0, allowed = 0;

  std::string text() const;
};

struct Comparison {
  std::vector<Mismatch> wrong;  // elements in order
  // The largest error divided by the allowed error: up to 1 if nothing is wrong, infinite if no
  // error is allowed or an error has no size.
  double worst = 0;
};

// The allowed error is tolerance * max(1, largest |wanted|); i32 and bool must be equal. NaN
// matches NaN, infinity matches itself, and a value too large for a float matches infinity. Both
// tensors have the same type.
Comparison compare(const reference::Value& got, const reference::Value& want, double tolerance);

// The first mismatch as text, which may be a difference of types; empty if all agree.
std::string difference(const reference::Value& got, const reference::Value& want, double tolerance);

}  // namespace tensorgrad::eval
