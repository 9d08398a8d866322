// Loads and stores carry how many elements their tensors have.
#include <gtest/gtest.h>

#include "checks/planned.h"
#include "kernels/lower.h"
#include "ops/table.h"

namespace tensorgrad {
namespace {

schedule::Plan plan_of(const std::string& body) {
  schedule::Layout parameters, state, inputs;
  return eval::planned(ir::parse("graph {" + body + "}\n", ops::find_primitive),
                       {parameters, state, inputs});
}

// "rows: 12 -> 3 4", a line for each kernel: elements of what it reads and of what it writes.
std::string extents(const std::string& body) {
  std::string out;
  const schedule::Plan plan = plan_of(body);
  for (const ir::Kernel& kernel : kernels::lower(plan, ir::cpu_model())) {
    out += std::string(ir::kind_name(kernel)) + ":";
    for (const ir::Load& load : kernel.loads) {
      if (load.source != ir::Load::Source::memory) continue;
      out += " " + std::to_string(load.elements);
      EXPECT_LE(load.place.offset + load.elements,
                plan.elements[static_cast<std::size_t>(load.place.space)]);
    }
    out += " ->";
    ir::for_each_store(kernel, [&](const ir::Store& store) {
      out += " " + std::to_string(store.elements);
      EXPECT_EQ(store.elements, plan.graph[store.node].type.shape.count());
      EXPECT_LE(store.place.offset + store.elements,
                plan.elements[static_cast<std::size_t>(store.place.space)]);
    });
    out += "\n";
  }
  return out;
}

TEST(Extents, AreThoseOfTensorsNotOfViews) {
  EXPECT_EQ(extents(R"(
  %0 = input {name="x", dtype=f32, shape=[40,10]}
  %1 = narrow(%0) {axis=0, start=5, length=3}
  %2 = exp(%1)
  output "y" = %2
)"),
            "rows: 400 -> 30\n");
}

TEST(Extents, RowsStorePerElementAndPerLine) {
  EXPECT_EQ(extents(R"(
  %0 = input {name="x", dtype=f32, shape=[40,10]}
  %1 = exp(%0)
  %2 = reduce_sum(%1) {axes=[1]}
  output "y" = %1
  output "z" = %2
)"),
            "rows: 400 -> 400 40\n");
}

TEST(Extents, OfMatmul) {
  EXPECT_EQ(extents(R"(
  %0 = input {name="x", dtype=f32, shape=[40,10]}
  %1 = input {name="y", dtype=f32, shape=[10,7]}
  %2 = matmul(%0, %1)
  output "p" = %2
)"),
            "matmul: 400 70 -> 280\n");
}

// The sums by id have more elements than the values, or fewer.
TEST(Extents, OfKernelsOfOneNode) {
  EXPECT_EQ(extents(R"(
  %0 = input {name="x", dtype=f32, shape=[40,10]}
  %1 = input {name="i", dtype=i32, shape=[40]}
  %2 = segment_sum(%0, %1) {rows=100}
  %3 = cumsum(%0) {axis=0, reverse=false}
  output "s" = %2
  output "c" = %3
)"),
            "segment_sum: 40 400 -> 1000\nscan: 400 -> 400\n");
}

}  // namespace
}  // namespace tensorgrad
