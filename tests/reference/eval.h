// Builds graphs for the tests of the interpreter from records that have only a name, so that these
// tests need no op table and no type rules.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "reference/interpret.h"

namespace tensorgrad::reference {

inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kIntMin = std::numeric_limits<std::int32_t>::min();
inline constexpr double kIntMax = std::numeric_limits<std::int32_t>::max();

// The record of that name; lives as long as the program.
const ir::Primitive& record(std::string_view name);

inline Value floats(const Shape& shape, const std::vector<double>& data) {
  return {{f32, shape}, data};
}
inline Value ints(const Shape& shape, const std::vector<double>& data) {
  return {{i32, shape}, data};
}
inline Value bools(const Shape& shape, const std::vector<double>& data) {
  return {{boolean, shape}, data};
}

// Appends an input leaf for the value, or a node of the op.
ir::NodeId add_input(ir::Graph& graph, Leaves& leaves, const Value& value);
ir::NodeId add_node(ir::Graph& graph, std::string_view op, std::vector<ir::NodeId> inputs,
                    ir::Attrs attrs, ir::Type type);

// The value of one op on the operands.
Value eval(std::string_view op, const std::vector<Value>& operands, ir::Attrs attrs, ir::Type type);

// Expects the op to give exactly these elements; NaN matches NaN.
void expect_eval(std::string_view op, const std::vector<Value>& operands, ir::Attrs attrs,
                 const Value& expected);
// The same up to a relative error.
void expect_eval_near(std::string_view op, const std::vector<Value>& operands, ir::Attrs attrs,
                      const Value& expected, double relative = 1e-15);

// The text of the error that the op throws.
std::string user_error_of(std::string_view op, const std::vector<Value>& operands, ir::Attrs attrs,
                          ir::Type type);
std::string internal_error_of(std::string_view op, const std::vector<Value>& operands,
                              ir::Attrs attrs, ir::Type type);

}  // namespace tensorgrad::reference
