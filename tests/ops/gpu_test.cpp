// Every row's value and gradients on a GPU against the interpreter.
#include <cmath>

#include "tests/ops/sample_test.h"
#include "tests/support/eval_graph.h"
#include "tests/support/gpu_test.h"

namespace tensorgrad::op_tests {
namespace {

class GpuOps : public GpuTest, public testing::WithParamInterface<Row> {};
class SlowGpuOps : public GpuOps {};

// A software driver takes up to a second for a row: some here, the others with the slow tests. Those here are large
// enough for the shaders that come in two, and else a sixteenth, chosen by name.
bool is_fast(const std::string& name) {
  if (name.find("long_") != std::string::npos || name.find("tall_") != std::string::npos) return true;
  unsigned hash = 2166136261u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return (hash >> 8) % 16 == 0;
}

std::vector<Row> rows(bool fast) {
  std::vector<Row> out;
  for (const Row& row : all_rows())
    if (is_fast(row.sample->name()) == fast) out.push_back(row);
  return out;
}

INSTANTIATE_TEST_SUITE_P(Ops, GpuOps, testing::ValuesIn(rows(true)), row_name);
INSTANTIATE_TEST_SUITE_P(Ops, SlowGpuOps, testing::ValuesIn(rows(false)), row_name);

// exp, log, sin and the like are less exact on GPUs than in libm, and sums are of floats.
constexpr double kLooser = 8;

void expect_agreement(const Sample& sample) {
  const SampleGraph made = build(sample);
  auto want = eval::interpret_results(made.gradient, made.leaves);
  const auto got = eval::evaluate(made.gradient, made.leaves, {.device = "webgpu", .simplify = true});
  EXPECT_EQ(got.damage, "");
  // WGSL promises nothing where a value is not finite.
  for (std::size_t i = 0; i < want.size(); ++i)
    for (std::size_t j = 0; j < want[i].data.size(); ++j)
      if (!std::isfinite(want[i].data[j])) want[i].data[j] = got.results[i].data[j];
  for (std::size_t i = 0; i < want.size(); ++i)
    EXPECT_EQ(eval::difference(got.results[i], want[i], kLooser * sample.tolerance), "")
        << made.gradient.results[i].name << " of\n"
        << ir::print(made.gradient);
}

TEST_P(GpuOps, AgreesWithTheInterpreter) { expect_agreement(*GetParam().sample); }
TEST_P(SlowGpuOps, AgreesWithTheInterpreter) { expect_agreement(*GetParam().sample); }

}  // namespace
}  // namespace tensorgrad::op_tests
