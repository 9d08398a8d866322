// Emits index maps as WGSL: from a position to an address, with as little arithmetic as possible.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "codegen/wgsl/source.h"
#include "ir/index_map.h"

namespace tensorgrad::wgsl {

// The location of an element: an address that is always safe to read, and the guards under which
// the value there is valid. Where a guard fails, the element is its fill value; the first guard
// that fails decides.
struct Address {
  std::string text;  // u32
  struct Guard {
    std::string holds;  // bool
    double fill = 0;
  };
  std::vector<Guard> guards;
};

// The address of element `linear` (u32, row-major in the map's shape).
Address address(Source& source, const ir::IndexMap& map, const std::string& linear,
                std::int64_t offset);

// The same for a map over [batch..., rows, columns].
Address address(Source& source, const ir::IndexMap& map, const std::string& batch,
                const std::string& row, const std::string& column, std::int64_t offset);

// The map in quads: position q stands for elements 4q .. 4q + 3. They are either contiguous and
// aligned (`step` 1: the address of a quad), or all the same element (`step` 0: the address of an
// element). Empty if neither holds.
struct QuadMap {
  ir::Layer layer;
  int step = 1;
};
std::optional<QuadMap> quad_map(const ir::IndexMap& map, std::int64_t offset);
std::string quad_address(Source& source, const QuadMap& map, const std::string& linear);

}  // namespace tensorgrad::wgsl
