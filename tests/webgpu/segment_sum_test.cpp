// Sums by id on a GPU. If the vocabulary is large, positions are sorted first and added in order,
// which is the order of the CPU, so the bits are the same. If it is small, the ids are scanned in
// chunks.
#include <fmt/format.h>

#include <random>

#include "checks/eval_graph.h"
#include "ops/table.h"
#include "runtime/device.h"
#include "tests/support/gpu_test.h"

namespace tensorgrad {
namespace {

struct Case {
  const char* name;
  int V, P, D;
  int most;  // ids are below it
};

class GpuSegmentSum : public GpuTest, public testing::WithParamInterface<Case> {};
class GpuSmallSegmentSum : public GpuSegmentSum {};

ir::Graph graph_of(const Case& c) {
  return ir::parse(fmt::format(R"(graph {{
  %0 = input {{name="g", dtype=f32, shape=[{1},{2}]}}
  %1 = input {{name="ids", dtype=i32, shape=[{1}]}}
  %2 = segment_sum(%0, %1) {{rows={0}}}
  output "y" = %2
}}
)",
                               c.V, c.P, c.D),
                   ops::find_primitive);
}

reference::Leaves leaves_of(const Case& c) {
  std::mt19937 random(11);
  reference::Value g{{f32, {c.P, c.D}}, {}}, ids{{i32, {c.P}}, {}};
  for (int i = 0; i < c.P * c.D; ++i)
    g.data.push_back(static_cast<float>(random()) / 4294967296.0f - 0.5f);
  for (int i = 0; i < c.P; ++i)
    ids.data.push_back(c.most == c.V ? random() % static_cast<unsigned>(c.V)
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

void notes_a_bad_id(const Case& c) {
  for (const int bad : {-1, c.V}) {
    for (const int at : {0, c.P / 2, c.P - 1}) {
      reference::Leaves leaves = leaves_of(c);
      leaves.at("input:ids").data[static_cast<std::size_t>(at)] = bad;
      try {
        eval::evaluate(graph_of(c), leaves, {.device = "webgpu"});
        ADD_FAILURE() << "nothing was raised";
      } catch (const runtime::IndexFailure& failure) {
        EXPECT_EQ(failure.value, bad);
      }
    }
  }
}

TEST_P(GpuSegmentSum, NotesABadId) { notes_a_bad_id(GetParam()); }

TEST_P(GpuSmallSegmentSum, AddsUp) {
  const ir::Graph graph = graph_of(GetParam());
  const reference::Leaves leaves = leaves_of(GetParam());
  const auto got = eval::evaluate(graph, leaves, {.device = "webgpu"});
  EXPECT_EQ(got.damage, "");
  EXPECT_TRUE(got.bits == eval::evaluate(graph, leaves, {.device = "webgpu"}).bits);
  EXPECT_EQ(eval::difference(got.results[0], eval::interpret_results(graph, leaves)[0], 1e-4), "");
}

TEST_P(GpuSmallSegmentSum, NotesABadId) { notes_a_bad_id(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Segments, GpuSegmentSum,
                         testing::Values(Case{"fewest", 1024, 300, 5, 1024},
                                         Case{"ragged", 1500, 1, 3, 1500},
                                         Case{"many_of_few", 1025, 2000, 4, 3},
                                         Case{"sparse", 5000, 257, 33, 5000},
                                         Case{"more_positions_than_ids", 1100, 5001, 8, 1100}),
                         [](const auto& test) { return std::string(test.param.name); });

INSTANTIATE_TEST_SUITE_P(
    Segments, GpuSmallSegmentSum,
    testing::Values(Case{"one_position", 3, 1, 2, 3}, Case{"one_stretch", 12, 255, 64, 12},
                    Case{"all_alike", 7, 1030, 5, 1}, Case{"two_chunks", 12, 2048, 33, 12},
                    Case{"parts", 65, 4096, 40, 65}, Case{"ragged_parts", 5, 5003, 3, 5},
                    Case{"long_parts", 1000, 9001, 100, 1000}),
    [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace tensorgrad
