// Runs a Graph on a device from its leaves, without a model or a session: plan, lower, load,
// submit, read. All memory is poisoned first, and what no kernel owns is looked at afterwards, so
// that a wild write or the use of memory that was never written cannot go unnoticed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "reference/interpret.h"
#include "schedule/arena.h"
#include "schedule/layout.h"
#include "tensorgrad/progress.h"

namespace tensorgrad::runtime {
class Device;
}

namespace tensorgrad::eval {

struct EvalOptions {
  std::string device = "cpu";
  int threads = 1;
  bool simplify = false;             // the passes of stage `simplify` first
  std::vector<std::string> without;  // passes and parts of the scheduler to leave out
  bool guards = false;  // every tensor gets memory of its own, with poison on both sides of it
  std::int64_t piece = schedule::kOnePiece;  // elements of temporaries in one arena, at most
  bool backwards = false;  // the kernels of each stage in the opposite order, which must not matter
  // Where parameters lie; needed when the graph also sees them as one flat tensor. Null: anywhere.
  const schedule::Layout* parameters = nullptr;
  CompileCallback progress = {};
};

struct Evaluated {
  std::vector<reference::Value> results;         // one for each of graph.results
  std::vector<std::vector<std::uint32_t>> bits;  // the same as they lie in memory
  // Where memory changed that no kernel of the plan may write: the first such element by name and
  // offset; empty when there is none.
  std::string damage;
};

// Leaves are rounded to f32. A leaf that is missing is a UserError.
Evaluated evaluate(const ir::Graph& graph, const reference::Leaves& leaves,
                   const EvalOptions& options = {});
// On this device, whatever the options say of device and threads.
Evaluated evaluate_on(runtime::Device& device, const ir::Graph& graph,
                      const reference::Leaves& leaves, const EvalOptions& options = {});

// The values of the graph's results by the interpreter.
std::vector<reference::Value> interpret_results(const ir::Graph& graph,
                                                const reference::Leaves& leaves);

// An element that is off by more than is allowed.
struct Mismatch {
  std::size_t element = 0;
  ir::Type type;  // of the tensor
  double got = 0, want = 0, error = 0, allowed = 0;

  std::string text() const;
};

struct Comparison {
  std::vector<Mismatch> wrong;  // elements in order
  // The largest error as a share of what is allowed: up to 1 where nothing is wrong, infinity where
  // no error is allowed or one has no measure.
  double worst = 0;
};

// An element may be off by tolerance * max(1, largest |wanted|); i32 and bool must be equal. NaN
// matches NaN, infinity itself, and what is too large for a float infinity. Both are of one type.
Comparison compare(const reference::Value& got, const reference::Value& want, double tolerance);

// The first mismatch as text, a difference of types included; empty when all agree.
std::string difference(const reference::Value& got, const reference::Value& want, double tolerance);

}  // namespace tensorgrad::eval
