// Whole programs on a GPU: they train as on the CPU, with the same bits each time, and errors are
// reported.
#include <cmath>
#include <functional>
#include <set>

#include "runtime/blocking.h"
#include "runtime/device.h"
#include "runtime/webgpu/gpu.h"
#include "runtime/webgpu/webgpu_device.h"
#include "tensorgrad/tensorgrad.h"
#include "tests/support/gpu_test.h"
#include "tests/support/run_tool.h"

namespace tensorgrad {
namespace {

using GpuProgram = GpuTest;

struct Mlp {
  Linear l1{3, 16}, l2{16, 2};
};

Tensor predict(const Mlp& m, const Tensor& x) { return m.l2(gelu(capture("hidden", m.l1(x)))); }
Tensor loss_of(const Mlp& m, const Inputs& in) { return mse_loss(predict(m, in["x"]), in["y"]); }

TrainingOptions options(const char* device, NonFinite non_finite = NonFinite::fail) {
  return {.inputs = {{"x", {32, 3}}, {"y", {32, 2}}},
          .optimizer = AdamW{.lr = 0.01},
          .clip_grad_norm = 1,
          .non_finite = non_finite,
          .seed = 5,
          .device = device};
}

std::vector<float> wave(std::size_t count, int step) {
  std::vector<float> out;
  for (std::size_t i = 0; i < count; ++i)
    out.push_back(std::sin(0.7f * static_cast<float>(i) + 0.3f * static_cast<float>(step)));
  return out;
}

template <class T>
Result step(T& train, int i) {
  return train.step({{"x", wave(96, i)}, {"y", wave(64, 2 * i)}});
}

TEST_F(GpuProgram, TrainsAsTheCpuDoes) {
  auto cpu = compile(Mlp{}, options("cpu"), loss_of),
       gpu = compile(Mlp{}, options("webgpu"), loss_of);
  EXPECT_EQ(gpu.device(), "webgpu:0");
  EXPECT_EQ(cpu.fingerprint(), gpu.fingerprint());  // initial weights
  for (int i = 0; i < 30; ++i) {
    const Result a = step(cpu, i), b = step(gpu, i);
    EXPECT_NEAR(a.loss(), b.loss(), 1e-5 * (1 + std::abs(a.loss()))) << i;
    EXPECT_NEAR(a.grad_norm(), b.grad_norm(), 1e-4 * (1 + a.grad_norm())) << i;
  }
  EXPECT_EQ(gpu.counts().passes, 1);
  EXPECT_EQ(gpu.counts().submits, 1);
  EXPECT_EQ(gpu.counts().kernels, cpu.counts().kernels);
}

TEST_F(GpuProgram, GivesTheSameBitsEachTime) {
  std::string first;
  for (int round = 0; round < 2; ++round) {
    auto train = compile(Mlp{}, options("webgpu"), loss_of);
    for (int i = 0; i < 20; ++i) step(train, i);
    if (round == 0)
      first = train.fingerprint();
    else
      EXPECT_EQ(train.fingerprint(), first);
  }
}

// Results can be read late and in any order, and keep their values while later steps run.
TEST_F(GpuProgram, ResultsKeepTheirNumbers) {
  auto now = compile(Mlp{}, options("webgpu"), loss_of),
       later = compile(Mlp{}, options("webgpu"), loss_of);
  std::vector<float> wanted;
  std::vector<Result> kept;
  for (int i = 0; i < 40; ++i) {
    wanted.push_back(step(now, i).loss());
    kept.push_back(step(later, i));
  }
  for (int i = 39; i >= 0; --i)
    EXPECT_EQ(kept[static_cast<std::size_t>(i)].loss(), wanted[static_cast<std::size_t>(i)]) << i;
  kept.clear();
  for (int i = 0; i < 200; ++i) step(later, i);  // nobody reads them
  later.wait();
}

TEST_F(GpuProgram, CapturesAndAttachedPrograms) {
  auto train = compile(Mlp{}, options("webgpu"), loss_of);
  auto infer = train.attach({.inputs = {{"x", {4, 3}}}},
                            [](const Mlp& m, const Inputs& in) { return predict(m, in["x"]); });
  const auto before = infer.run({{"x", wave(12, 0)}}).output();
  const Result result = train.step({{"x", wave(96, 0)}, {"y", wave(64, 0)}}, {.captures = true});
  EXPECT_EQ(result.capture("hidden").shape(), Shape({32, 16}));
  const auto after = infer.run({{"x", wave(12, 0)}}).output();
  EXPECT_NE(std::vector<float>(before.floats().begin(), before.floats().end()),
            std::vector<float>(after.floats().begin(), after.floats().end()));
}

TEST_F(GpuProgram, ABadStepIsToldWhenItIsReadAndChangesNothing) {
  auto train = compile(Mlp{}, options("webgpu"), loss_of);
  step(train, 0);
  const std::string before = train.fingerprint();
  std::vector<float> bad = wave(96, 1);
  bad[7] = std::numeric_limits<float>::infinity();
  const Result failed = train.step({{"x", bad}, {"y", wave(64, 1)}});
  step(train, 2);  // queued after it: does nothing
  try {
    failed.loss();
    FAIL() << "nothing was raised";
  } catch (const NonFiniteError& error) {
    EXPECT_EQ(std::string(error.what()).substr(0, 8), "step 1: ") << error.what();
  }
  EXPECT_EQ(train.fingerprint(), before);
  step(train, 3).loss();
  EXPECT_NE(train.fingerprint(), before);
}

struct Words {
  Embedding table{5, 3};
};

TEST_F(GpuProgram, ABadIdIsToldWhenItIsReadAndChangesNothing) {
  auto train = compile(
      Words{}, {.inputs = {{"ids", {4}, i32}}, .optimizer = Sgd{.lr = 0.1}, .device = "webgpu"},
      [](const Words& m, const Inputs& in) { return mean(square(m.table(in["ids"]))); });
  const std::string before = train.fingerprint();
  try {
    train.step({{"ids", std::vector<std::int32_t>{0, 7, 1, 2}}}).loss();
    FAIL() << "nothing was raised";
  } catch (const UserError& error) {
    expect_starts_with(error.what(),
                       "step 0: Embedding: id 7 is out of range: ids are 0 to 4\n  in table, at "
                       "program_test.cpp:");
  }
  EXPECT_EQ(train.fingerprint(), before);
  EXPECT_EQ(train.steps(), 0);
  train.step({{"ids", std::vector<std::int32_t>{0, 3, 1, 2}}}).loss();
  EXPECT_NE(train.fingerprint(), before);
}

// The error names the step with the bad id, not the one before; the steps after it changed nothing.
TEST_F(GpuProgram, ABadIdIsBlamedOnItsOwnStep) {
  auto train = compile(
      Words{}, {.inputs = {{"ids", {4}, i32}}, .optimizer = Adam{.lr = 0.1}, .device = "webgpu"},
      [](const Words& m, const Inputs& in) { return mean(square(m.table(in["ids"]))); });
  const auto with = [&](std::int32_t id) {
    return train.step({{"ids", std::vector<std::int32_t>{0, id, 1, 2}}});
  };
  const Result good = with(3), bad = with(5), behind = with(4);
  EXPECT_TRUE(std::isfinite(good.loss()));
  EXPECT_THROW(bad.loss(), UserError);
  EXPECT_EQ(train.steps(), 1);
  EXPECT_THROW(behind.loss(), UserError);
  auto twin = compile(
      Words{}, {.inputs = {{"ids", {4}, i32}}, .optimizer = Adam{.lr = 0.1}, .device = "webgpu"},
      [](const Words& m, const Inputs& in) { return mean(square(m.table(in["ids"]))); });
  twin.step({{"ids", std::vector<std::int32_t>{0, 3, 1, 2}}});
  EXPECT_EQ(train.fingerprint(), twin.fingerprint());
}

webgpu::Gpu& shared_gpu() {
  return runtime::gpu_under(*runtime::blocking::open_device("webgpu", 0));
}

std::string memory_error(const std::function<void()>& call) {
  try {
    call();
  } catch (const OutOfMemoryError& error) {
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

// A program holds the device, so that the fault affects the next one.
TEST_F(GpuProgram, WithoutMemoryTheLargestTensorsAreNamed) {
  auto train = compile(Mlp{}, options("webgpu"), loss_of),
       twin = compile(Mlp{}, options("webgpu"), loss_of);
  shared_gpu().inject(webgpu::Fault::buffer_memory);
  std::string text = memory_error([] { compile(Mlp{}, options("webgpu"), loss_of); });
  expect_starts_with(text, "webgpu: out of memory: 0.0 MiB for parameters on ");
  expect_contains(text,
                  "\n  largest: 0.0 MiB for l1.W f32[3,16]\n"
                  "           0.0 MiB for l2.W f32[16,2]\n"
                  "           0.0 MiB for l1.b f32[16]\n"
                  "  hint: a smaller model, or a device with more room");
  // Also in the middle of training; it continues unchanged.
  step(train, 0), step(twin, 0);
  shared_gpu().inject(webgpu::Fault::buffer_memory);
  text = memory_error([&] {
    train.step({{"x", wave(96, 1)}, {"y", wave(64, 1)}}, {.captures = true});
  });
  expect_contains(text, " for capture:hidden f32[32,16]\n");
  step(train, 1), step(twin, 1);
  EXPECT_EQ(train.fingerprint(), twin.fingerprint());
}

// A capture that needs an input that nothing else needs: the step's random numbers.
TEST_F(GpuProgram, WithoutMemoryForCapturesTheProgramStaysAsItWas) {
  const auto noisy = [](const Mlp& m, const Inputs& in) {
    capture("noise", dropout(in["x"], 0.5f));
    return loss_of(m, in);
  };
  auto train = compile(Mlp{}, options("webgpu"), noisy),
       twin = compile(Mlp{}, options("webgpu"), noisy);
  const auto captured = [&](int i) {
    return train.step({{"x", wave(96, i)}, {"y", wave(64, 2 * i)}}, {.captures = true});
  };
  step(train, 0), step(twin, 0);
  shared_gpu().inject(webgpu::Fault::buffer_memory);
  memory_error([&] { captured(1); });
  step(train, 1), step(twin, 1);
  EXPECT_EQ(captured(2).capture("noise").shape(), (Shape{32, 3}));
  step(twin, 2);
  step(train, 3), step(twin, 3);
  EXPECT_EQ(train.fingerprint(), twin.fingerprint());
}

// A bad step that nobody reads is reported by the next read, with its number. It and the steps
// after it changed nothing.
TEST_F(GpuProgram, ANonFiniteStepIsToldByTheNextThatIsRead) {
  auto train = compile(Mlp{}, options("webgpu"), loss_of),
       twin = compile(Mlp{}, options("webgpu"), loss_of);
  const auto bad_step = [&](int i) {
    std::vector<float> x = wave(96, i);
    x[7] = NAN;
    return train.step({{"x", x}, {"y", wave(64, 2 * i)}});
  };
  for (int i = 0; i < 5; ++i) step(train, i), step(twin, i);
  bad_step(5);
  for (int i = 6; i < 9; ++i) step(train, i);
  const Result later = step(train, 9);
  try {
    later.loss();
    ADD_FAILURE() << "nothing was raised";
  } catch (const NonFiniteError& error) {
    EXPECT_STREQ(error.what(), "step 5: the loss, a gradient or the update is not finite");
  }
  EXPECT_EQ(train.steps(), 6);
  EXPECT_EQ(train.fingerprint(), twin.fingerprint());
  // Training continues; wait() reports errors too, even if no result was kept.
  const float loss = step(train, 9).loss();
  EXPECT_EQ(loss, step(twin, 9).loss());
  bad_step(7);
  step(train, 8);
  EXPECT_EQ(train.optimizer_state().at("step").ints()[0], 8);
  EXPECT_THROW(train.wait(), NonFiniteError);
  train.wait();
  EXPECT_EQ(train.fingerprint(), twin.fingerprint());
}

struct Dictionary {
  Embedding e{5, 4};
};

// The number of steps does not depend on which results the program kept.
TEST_F(GpuProgram, ABadIdIsCountedTheSameWhoeverReads) {
  for (const int keep : {0, 1, 2}) {  // nothing, the last result, all
    auto train =
        compile(Dictionary{},
                {.inputs = {{"ids", {2}, i32}}, .optimizer = Sgd{.lr = 0.1}, .device = "webgpu"},
                [](const Dictionary& m, const Inputs& in) { return sum(square(m.e(in["ids"]))); });
    const auto step_with = [&](int id) {
      return train.step({{"ids", std::vector<std::int32_t>{0, id}}});
    };
    std::vector<Result> kept;
    for (int i = 0; i < 9; ++i) {
      const Result result = step_with(i == 5 ? 7 : 3);
      if (keep == 2 || (keep == 1 && i == 8)) kept.push_back(result);
    }
    try {
      if (kept.empty())
        train.wait();
      else
        kept.back().loss();
      ADD_FAILURE() << "nothing was raised";
    } catch (const UserError& error) {
      expect_starts_with(
          error.what(),
          "step 5: Embedding: id 7 is out of range: ids are 0 to 4\n  in e, at program_test.cpp:");
    }
    EXPECT_EQ(train.steps(), 5) << keep;
    train.wait();  // the error was reported
    step_with(2).wait();
    EXPECT_EQ(train.steps(), 6) << keep;
  }
}

// An asynchronous error is reported once, before the call has any effect, so the call can be
// repeated.
TEST_F(GpuProgram, AFaultBetweenStepsIsRaisedAndTheStepCanBeMadeAgain) {
  auto train = compile(Mlp{}, options("webgpu"), loss_of),
       twin = compile(Mlp{}, options("webgpu"), loss_of);
  for (int i = 0; i < 6; ++i) {
    if (i % 2) {
      train.wait();
      shared_gpu().inject(i == 3 ? webgpu::Fault::out_of_memory : webgpu::Fault::validation);
      EXPECT_THROW(step(train, i), DeviceError);
    }
    step(train, i), step(twin, i);
  }
  EXPECT_EQ(train.fingerprint(), twin.fingerprint());
}

// The device is lost in the middle of a run: an error, no hang. A new device continues from the
// saved state.
TEST_F(GpuProgram, TrainingGoesOnAfterTheDeviceWasLost) {
  auto whole = compile(Mlp{}, options("webgpu"), loss_of);
  for (int i = 0; i < 10; ++i) step(whole, i);
  const std::string wanted = whole.fingerprint();

  auto train = compile(Mlp{}, options("webgpu"), loss_of);
  for (int i = 0; i < 5; ++i) step(train, i);
  const NamedArrays parameters = train.download(), state = train.optimizer_state();
  runtime::gpu_under(*runtime::blocking::open_device("webgpu", 0)).inject(webgpu::Fault::lost);
  EXPECT_THROW(for (int i = 5; i < 10; ++i) step(train, i).loss(), DeviceError);
  EXPECT_THROW(train.download(), DeviceError);

  auto again = compile(Mlp{}, options("webgpu"), loss_of);
  again.upload(parameters);
  again.upload_optimizer_state(state);
  for (int i = 5; i < 10; ++i) step(again, i);
  EXPECT_EQ(again.fingerprint(), wanted);
}

// The last program of a device is dropped with work in flight, after any number of polls: nothing
// that waits for the work may use the device any more.
TEST_F(GpuProgram, CanBeDroppedWithItsDeviceAtAnyMoment) {
  for (int moment = 0; moment < 12; ++moment) {
    TrainingOptions given = options("webgpu");
    given.progress = [](const CompileProgress&) {};
    int calls = 0;
    {
      const auto compiling = compile_async(Mlp{}, given, loss_of);
      for (int i = 0; i < moment && !compiling.ready(); ++i) poll();
    }
    {
      auto train = compile(Mlp{}, given, loss_of), other = compile(Mlp{}, given, loss_of);
      const auto count = [&](const Result&) { ++calls; };
      step(train, 0);
      train.step_async({{"x", wave(96, 1)}, {"y", wave(64, 1)}}, {.captures = true}).then(count);
      const auto download = train.download_async(), state = train.optimizer_state_async();
      for (int i = 0; i < moment; ++i) poll();
      step(other, 0);
    }
    poll();
    EXPECT_EQ(calls, 1) << moment;
  }
}

// For a profile each kernel has its own dispatch, or two.
TEST_F(GpuProgram, EveryKernelCanBeTimed) {
  auto train = compile(Mlp{}, options("webgpu"), loss_of);
  train.set_input("x", wave(96, 0));
  train.set_input("y", wave(64, 0));
  const auto times = train.profile(2);
  std::set<std::int64_t> kernels;
  for (const DispatchTime& time : times) kernels.insert(time.kernel);
  EXPECT_EQ(static_cast<std::int64_t>(kernels.size()), train.counts().kernels);
  EXPECT_LT(train.counts().dispatches, train.counts().kernels);  // as it trains, some share one
  for (const DispatchTime& time : times) {
    EXPECT_GT(time.microseconds, 0) << time.name;
    EXPECT_LT(time.kernel, train.counts().kernels) << time.name;
    EXPECT_NE(time.name, "");
  }
  EXPECT_EQ(train.steps(), 2);
}

// Steps that only accumulate have another plan, which profile() does not measure.
TEST_F(GpuProgram, TimesAreOfThePlanAlsoWhereGradientsAccumulate) {
  TrainingOptions accumulating = options("webgpu");
  accumulating.accumulate = 3;
  auto train = compile(Mlp{}, accumulating, loss_of);
  train.set_input("x", wave(96, 0));
  train.set_input("y", wave(64, 0));
  const auto times = train.profile(2);
  EXPECT_EQ(train.steps(), 6);
  std::set<std::int64_t> kernels;
  for (const DispatchTime& time : times) kernels.insert(time.kernel);
  EXPECT_EQ(static_cast<std::int64_t>(kernels.size()), train.counts().kernels);
}

}  // namespace
}  // namespace tensorgrad
