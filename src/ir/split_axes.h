// A map of several layers as one layer over finer axes. Such maps come from reshapes that merge
// axes, as convolution does with channels and kernel sizes: the digits of a merged position are the
// positions along the axes that were merged.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/index_map.h"

namespace tensorgrad::ir {

struct SplitMap {
  // A part of an axis of the map's shape.
  struct Digit {
    int axis;
    std::int64_t size;
  };
  struct Form {
    std::vector<std::int64_t> coef;  // per digit
    std::int64_t offset = 0;
  };
  struct Guard {
    Form form;
    std::int64_t extent = 0;
    double fill = 0;
  };

  std::vector<Digit> digits;  // in the order of the axes, and within an axis the outermost first
  Form address;
  std::vector<Guard> guards;
};

// Returns nothing if the layers cannot be joined.
std::optional<SplitMap> split_axes(const IndexMap& map);

// Layers that visit the same elements in the same order: one if that is possible, coarsened.
std::vector<Layer> joined_layers(const IndexMap& map);

}  // namespace tensorgrad::ir
