// Progress reports while kernels are compiled.
#include <stdexcept>

#include "runtime/webgpu/adapters.h"
#include "tests/compile/common.h"
#include "tests/support/gpu_test.h"

namespace tensorgrad::compile_tests {

namespace {

struct Layer {
  Linear l{2, 3};
};

Tensor loss_of(const Layer& m, const Inputs& in) { return mean(square(m.l(in["x"]))); }
Tensor output_of(const Layer& m, const Inputs& in) { return tanh(m.l(in["x"])); }

using Works = std::vector<CompileWork>;

bool is_software() { return webgpu::adapters().at(0).software; }  // "webgpu" is the first of them

// The reports of one program. Each part counts from 0 to its total, one by one.
struct Reports {
  std::vector<CompileProgress> all;
  CompileCallback callback() {
    return [this](const CompileProgress& p) { all.push_back(p); };
  }
  // What the parts count.
  Works works() const {
    Works out;
    for (const CompileProgress& p : all) {
      if (p.done == 0) out.push_back(p.work);
      EXPECT_EQ(p.work, out.back());
    }
    return out;
  }
  // The totals of the parts.
  std::vector<std::int64_t> rounds() const {
    std::vector<std::int64_t> totals;
    std::int64_t next = 0;
    for (const CompileProgress& p : all) {
      if (p.done == 0) totals.push_back(p.total);
      EXPECT_EQ(p.done, p.done == 0 ? 0 : next);
      EXPECT_EQ(p.total, totals.empty() ? -1 : totals.back());
      next = p.done + 1;
    }
    if (!all.empty()) {
      EXPECT_EQ(all.back().done, all.back().total);
    }
    return totals;
  }
};

using Totals = std::vector<std::int64_t>;

}  // namespace

TEST(Progress, CountsTheKernelsOfEachProgram) {
  Reports training, attached, forward;
  auto train = compile(
      Layer{}, {.inputs = {{"x", {4, 2}}}, .device = "cpu", .progress = training.callback()},
      loss_of);
  EXPECT_EQ(training.rounds(), Totals{train.counts().kernels});
  EXPECT_EQ(training.works(), Works{CompileWork::kernels});
  auto infer =
      train.attach({.inputs = {{"x", {1, 2}}}, .progress = attached.callback()}, output_of);
  EXPECT_EQ(attached.rounds(), Totals{infer.counts().kernels});
  auto alone = compile_forward(
      Layer{}, {.inputs = {{"x", {1, 2}}}, .device = "cpu", .progress = forward.callback()},
      output_of);
  EXPECT_EQ(forward.rounds(), Totals{alone.counts().kernels});
  train.step({{"x", numbers(8)}}).wait();
  EXPECT_EQ(training.rounds().size(), 1u);  // a CPU has nothing left to compile then
}

TEST(Progress, AnExceptionLeavesCompile) {
  const auto stop = [](const CompileProgress& p) {
    if (p.done == 1) throw std::runtime_error("enough");
  };
  EXPECT_THROW(
      compile(Layer{}, {.inputs = {{"x", {4, 2}}}, .device = "cpu", .progress = stop}, loss_of),
      std::runtime_error);
}

class GpuProgress : public GpuTest {};

TEST_F(GpuProgress, CountsTheShadersAndOnASoftwareDriverTheFirstStepToo) {
  Reports reports;
  auto train = compile(
      Layer{}, {.inputs = {{"x", {4, 2}}}, .device = "webgpu", .progress = reports.callback()},
      loss_of);
  ASSERT_EQ(reports.rounds().size(), 1u);
  EXPECT_GT(reports.rounds()[0], 0);
  EXPECT_LE(reports.rounds()[0], train.counts().dispatches);  // equal shaders are compiled once
  const float first = train.step({{"x", numbers(8)}}).loss();
  const std::size_t rounds = reports.rounds().size();
  Works works{CompileWork::shaders};
  if (is_software()) works.push_back(CompileWork::first_run);
  ASSERT_EQ(reports.works(), works);
  if (is_software()) {
    EXPECT_EQ(reports.rounds()[1], train.counts().dispatches);
  }
  train.step({{"x", numbers(8)}}).wait();
  EXPECT_EQ(reports.rounds().size(), rounds);
  train.reset();
  EXPECT_EQ(train.step({{"x", numbers(8)}}).loss(), first);
}

// profile() runs each kernel alone, which needs other shaders.
TEST_F(GpuProgress, CountsTheShadersOfAProfile) {
  if (!webgpu::adapters().at(0).timestamps) GTEST_SKIP() << "the adapter cannot time its kernels";
  Reports reports;
  auto train = compile(
      Layer{}, {.inputs = {{"x", {4, 2}}}, .device = "webgpu", .progress = reports.callback()},
      loss_of);
  train.set_input("x", numbers(8));
  train.profile(2);
  Works works{CompileWork::shaders, CompileWork::shaders};
  if (is_software()) works.push_back(CompileWork::first_run);
  EXPECT_EQ(reports.works(), works);
  train.step().wait();  // the shaders of a step have not run yet
  if (is_software()) works.push_back(CompileWork::first_run);
  EXPECT_EQ(reports.works(), works);
  reports.rounds();  // all of them count from 0 to their total
}

TEST_F(GpuProgress, AnExceptionLeavesCompileAndNotAStep) {
  int calls = 0;
  const auto stop = [&](const CompileProgress&) {
    if (++calls == 2) throw std::runtime_error("enough");
  };
  EXPECT_THROW(
      compile(Layer{}, {.inputs = {{"x", {4, 2}}}, .device = "webgpu", .progress = stop}, loss_of),
      std::runtime_error);
  bool compiled = false;
  int late_calls = 0;
  const auto late = [&](const CompileProgress&) {
    if (!compiled) return;
    ++late_calls;
    throw std::runtime_error("enough");
  };
  auto train =
      compile(Layer{}, {.inputs = {{"x", {4, 2}}}, .device = "webgpu", .progress = late}, loss_of);
  compiled = true;
  auto same = compile(Layer{}, {.inputs = {{"x", {4, 2}}}, .device = "webgpu"}, loss_of);
  EXPECT_EQ(train.step({{"x", numbers(8)}}).loss(), same.step({{"x", numbers(8)}}).loss());
  EXPECT_EQ(train.steps(), 1);
  EXPECT_EQ(late_calls, is_software() ? 1 : 0);  // no more reports after it
  EXPECT_EQ(train.fingerprint(), same.fingerprint());
}

}  // namespace tensorgrad::compile_tests
