// Stage `plan`: Graph -> Plan. Assigns a position in the order to every group and an address to
// every tensor. Temporaries share the arena if their lifetimes do not overlap. Results and updates
// are written directly to their final address.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/kernel.h"
#include "schedule/arena.h"
#include "schedule/fuse.h"
#include "schedule/layout.h"
#include "support/integers.h"

namespace tensorgrad::schedule {

// A member of a group whose value is written to memory.
struct Stored {
  ir::NodeId node = -1;
  ir::Place place;
  int last_use = 0;      // the last step that reads it; the number of steps if it outlives the run
  ir::NodeId over = -1;  // the operand that it overwrites, if any
};

struct Step {
  Group group;
  std::vector<Stored> stored;
  int stage = 0;  // steps of one stage are independent and share no memory that one of them writes
  ir::NodeId copied = -1;  // instead of a group: this node's memory is copied to the place
  // The minimum cost: arithmetic, and each element of memory read or written once.
  std::int64_t operations = 0, bytes_read = 0, bytes_written = 0;

  std::string_view kind() const;  // rows, columns, matmul, single or copy
};

struct Plan {
  ir::Graph graph;
  Fused fused;  // the groups of the steps
  std::vector<Step> steps;
  std::vector<std::optional<ir::Place>> places;      // of each node in memory
  std::vector<ir::Place> results;                    // of each result of the graph
  Layout outputs;                                    // results of kind output and capture
  std::array<std::int64_t, ir::kSpaces> elements{};  // of each space, as far as this plan knows
  std::int64_t most_alive = 0;                       // maximum number of live elements in the arena
  int peak_stage = 0;                                // the first stage with that many

  std::int64_t bytes(ir::Space space) const { return 4 * elements[usize(space)]; }
  std::int64_t arena_bytes() const;  // of all arenas
  // The module and the user's source line of a step: "layers.0.mlp, at gpt.cpp:41".
  std::string where(const Step& step) const;
  std::string text() const;
};

// Layouts of the tensors that outlive a run. `parameters` contains every parameter of the model.
// New state and inputs are added.
struct Layouts {
  const Layout& parameters;
  Layout& state;
  Layout& inputs;
};

// The graph has passed `materialise`, and `fused` is the result of `fuse` on it. `without`: names
// of switches() to leave out. `piece`: maximum elements of one buffer on the device. Temporaries
// that need more are spread over several arenas.
Plan plan(const ir::Graph& graph, Fused fused, const Layouts& layouts, const ir::DeviceModel& model,
          const std::vector<std::string>& without = {}, std::int64_t piece = kOnePiece);

}  // namespace tensorgrad::schedule
