// Every row's value and gradients on a GPU against the interpreter.
#include "tests/support/gpu_test.h"
#include "checks/check_row.h"
#include "checks/eval_graph.h"
#include "runtime/blocking.h"
#include "tests/ops/sample_test.h"

namespace tensorgrad::checks {
namespace {

class GpuOps : public GpuTest, public testing::WithParamInterface<Row> {};
class ReleaseGpuOps : public GpuOps {};

// A software driver takes up to a second per row, so some rows always run, and the others only
// before a release. Rows that always run: all that are large enough for kernels of two dispatches,
// and a sixteenth of the others, chosen by name.
bool runs_always(const std::string& name) {
  if (name.find("long_") != std::string::npos || name.find("tall_") != std::string::npos)
    return true;
  unsigned hash = 2166136261u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return (hash >> 8) % 16 == 0;
}

std::vector<Row> rows(bool always) {
  std::vector<Row> out;
  for (const Row& row : all_rows())
    if (runs_always(row.sample->name()) == always) out.push_back(row);
  return out;
}

INSTANTIATE_TEST_SUITE_P(Ops, GpuOps, testing::ValuesIn(rows(true)), row_name);
INSTANTIATE_TEST_SUITE_P(Ops, ReleaseGpuOps, testing::ValuesIn(rows(false)), row_name);

void expect_agreement(const Sample& sample) {
  static const auto device = runtime::blocking::open_device("webgpu", 0);
  EXPECT_EQ(check_row(*device, sample, shown_compiling()).text(), "")
      << ir::print(build(sample).gradient);
}

TEST_P(GpuOps, AgreesWithTheInterpreter) { expect_agreement(*GetParam().sample); }
TEST_P(ReleaseGpuOps, AgreesWithTheInterpreter) { expect_agreement(*GetParam().sample); }

// Where 1 + erf and 1 + tanh would have no digits left; a driver's exp is inexact for large
// exponents.
using GpuSemantics = GpuTest;

TEST_F(GpuSemantics, GeluKeepsItsDigitsFarBelowZero) {
  const auto device = runtime::blocking::open_device("webgpu", 0);
  for (Tensor (*op)(Operand) : {gelu, gelu_tanh}) {
    const SampleGraph made =
        build({"gelu", "digits", {given({6}, {-8, -6.5, -5, -3, 0.5, 4})}, [op](In x) {
                 return op(x[0]);
               }});
    const auto got = eval::evaluate_on(*device, made.gradient, made.leaves).results;
    const auto want = eval::interpret_results(made.gradient, made.leaves);
    for (std::size_t r = 0; r < want.size(); ++r)
      for (std::size_t i = 0; i < want[r].data.size(); ++i)
        EXPECT_NEAR(got[r].data[i] / want[r].data[i], 1, 5e-5)
            << "result " << r << ", element " << i;
  }
}

}  // namespace
}  // namespace tensorgrad::checks
