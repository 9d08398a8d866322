// Kernel: the loop level. An iteration space, a scalar program whose loads go through index maps,
// and one of a few structured cores over that space. Every backend consumes this and nothing else.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/index_map.h"
#include "ir/scalar.h"

namespace tensorgrad::ir {

// The kinds of memory a program touches. All but `arena` outlive a run.
enum class Space : std::uint8_t { parameters, gradients, state, inputs, outputs, arena };
inline constexpr int kSpaces = 6;
const char* name(Space space);

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
  IndexMap map = IndexMap::contiguous({});  // over the kernel's space; iota: the address is the value
};

struct Store {
  Place place;
  DType dtype = DType::f32;
  IndexMap map = IndexMap::contiguous({});  // strided, every element written once
};

struct Kernel {
  enum class Kind : std::uint8_t {
    map,          // program over `space`, one store
    reduce,       // program over `space`; the last axes are combined, or the first if `leading`
    arg_reduce,   // position of the best along the last axis
    scan,         // running combine along the last axis
    matmul,       // load 0 [batch..., M, K] times load 1 [batch..., K, N]
    segment_sum,  // load 0 ids [P], load 1 rows [P, D], result [rows, D]
    scatter_add,  // load 0 ids, load 1 values, both over `space`; added along the last axis
  };
  Kind kind = Kind::map;
  std::string name;    // the op it came from, for people
  NodeId node = -1;    // whose result it stores
  Shape space;
  int reduced = 0;       // reduce: how many axes are combined
  bool leading = false;  // reduce: they are the first axes, not the last
  Combine combine = Combine::none;
  bool reverse = false;         // scan: from the end
  std::int64_t extent = 0;      // segment_sum, scatter_add: ids are below this
  std::int64_t stride = 0;      // scatter_add: distance of neighbours along that axis of the result
  std::vector<Load> loads;
  ScalarProgram program;        // map, reduce, arg_reduce, scan: the last register is the value
  Store store;

  std::string text() const;
};

const char* name(Kernel::Kind kind);

}  // namespace tensorgrad::ir
