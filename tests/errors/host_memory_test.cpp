// The host runs out of memory for a read: an OutOfMemoryError says for which. Calls that need no
// memory still work. The limit is on the address space of the process, which sanitizers need
// themselves.
#include <sys/resource.h>

#include <fstream>

#include "tests/errors/expect_error.h"
#include "tests/support/sanitizers.h"

namespace tensorgrad::errors {
namespace {

// While one exists, the process can allocate only this much more memory.
class Limit {
 public:
  explicit Limit(std::uint64_t more) {
    getrlimit(RLIMIT_AS, &before_);
    std::uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit limit = before_;
    limit.rlim_cur = pages * 4096 + more;
    setrlimit(RLIMIT_AS, &limit);
  }
  ~Limit() { setrlimit(RLIMIT_AS, &before_); }

 private:
  rlimit before_{};
};

constexpr std::uint64_t kLittle = 16u << 20;
constexpr std::int64_t kMany = 16 << 20;  // 64 MiB of floats

struct Wide {
  Param w{{kMany}, init::ones()};
};

TEST(HostMemory, OutputsAndParametersThatCannotBeRead) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer needs the address space";
  auto run = compile_forward(Wide{}, {.inputs = {{"x", {}}}, .device = "cpu", .threads = 1},
                             [](const Wide& m, const Inputs& in) {
                               return Outputs{{"y", capture("twice", m.w * in["x"]) + 1.0f}};
                             });
  const Result first = run.run({{"x", 2.0f}});
  const auto limited = [&](const std::function<void()>& call) {
    return text_of<OutOfMemoryError>([&] {
      const Limit limit(kLittle);
      call();
    });
  };
  EXPECT_EQ(limited([&] { first.output(); }),
            "host: out of memory: 64.0 MiB to read output 'y', which is f32[16777216]");
  EXPECT_EQ(limited([&] { run.download(); }),
            "host: out of memory: 64.0 MiB to read parameter w, which is f32[16777216]");
  EXPECT_EQ(limited([&] {
              run.run({{"x", 3.0f}});
            }),
            "host: out of memory: 64.0 MiB for the results of an earlier run");
  EXPECT_EQ(first.output().floats()[7], 3.0f);  // there is room again
  EXPECT_EQ(limited([&] { Result(first).output(); }),
            "host: out of memory: 64.0 MiB to read a copy of the output, which is f32[16777216]");
  const Result captured = run.run({{"x", 2.0f}}, {.captures = true});
  EXPECT_EQ(limited([&] { captured.capture("twice"); }).substr(0, 42),
            "host: out of memory: 64.0 MiB to read capt");
  EXPECT_EQ(captured.capture("twice").floats()[3], 2.0f);
}

// Initialising the weights doubles their memory, so a limit shows when it happens: at the first
// use, and only for weights that were not uploaded.
TEST(HostMemory, WeightsThatAreUploadedAreNotDrawn) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer needs the address space";
  const NamedArrays weights{
      {"w", Array({kMany}, std::vector<float>(static_cast<std::size_t>(kMany), 0.5f))}};
  const auto total = [](const Wide& m, const Inputs& in) { return sum(m.w * in["x"]); };
  const std::vector<InputSpec> inputs{{"x", {}}};
  const auto compiled = [&] {
    const Limit limit(4 * kMany + 2 * kLittle);  // for the weights, and not for a copy of them
    return compile_forward(Wide{}, {.inputs = inputs, .device = "cpu", .threads = 1}, total);
  };
  auto drawn = compiled(), uploaded = compiled();
  uploaded.upload(weights);
  const auto limited = [](auto& program) {
    const Limit limit(kLittle);
    const Result run = program.run({{"x", 2.0f}});
    return run.output().floats()[0];
  };
  EXPECT_ANY_THROW(limited(drawn));
  EXPECT_EQ(limited(uploaded), static_cast<float>(kMany));

  auto train = compile(
      Wide{}, {.inputs = inputs, .optimizer = NoOptimizer{}, .device = "cpu", .threads = 1}, total);
  train.upload(weights);
  const auto loss = [&] {
    const Limit limit(kLittle);
    return train.step({{"x", 2.0f}}).loss();
  };
  EXPECT_EQ(loss(), static_cast<float>(kMany));
  {
    const Limit limit(kLittle);
    train.reset();
  }
  EXPECT_ANY_THROW(loss());  // the initial weights again
  EXPECT_EQ(train.step({{"x", 1.0f}}).loss(), static_cast<float>(kMany));
}

}  // namespace
}  // namespace tensorgrad::errors
