// Kernel: the loop level. An iteration space, a scalar program whose loads go through index maps,
// and one of a few structured cores over that space. Every backend consumes this and nothing else.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/index_map.h"
#include "ir/scalar.h"
#include "ir/sequence.h"

namespace tensorgrad::ir {

// The kinds of memory a program touches. All but the arenas outlive a run; there is more than one
// arena only where a device cannot have all temporaries in one piece.
enum class Space : std::uint8_t {
  parameters,
  gradients,
  state,
  inputs,
  outputs,
  arena,
  arena_1,
  arena_2,
  arena_3
};
inline constexpr int kSpaces = 9;
inline constexpr int kArenas = 4;
const char* name(Space space);
inline bool is_arena(Space space) { return space >= Space::arena; }
inline Space arena(int i) { return static_cast<Space>(static_cast<int>(Space::arena) + i); }

// Where a tensor starts: elements (four bytes each) from the start of its space.
struct Place {
  Space space = Space::arena;
  std::int64_t offset = 0;
  friend bool operator==(const Place&, const Place&) = default;
};

struct Load {
  enum class Source : std::uint8_t { memory, iota, constant };
  Source source = Source::memory;
  Place place;       // memory
  double value = 0;  // constant
  DType dtype = DType::f32;
  IndexMap map =
      IndexMap::contiguous({});  // over the kernel's space; iota: the address is the value
};

// A value that goes to memory, in the row-major order of its elements (or lines).
struct Store {
  Place place;
  DType dtype = DType::f32;
  Reg value = -1;    // of the kernel's program, or of a part's epilogue
  NodeId node = -1;  // whose result it is
};

// One product of a matmul kernel: the columns that come from one right operand.
struct MatmulPart {
  std::int64_t N = 0;
  ScalarProgram b;         // over [batch..., K, N]: the right operand
  ScalarProgram epilogue;  // over [batch..., M, N]: what becomes of the product
  std::vector<Store> stores;
  Store column_sums;  // sums of the right operand over K [batch..., N], if its place is used
  bool sums_columns = false;
};

struct Kernel {
  enum class Kind : std::uint8_t {
    rows,        // program over `lines` rows of `length` elements; reductions run along rows
    columns,     // program over `length` rows of `lines` elements; reductions run down columns
    arg_reduce,  // position of the best element of each row
    scan,        // running sum along each row
    matmul,
    segment_sum,  // load 0 ids [P], load 1 values [P, D]: lines = D, length = P
    scatter_add,  // load 0 ids, load 1 values, rows of `length`; added along rows of `extent`
    // Loads: q [B, H, T, D], k [B, G, S, D], v [B, G, S, V], and start [] if `attention.cached`.
    // The gradient reads out [B, H, T, V], log-sum-exp [B, H, T] and g [B, H, T, V] before the
    // start.
    attention,
    attention_gradient,
    // Loads: u, delta [B, L, E], A_log [E, N], B, C [B, L, N], D [E]. The gradient goes on with the
    // states [B, chunks - 1, E, N] and g [B, L, E].
    selective_scan,
    selective_scan_gradient,
  };
  Kind kind = Kind::rows;
  std::string name;  // the ops it came from, for people
  int stage = -1;    // neighbours of one stage may run in any order, or at once; -1: alone
  std::int64_t lines = 1, length = 1;
  std::vector<Load> loads;
  ScalarProgram program;
  std::vector<Store> stores;

  Combine combine = Combine::none;                // arg_reduce
  bool reverse = false;                           // scan: from the end
  std::int64_t extent = 0;                        // segment_sum, scatter_add: ids are below this
  IndexMap store_map = IndexMap::contiguous({});  // scan, scatter_add: where the rows' elements go

  AttentionShape attention;
  SelectiveScanShape selective_scan;

  std::int64_t batches = 1, M = 0, K = 0;  // matmul
  std::string tiles;  // matmul: those that a device likes best, by name; empty: by shape
  ScalarProgram a;    // over [batch..., M, K]: the left operand
  std::vector<MatmulPart> parts;

  std::int64_t elements() const { return lines * length; }
  std::string text() const;
};

const char* name(Kernel::Kind kind);

}  // namespace tensorgrad::ir
