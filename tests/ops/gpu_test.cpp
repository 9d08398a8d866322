// Every row's value and gradients on a GPU against the interpreter.
#include "tests/support/gpu_test.h"
#include "checks/check_row.h"
#include "tests/ops/sample_test.h"

namespace tensorgrad::checks {
namespace {

class GpuOps : public GpuTest, public testing::WithParamInterface<Row> {};
class SlowGpuOps : public GpuOps {};

// A software driver takes up to a second for a row: some here, the others with the slow tests.
// Those here are large enough for the shaders that come in two, and else a sixteenth, chosen by
// name.
bool is_fast(const std::string& name) {
  if (name.find("long_") != std::string::npos || name.find("tall_") != std::string::npos)
    return true;
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

void expect_agreement(const Sample& sample) {
  static const auto device = runtime::open_device("webgpu", 0);
  EXPECT_EQ(check_row(*device, sample).text(), "") << ir::print(build(sample).gradient);
}

TEST_P(GpuOps, AgreesWithTheInterpreter) { expect_agreement(*GetParam().sample); }
TEST_P(SlowGpuOps, AgreesWithTheInterpreter) { expect_agreement(*GetParam().sample); }

}  // namespace
}  // namespace tensorgrad::checks
