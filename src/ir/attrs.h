// The attributes of graph nodes: one small aggregate per kind. The fields are reflected, so the
// printer, the parser, the hash and equality need no code per kind.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "tensorgrad/shape.h"

namespace tensorgrad::ir {

// clang-format off
struct NoAttrs {};
struct LeafAttrs { std::string name; DType dtype; Shape shape; };  // input, parameter, state
struct ConstantAttrs { double value; DType dtype; };        // constant
struct IotaAttrs { std::int64_t size; };                    // iota
struct CastAttrs { DType to; };                             // cast
struct AxesAttrs { std::vector<int> axes; };                // reductions: ascending and distinct
struct AxisAttrs { int axis; };                             // argmax, concat, flip, ...
struct CumsumAttrs { int axis; bool reverse; };             // cumsum
struct ShapeAttrs { Shape shape; };                         // reshape, broadcast_to
struct OrderAttrs { std::vector<int> order; };              // permute
struct NarrowAttrs { int axis; std::int64_t start, length; };
struct PadAttrs { int axis; std::int64_t before, after; double value; };
// windows, and fold, which adds windows back into an axis of size `length`
struct WindowAttrs { int axis; std::int64_t size, stride, dilation, length; };
struct RowsAttrs { std::int64_t rows; };                    // segment_sum: rows of the result
struct ScatterAttrs { int axis; std::int64_t size; };       // scatter_add: size of that axis
struct RandomAttrs { std::int64_t site; };                  // random: index of the call
struct NormAttrs { double eps; };                           // normalize
struct AttentionAttrs { bool causal; double scale; };       // attention, attention_gradient
struct SelectiveScanAttrs { bool zoh; std::int64_t chunk; };  // selective_scan and its gradient
struct CheckAttrs { std::int64_t size; };                   // check_index: ids must be below this
// clang-format on

using Attrs = std::variant<NoAttrs, LeafAttrs, ConstantAttrs, IotaAttrs, CastAttrs, AxesAttrs,
                           AxisAttrs, CumsumAttrs, ShapeAttrs, OrderAttrs, NarrowAttrs, PadAttrs,
                           WindowAttrs, RowsAttrs, ScatterAttrs, RandomAttrs, CheckAttrs, NormAttrs,
                           AttentionAttrs, SelectiveScanAttrs>;

}  // namespace tensorgrad::ir
