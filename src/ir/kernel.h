// Kernel: the loop level. A kernel is one of a few kinds (`Kernel::Core`), each with an iteration
// space, scalar programs whose loads go through index maps, and stores. Every backend consumes
// kernels and nothing else.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "ir/graph.h"
#include "ir/index_map.h"
#include "ir/scalar.h"
#include "ir/sequence.h"
#include "ir/variants.h"

namespace tensorgrad::ir {

// The kinds of memory that a program accesses. All spaces except the arenas outlive a run. There is
// more than one arena only if a device cannot allocate all temporaries as one buffer.
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

// The start of a tensor, in elements (four bytes each) from the start of its space.
struct Place {
  Space space = Space::arena;
  std::int64_t offset = 0;
  bool operator==(const Place&) const = default;
};

struct Load {
  enum class Source : std::uint8_t { memory, iota, constant };
  Source source = Source::memory;
  Place place;                // memory
  std::int64_t elements = 0;  // memory: elements of the tensor, from its place on
  double value = 0;           // constant
  DType dtype = DType::f32;
  // Over the kernel's iteration space; iota: the address is the value.
  IndexMap map = IndexMap::contiguous({});
};

// A value that is written to memory, in the row-major order of its elements (or lines).
struct Store {
  Place place;
  std::int64_t elements = 0;  // elements of the tensor, from its place on; all are written
  DType dtype = DType::f32;
  Reg value = -1;    // register of the kernel's program, or of a part's epilogue
  NodeId node = -1;  // the node that this value is the result of
};

// An iteration space of `lines` times `length` elements.
struct Lines {
  std::int64_t lines = 1, length = 1;
  std::int64_t elements() const { return lines * length; }
  Lines space() const { return *this; }
};

// A program over lines. The shape of each load is the iteration space. A store has one element per
// line if its value is per line (`Instr::line`), otherwise one per element.
struct LinesKernel : Lines {
  ScalarProgram program;
  std::vector<Store> stores;
};

// `lines` rows of `length` elements. Reductions run along rows.
struct RowsKernel : LinesKernel {
  static constexpr const char* kName = "rows";
  RowsVariant variant;
};

// `length` rows of `lines` elements. Reductions run down columns. All stores are per line.
struct ColumnsKernel : LinesKernel {
  static constexpr const char* kName = "columns";
  ColumnsVariant variant;
};

// The position of the best element of each row. The last register of the program is the element.
struct ArgReduceKernel : Lines {
  static constexpr const char* kName = "arg_reduce";
  ScalarProgram program;
  Combine combine = Combine::max;  // max or min
  Store store;                     // one position per row
};

// The running sum along each row.
struct ScanKernel : Lines {
  static constexpr const char* kName = "scan";
  ScalarProgram program;
  bool reverse = false;  // from the end
  Store store;
  IndexMap store_map = IndexMap::contiguous({});  // where the elements of the rows are stored
  ScanVariant variant;
};

// The part of a matmul kernel that comes from one right operand.
struct MatmulPart {
  std::int64_t N = 0;
  ScalarProgram b;         // over [batch..., K, N]: its last register is the right operand
  ScalarProgram epilogue;  // over [batch..., M, N]: elementwise ops on the accumulator
  std::vector<Store> stores;
  std::optional<Store> column_sums;  // sums of the right operand over K: [batch..., N]
};

// Matmuls that share a left operand.
struct MatmulKernel {
  static constexpr const char* kName = "matmul";
  std::int64_t batches = 1, M = 0, K = 0;
  ScalarProgram a;  // over [batch..., M, K]: its last register is the left operand
  std::vector<MatmulPart> parts;
  // Tiles on a GPU, blocks on a CPU. Empty until a variant is chosen.
  std::variant<std::monostate, MatmulTiles, MatmulBlocks> variant;
};

// Load 0: ids [P], load 1: values [P, D]. The result is [extent, D]: row v is the sum of the values
// whose id is v. lines = D, length = P.
struct SegmentSumKernel : Lines {
  static constexpr const char* kName = "segment_sum";
  std::int64_t extent = 0;  // ids must be below this; others are a fault
  Store store;
  SegmentSumVariant variant;
};

// Load 0: ids, load 1: values, both `lines` rows of `length`. Adds the values, by id, to rows of
// `extent` elements.
struct ScatterAddKernel : Lines {
  static constexpr const char* kName = "scatter_add";
  std::int64_t extent = 0;  // ids must be below this; others are a fault
  Store store;
  IndexMap store_map = IndexMap::contiguous({});  // where the elements of the rows are stored
};

struct AttentionCore {
  AttentionShape shape;
  Store store;  // packed as described by `shape`
  AttentionVariant variant;
  Lines space() const { return {shape.B * shape.H * shape.T, shape.S}; }
};

// Loads: q [B, H, T, D], k [B, G, S, D], v [B, G, S, V], and start [] if `shape.cached`.
struct AttentionKernel : AttentionCore {
  static constexpr const char* kName = "attention";
};

// The same loads, with these before start: out [B, H, T, V], log-sum-exp [B, H, T] and g [B, H, T,
// V].
struct AttentionGradientKernel : AttentionCore {
  static constexpr const char* kName = "attention_gradient";
};

struct SelectiveScanCore {
  SelectiveScanShape shape;
  Store store;  // packed as described by `shape`
  Lines space() const { return {shape.B * shape.E * shape.N, shape.L}; }
};

// Loads: u, delta [B, L, E], A_log [E, N], B, C [B, L, N], D [E].
struct SelectiveScanKernel : SelectiveScanCore {
  static constexpr const char* kName = "selective_scan";
};

// The same loads, followed by the states [B, chunks - 1, E, N] and g [B, L, E].
struct SelectiveScanGradientKernel : SelectiveScanCore {
  static constexpr const char* kName = "selective_scan_gradient";
};

struct Kernel {
  using Core =
      std::variant<RowsKernel, ColumnsKernel, ArgReduceKernel, ScanKernel, MatmulKernel,
                   SegmentSumKernel, ScatterAddKernel, AttentionKernel, AttentionGradientKernel,
                   SelectiveScanKernel, SelectiveScanGradientKernel>;
  std::string name;  // the ops that it was made from, for people
  int stage = -1;    // neighbours of one stage may run in any order, or concurrently; -1: alone
  std::vector<Load> loads;
  Core core;

  template <class T>
  bool is() const {
    return std::holds_alternative<T>(core);
  }
  template <class T>
  T* get_if() {
    return std::get_if<T>(&core);
  }
  template <class T>
  const T* get_if() const {
    return std::get_if<T>(&core);
  }

  std::string text() const;
};

// The printed name of the kind: "rows", "matmul", ...
const char* kind_name(const Kernel& kernel);
// "lines SEPARATOR length" of the iteration space. A matmul gives "batches x [M, K]" instead.
std::string space_text(const Kernel& kernel, const char* separator);
// The chosen variant: "tiles 128x64x16, k in 4 parts". Empty for kinds without variants.
std::string variant_text(const Kernel& kernel);

// Calls f(store) for each store of the kernel, in order. `K` is Kernel or const Kernel.
template <class K, class F>
requires std::is_same_v<std::remove_const_t<K>, Kernel>
void for_each_store(K& kernel, F f) {
  std::visit(
      [&](auto& core) {
        using Kind = std::remove_const_t<std::remove_reference_t<decltype(core)>>;
        if constexpr (std::is_same_v<Kind, MatmulKernel>) {
          for (auto& part : core.parts) {
            for (auto& store : part.stores) f(store);
            if (part.column_sums) f(*part.column_sums);
          }
        } else if constexpr (std::is_base_of_v<LinesKernel, Kind>) {
          for (auto& store : core.stores) f(store);
        } else {
          f(core.store);
        }
      },
      kernel.core);
}

// Calls f(program) for each scalar program of the kernel.
template <class F>
void for_each_program(const Kernel& kernel, F f) {
  std::visit(
      [&](const auto& core) {
        if constexpr (requires { core.parts; }) {
          f(core.a);
          for (const MatmulPart& part : core.parts) f(part.b), f(part.epilogue);
        } else if constexpr (requires { core.program; }) {
          f(core.program);
        }
      },
      kernel.core);
}

}  // namespace tensorgrad::ir
