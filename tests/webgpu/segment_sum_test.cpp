// Sums by id on a GPU where the vocabulary is large: positions are sorted first, and added in their order, which is
// the order of the CPU. So the numbers are the CPU's, bit for bit.
#include <fmt/format.h>

#include <random>

#include "ops/table.h"
#include "runtime/device.h"
#include "checks/eval_graph.h"
#include "tests/support/gpu_test.h"

namespace tensorgrad {
namespace {

struct Case {
  const char* name;
  int V, P, D;
  int most;  // ids are below it
};

class GpuSegmentSum : public GpuTest, public testing::WithParamInterface<Case> {};

ir::Graph graph_of(const Case& c) {
  return ir::parse(fmt::format(R"(graph {{
  %0 = input {{name="g", dtype=f32, shape=[{1},{2}]}}
  %1 = input {{name="ids", dtype=i32, shape=[{1}]}}
  %2 = segment_sum(%0, %1) {{rows={0}}}
  output "y" = %2
}}
)", c.V, c.P, c.D), ops::find_primitive);
}

reference::Leaves leaves_of(const Case& c) {
  std::mt19937 random(11);
  reference::Value g{{f32, {c.P, c.D}}, {}}, ids{{i32, {c.P}}, {}};
  for (int i = 0; i < c.P * c.D; ++i) g.data.push_back(static_cast<float>(random()) / 4294967296.0f - 0.5f);
  for (int i = 0; i < c.P; ++i) ids.data.push_back(c.most == c.V ? random() % static_cast<unsigned>(c.V)
                                                                 : c.V - 1 - random() % static_cast<unsigned>(c.most));
  return {{"input:g", g}, {"input:ids", ids}};
}

TEST_P(GpuSegmentSum, GivesTheBitsOfTheCpu) {
  const ir::Graph graph = graph_of(GetParam());
  const reference::Leaves leaves = leaves_of(GetParam());
  const auto got = eval::evaluate(graph, leaves, {.device = "webgpu"});
  EXPECT_EQ(got.damage, "");
  EXPECT_TRUE(got.bits == eval::evaluate(graph, leaves).bits);
  EXPECT_EQ(eval::difference(got.results[0], eval::interpret_results(graph, leaves)[0], 1e-4), "");
}

TEST_P(GpuSegmentSum, NotesABadId) {
  const Case& c = GetParam();
  for (const int bad : {-1, c.V}) {
    reference::Leaves leaves = leaves_of(c);
    leaves.at("input:ids").data[static_cast<std::size_t>(c.P / 2)] = bad;
    try {
      eval::evaluate(graph_of(c), leaves, {.device = "webgpu"});
      ADD_FAILURE() << "nothing was raised";
    } catch (const runtime::IndexFailure& failure) {
      EXPECT_EQ(failure.value, bad);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Segments, GpuSegmentSum,
                         testing::Values(Case{"fewest", 1024, 300, 5, 1024}, Case{"ragged", 1500, 1, 3, 1500},
                                         Case{"many_of_few", 1025, 2000, 4, 3}, Case{"sparse", 5000, 257, 33, 5000},
                                         Case{"more_positions_than_ids", 1100, 5001, 8, 1100}),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace tensorgrad
