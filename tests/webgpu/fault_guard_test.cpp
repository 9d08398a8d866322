// Kernels of any kind do not write state after a bad id was recorded.
#include <fmt/format.h>

#include <array>
#include <cstring>
#include <memory>
#include <span>

#include "checks/planned.h"
#include "kernels/lower.h"
#include "ops/table.h"
#include "runtime/blocking.h"
#include "tests/support/gpu_test.h"

namespace tensorgrad {
namespace {

struct Case {
  const char* name;
  const char* graph;
  std::size_t count;  // elements of the state
};

const Case kCases[] = {
    {"rows", R"(
  %2 = state {name="s", dtype=f32, shape=[8]}
  %3 = input {name="x", dtype=f32, shape=[8]}
  %4 = exp(%3)
  update "s" = %4
)",
     8},
    {"columns", R"(
  %2 = state {name="s", dtype=f32, shape=[8]}
  %3 = input {name="x", dtype=f32, shape=[50,8]}
  %4 = reduce_sum(%3) {axes=[0]}
  update "s" = %4
)",
     8},
    {"matmul", R"(
  %2 = state {name="s", dtype=f32, shape=[4,4]}
  %3 = input {name="x", dtype=f32, shape=[4,4]}
  %4 = matmul(%3, %3)
  update "s" = %4
)",
     16},
    {"long_rows", R"(
  %2 = state {name="s", dtype=f32, shape=[2]}
  %3 = input {name="x", dtype=f32, shape=[2,40000]}
  %4 = reduce_sum(%3) {axes=[1]}
  update "s" = %4
)",
     2},
    {"columns_in_parts", R"(
  %2 = state {name="s", dtype=f32, shape=[8]}
  %3 = input {name="x", dtype=f32, shape=[9000,8]}
  %4 = reduce_sum(%3) {axes=[0]}
  update "s" = %4
)",
     8},
    {"matmul_in_parts", R"(
  %2 = state {name="s", dtype=f32, shape=[32,32]}
  %3 = input {name="x", dtype=f32, shape=[4096,32]}
  %4 = permute(%3) {order=[1,0]}
  %5 = matmul(%4, %3)
  update "s" = %5
)",
     1024},
    {"column_sums", R"(
  %2 = state {name="s", dtype=f32, shape=[32]}
  %3 = input {name="x", dtype=f32, shape=[4096,32]}
  %4 = permute(%3) {order=[1,0]}
  %5 = matmul(%4, %3)
  %6 = reduce_sum(%3) {axes=[0]}
  output "p" = %5
  update "s" = %6
)",
     32},
    {"arg_reduce", R"(
  %2 = state {name="s", dtype=i32, shape=[4]}
  %3 = input {name="x", dtype=f32, shape=[4,6]}
  %4 = argmax(%3) {axis=1}
  update "s" = %4
)",
     4},
    {"scan", R"(
  %2 = state {name="s", dtype=f32, shape=[2,40]}
  %3 = input {name="x", dtype=f32, shape=[2,40]}
  %4 = cumsum(%3) {axis=1, reverse=false}
  update "s" = %4
)",
     80},
    {"segment_sum", R"(
  %2 = state {name="s", dtype=f32, shape=[5,2]}
  %3 = input {name="x", dtype=f32, shape=[6,2]}
  %4 = input {name="ids", dtype=i32, shape=[6]}
  %5 = segment_sum(%3, %4) {rows=5}
  update "s" = %5
)",
     10},
    {"segment_sum_in_parts", R"(
  %2 = state {name="s", dtype=f32, shape=[5,2]}
  %3 = input {name="x", dtype=f32, shape=[3000,2]}
  %4 = input {name="ids", dtype=i32, shape=[3000]}
  %5 = segment_sum(%3, %4) {rows=5}
  update "s" = %5
)",
     10},
    {"segment_sum_sorted", R"(
  %2 = state {name="s", dtype=f32, shape=[1024,2]}
  %3 = input {name="x", dtype=f32, shape=[6,2]}
  %4 = input {name="ids", dtype=i32, shape=[6]}
  %5 = segment_sum(%3, %4) {rows=1024}
  update "s" = %5
)",
     2048},
    {"scatter_add", R"(
  %2 = state {name="s", dtype=f32, shape=[2,5]}
  %3 = input {name="x", dtype=f32, shape=[2,3]}
  %4 = input {name="ids", dtype=i32, shape=[2,3]}
  %5 = scatter_add(%3, %4) {axis=1, size=5}
  update "s" = %5
)",
     10},
};

class GpuFaultGuard : public GpuTest, public testing::WithParamInterface<Case> {};

// The state after a run over zeros, with or without a failure recorded before. It is 7 everywhere
// before.
namespace blocking = runtime::blocking;

std::vector<std::uint32_t> run(const Case& c, bool noted) {
  // Some kernel of the program checks ids; otherwise nothing could be recorded.
  const std::string text = fmt::format(R"(graph {{
  %0 = input {{name="row", dtype=i32, shape=[3]}}
  %1 = check_index(%0) {{size=9}}{}  output "checked" = %1
}}
)",
                                       c.graph);
  const auto device = runtime::blocking::open_device("webgpu", 0);
  schedule::Layout parameters, state, inputs;
  const schedule::Plan plan =
      eval::planned(ir::parse(text, ops::find_primitive), {parameters, state, inputs});
  const auto loaded =
      blocking::load(*device, blocking::emit(*device, kernels::lower(plan, ir::gpu_model())));
  std::array<std::shared_ptr<runtime::Buffer>, ir::kSpaces> buffers;
  runtime::Spaces spaces{};
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    buffers[i] = blocking::allocate(*device, plan.elements[i], "memory");
    spaces[i] = buffers[i];
  }
  std::vector<std::uint32_t> words(c.count, 7);
  runtime::Buffer& states = *buffers[static_cast<std::size_t>(ir::Space::state)];
  device->upload(states, 0, std::as_bytes(std::span(words)));
  const auto faults = blocking::allocate(*device, runtime::kFaultElements, "bad ids");
  const auto note = runtime::fault_words({0, 0, 99});
  if (noted) device->upload(*faults, 0, std::as_bytes(std::span(note)));
  spaces.faults = faults;
  device->submit(loaded, spaces);
  blocking::read(*device, states, 0, std::as_writable_bytes(std::span(words)));
  return words;
}

TEST_P(GpuFaultGuard, LeavesStateAlone) {
  const std::vector<std::uint32_t> before(GetParam().count, 7);
  EXPECT_TRUE(run(GetParam(), true) == before);
  EXPECT_FALSE(run(GetParam(), false) == before);
}

INSTANTIATE_TEST_SUITE_P(Kinds, GpuFaultGuard, testing::ValuesIn(kCases),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace tensorgrad
