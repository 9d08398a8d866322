// Matmuls large enough that a device has a choice of tiles.
#pragma once

#include <fmt/format.h>

#include "checks/planned.h"
#include "ops/table.h"

namespace tensorgrad {

struct Product {
  const char* name;
  const char* graph;
};

inline const Product kProducts[] = {
    {"plain", R"(
  %0 = input {name="x", dtype=f32, shape=[1024,96]}
  %1 = input {name="y", dtype=f32, shape=[96,1024]}
  %2 = matmul(%0, %1)
  output "p" = %2
)"},
    {"ragged", R"(
  %0 = input {name="x", dtype=f32, shape=[901,94]}
  %1 = input {name="y", dtype=f32, shape=[94,1001]}
  %2 = matmul(%0, %1)
  %3 = tanh(%2)
  output "p" = %3
)"},
    {"transposed", R"(
  %0 = input {name="x", dtype=f32, shape=[8,64,256]}
  %1 = input {name="y", dtype=f32, shape=[8,300,64]}
  %2 = permute(%0) {order=[0,2,1]}
  %3 = permute(%1) {order=[0,2,1]}
  %4 = matmul(%2, %3)
  output "p" = %4
)"},
    {"with_an_epilogue", R"(
  %0 = input {name="x", dtype=f32, shape=[1024,64]}
  %1 = input {name="y", dtype=f32, shape=[64,1024]}
  %2 = matmul(%0, %1)
  %3 = input {name="b", dtype=f32, shape=[1024]}
  %4 = broadcast_to(%3) {shape=[1024,1024]}
  %5 = add(%2, %4)
  %6 = gelu(%5)
  %7 = mul(%6, %5)
  %8 = add(%7, %4)
  output "p" = %8
)"},
    {"in_parts_with_sums", R"(
  %0 = input {name="x", dtype=f32, shape=[2100,300]}
  %1 = input {name="y", dtype=f32, shape=[2100,520]}
  %2 = permute(%0) {order=[1,0]}
  %3 = matmul(%2, %1)
  %4 = reduce_sum(%1) {axes=[0]}
  output "p" = %3
  output "s" = %4
)"},
};

inline schedule::Plan plan_of(const char* body) {
  const ir::Graph graph = ir::parse(fmt::format("graph {{{}}}\n", body), ops::find_primitive);
  schedule::Layout parameters, state, inputs;
  return eval::planned(graph, {parameters, state, inputs});
}

}  // namespace tensorgrad
