// Subnormal results are flushed to zero within kernels, on all threads, and not outside.
#include "runtime/cpu/subnormals.h"

#include <gtest/gtest.h>

#include <vector>

#include "tensorgrad/tensorgrad.h"

namespace tensorgrad {
namespace {

// Not inlined, because the compiler could move it to code with another mode.
[[gnu::noinline]] float square(float x) {
  volatile float factor = x;
  return factor * factor;
}

struct Model {
  Linear l{1, 1};
};

bool can_flush() {
  const cpu::FlushSubnormals flush;
  return square(1e-20f) == 0;
}

#if defined(__x86_64__) || defined(__aarch64__)
TEST(Subnormals, CanBeZeroHere) { EXPECT_TRUE(can_flush()); }
#endif

TEST(Subnormals, AreAsBeforeBehindIt) {
  EXPECT_GT(square(1e-20f), 0);
  {
    const cpu::FlushSubnormals flush;
    { const cpu::FlushSubnormals again; }
    EXPECT_EQ(square(1e-20f) == 0, can_flush());
  }
  EXPECT_GT(square(1e-20f), 0);
}

TEST(Subnormals, AreZeroInAProgramOnAllThreads) {
  if (!can_flush()) GTEST_SKIP() << "this processor has no such mode";
  constexpr std::int64_t kCount = 1 << 20;
  std::vector<float> x(kCount, 1e-20f);
  for (std::size_t i = 0; i < x.size(); i += 3) x[i] = 1.1e-19f;  // its square is a normal number
  for (const int threads : {1, 3}) {
    auto train = compile(Model{}, {.inputs = {{"x", {1, 1}}}, .device = "cpu", .threads = threads},
                         [](const Model& m, const Inputs& in) { return mean(m.l(in["x"])); });
    auto squares = train.attach({.inputs = {{"x", {kCount}}}},
                                [](const Model&, const Inputs& in) { return in["x"] * in["x"]; });
    const auto result = squares.run({{"x", x}});
    const auto got = result.output().floats();
    for (std::size_t i = 0; i < x.size(); ++i)
      ASSERT_EQ(got[i], i % 3 == 0 ? 1.1e-19f * 1.1e-19f : 0.0f)
          << i << ", " << threads << " threads";
    EXPECT_GT(square(1e-20f), 0);
  }
}

}  // namespace
}  // namespace tensorgrad
