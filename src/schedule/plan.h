// Stage `plan`: Graph -> Plan. Every group gets its place in the order and every tensor its place
// in memory. Tensors of a run share the arena where their lifetimes do not meet; results and
// updates are computed straight into the memory that keeps them.
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

// A member of a group whose value goes to memory.
struct Stored {
  ir::NodeId node = -1;
  ir::Place place;
  int last_use = 0;      // the last step that reads it; the number of steps if it outlives the run
  ir::NodeId over = -1;  // the operand that it is written over, if any
};

struct Step {
  Group group;
  std::vector<Stored> stored;
  int stage =
      0;  // steps of one stage do not need each other and share no memory that one of them writes
  ir::NodeId copied = -1;  // instead of a group: this node's memory is copied to the place
  // What it cannot do without: arithmetic, and each element of memory read or written once.
  std::int64_t operations = 0, bytes_read = 0, bytes_written = 0;

  std::string_view kind() const;  // rows, columns, matmul, single or copy
};

struct Plan {
  ir::Graph graph;
  Fused fused;  // its groups are those of the steps
  std::vector<Step> steps;
  std::vector<std::optional<ir::Place>> places;      // of each node that lies in memory
  std::vector<ir::Place> results;                    // of each result of the graph
  Layout outputs;                                    // results of kind output and capture
  std::array<std::int64_t, ir::kSpaces> elements{};  // of each space, as far as this plan knows
  std::int64_t most_alive = 0;                       // elements of the arena that live at once,
  int peak_stage = 0;                                // first in this stage

  std::int64_t bytes(ir::Space space) const { return 4 * elements[usize(space)]; }
  std::int64_t arena_bytes() const;  // of all arenas
  // The layer and the user's line that a step comes from: "layers.0.mlp, at gpt.cpp:41".
  std::string where(const Step& step) const;
  std::string text() const;
};

// Where the tensors that outlive a run lie. `parameters` names every parameter of the model; state
// and inputs that are new are added.
struct Layouts {
  const Layout& parameters;
  Layout& state;
  Layout& inputs;
};

// The graph has passed `materialise`, and `fused` is what `fuse` made of it. `without`: names of
// switches() to leave out. `piece`: elements that the device can have in one piece of memory; where
// temporaries need more, they are spread over several arenas.
Plan plan(const ir::Graph& graph, Fused fused, const Layouts& layouts,
          const std::vector<std::string>& without = {}, std::int64_t piece = kOnePiece);

}  // namespace tensorgrad::schedule
