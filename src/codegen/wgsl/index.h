// Index maps as WGSL: from a position to an address, with as little arithmetic as the map allows.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "codegen/wgsl/source.h"
#include "ir/index_map.h"

namespace tensorgrad::wgsl {

// Where an element lies: an address that is always safe to read, and the conditions under which
// what is there counts; where one fails, the element is that fill instead (the first that fails
// decides).
struct Address {
  std::string text;  // u32
  struct Guard {
    std::string holds;  // bool
    double fill = 0;
  };
  std::vector<Guard> guards;
};

// Of element number `linear` (u32, row-major in the map's shape).
Address address(Source& source, const ir::IndexMap& map, const std::string& linear,
                std::int64_t offset);

// The same for a map over [batch..., rows, columns].
Address address(Source& source, const ir::IndexMap& map, const std::string& batch,
                const std::string& row, const std::string& column, std::int64_t offset);

// The map of quads: position q stands for elements 4q .. 4q + 3, which lie side by side, aligned
// (`step` 1: the address is of a quad), or are one and the same (`step` 0: the address is of an
// element). Nothing when neither is so.
struct QuadMap {
  ir::Layer layer;
  int step = 1;
};
std::optional<QuadMap> quad_map(const ir::IndexMap& map, std::int64_t offset);
std::string quad_address(Source& source, const QuadMap& map, const std::string& linear);

}  // namespace tensorgrad::wgsl
