// Measuring the fastest tiles, once.
#include "runtime/webgpu/tuner.h"

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <utility>

#include "kernels/lower.h"
#include "kernels/tiles.h"
#include "runtime/blocking.h"
#include "tensorgrad/error.h"
#include "tests/support/gpu_test.h"
#include "tests/webgpu/common.h"
#include "tests/webgpu/products.h"

namespace tensorgrad {
namespace {

namespace fs = std::filesystem;

class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    value ? setenv(name, value, 1) : unsetenv(name);
  }
  ~Environment() { old_ ? setenv(name_, old_->c_str(), 1) : unsetenv(name_); }

 private:
  const char* name_;
  std::optional<std::string> old_;
};

TEST(WebgpuTuning, IsForHardwareUnlessTheEnvironmentSaysOtherwise) {
  webgpu::AdapterInfo hardware, software;
  software.software = true;
  {
    const Environment unset("TENSORGRAD_TUNE", nullptr);
    EXPECT_EQ(webgpu::tuning_for(hardware), webgpu::Tuning::measure);
    EXPECT_EQ(webgpu::tuning_for(software), webgpu::Tuning::off);
  }
  {
    const Environment off("TENSORGRAD_TUNE", "off");
    EXPECT_EQ(webgpu::tuning_for(hardware), webgpu::Tuning::off);
  }
  {
    const Environment on("TENSORGRAD_TUNE", "on");
    EXPECT_EQ(webgpu::tuning_for(software), webgpu::Tuning::measure);
  }
  const Environment wrong("TENSORGRAD_TUNE", "maybe");
  try {
    webgpu::tuning_for(hardware);
    FAIL() << "nothing was raised";
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(), "TENSORGRAD_TUNE: 'maybe' is neither 'on' nor 'off'");
  }
}

using GpuTuner = GpuTest;

constexpr const char* kLarge = R"(
  %0 = input {name="x", dtype=f32, shape=[2048,256]}
  %1 = input {name="y", dtype=f32, shape=[256,1024]}
  %2 = matmul(%0, %1)
  output "p" = %2
)";

ir::MatmulTiles tiles_of(const ir::Kernel& kernel) {
  return std::get<ir::MatmulTiles>(kernel.get_if<ir::MatmulKernel>()->variant);
}

// "work done of total", one line per report.
class Reports {
 public:
  CompileCallback callback() {
    return [this](const CompileProgress& p) {
      text_ += fmt::format("{} {} of {}\n", p.work == CompileWork::tuning ? "tuning" : "shaders",
                           p.done, p.total);
    };
  }
  std::string take() { return std::exchange(text_, ""); }

 private:
  std::string text_;
};

TEST_F(GpuTuner, MeasuresOnceAndRemembers) {
  const fs::path file = fs::path(testing::TempDir()) / "tg_tuner" / "choices.json";
  fs::remove_all(file.parent_path());
  std::vector<ir::Kernel> kernels = kernels::lower(plan_of(kLarge), ir::gpu_model());
  kernels.push_back(kernels[0]);  // the same again
  Reports reports;
  const auto chosen = [&](webgpu::Tuner& tuner) {
    const std::vector<ir::Kernel> out =
        wait_for(webgpu::shared_gpu(), tuner.choose(kernels, {}, reports.callback()), "tiles");
    EXPECT_EQ(tiles_of(out.front()), tiles_of(out.back()));
    return tiles_of(out[0]);
  };
  webgpu::Tuner off(webgpu::shared_gpu(), webgpu::Tuning::off, webgpu::Choices(file));
  EXPECT_EQ(chosen(off), tiles_of(kernels[0]));
  webgpu::Tuner remembers(webgpu::shared_gpu(), webgpu::Tuning::remember, webgpu::Choices(file));
  EXPECT_EQ(chosen(remembers), tiles_of(kernels[0]));
  EXPECT_EQ(remembers.measured(), 0);
  EXPECT_EQ(reports.take(), "");
  webgpu::Tuner first(webgpu::shared_gpu(), webgpu::Tuning::measure, webgpu::Choices(file));
  const ir::MatmulTiles tiles = chosen(first);
  EXPECT_EQ(reports.take(), "tuning 0 of 1\ntuning 1 of 1\n");
  EXPECT_EQ(chosen(first), tiles);
  EXPECT_EQ(reports.take(), "");
  EXPECT_EQ(first.measured(), 1);
  webgpu::Tuner second(webgpu::shared_gpu(), webgpu::Tuning::measure, webgpu::Choices(file));
  EXPECT_EQ(chosen(second), tiles);
  EXPECT_EQ(second.measured(), 0);
  fs::remove_all(file.parent_path());
}

// Measuring is a slow part of loading: it is reported before the shaders.
TEST_F(GpuTuner, LoadingReportsIt) {
  const fs::path folder = fs::path(testing::TempDir()) / "tg_tuner_load";
  fs::remove_all(folder);
  const Environment cache("TENSORGRAD_CACHE", folder.c_str()), on("TENSORGRAD_TUNE", "on");
  const std::shared_ptr<runtime::Device> device = runtime::blocking::open_own_device("webgpu", 1);
  Reports reports;
  runtime::blocking::load(
      *device,
      runtime::blocking::emit(*device, kernels::lower(plan_of(kLarge), ir::gpu_model()), 0,
                              reports.callback()),
      reports.callback());
  const std::string text = reports.take(), start = "tuning 0 of 1\ntuning 1 of 1\nshaders 0 of ";
  EXPECT_EQ(text.substr(0, start.size()), start) << text;
  fs::remove_all(folder);
}

// Without memory for trials, tiles are chosen by shape, and nothing else changes.
TEST_F(GpuTuner, AFailedTrialCostsNothing) {
  const std::unique_ptr<webgpu::Gpu> gpu = webgpu::Gpu::open();
  webgpu::Tuner tuner(*gpu, webgpu::Tuning::measure, webgpu::Choices());
  std::vector<ir::Kernel> kernels = kernels::lower(plan_of(kLarge), ir::gpu_model());
  const ir::MatmulTiles by_shape = tiles_of(kernels[0]);
  gpu->inject(webgpu::Fault::buffer_memory);
  Reports reports;
  const auto choose = [&](const CompileCallback& progress) {
    kernels = wait_for(*gpu, tuner.choose(kernels, {}, progress), "tiles");
  };
  choose(reports.callback());
  EXPECT_EQ(reports.take(), "tuning 0 of 1\ntuning 1 of 1\n");
  EXPECT_EQ(tiles_of(kernels[0]), by_shape);
  EXPECT_EQ(tuner.measured(), 1);
  choose({});  // there is room again
  EXPECT_EQ(tuner.measured(), 2);
  choose({});  // and now it is known
  EXPECT_EQ(tuner.measured(), 2);
}

// The same matmul at another place in memory is the same.
TEST(WebgpuTuner, PlacesDoNotMatter) {
  ir::Kernel here = kernels::lower(plan_of(kProducts[0].graph), ir::gpu_model())[0], there = here;
  std::swap(there.loads[0].place, there.loads[1].place);
  for (ir::Load& load : there.loads) load.place.offset += 6400;
  ir::for_each_store(there, [](ir::Store& store) { store.place.offset += 640; });
  webgpu::Elements a{}, b{};
  ASSERT_TRUE(webgpu::compact(here, a));
  ASSERT_TRUE(webgpu::compact(there, b));
  EXPECT_EQ(a, b);
  EXPECT_EQ(a[static_cast<std::size_t>(ir::Space::inputs)], 2 * 1024 * 96);
  EXPECT_EQ(wgsl::emit({&here, 1}, {}, false)[0].wgsl, wgsl::emit({&there, 1}, {}, false)[0].wgsl);
}

// Nor does it matter which part of a larger tensor is read: the layers of a model are parts of one
// flat tensor.
TEST(WebgpuTuner, ViewsOfALargerTensorDoNotMatter) {
  std::vector<std::string> texts;
  for (const int from : {0, 96, 300}) {
    const std::string graph = fmt::format(R"(
  %0 = input {{name="x", dtype=f32, shape=[1024,96]}}
  %1 = input {{name="y", dtype=f32, shape=[400,1024]}}
  %2 = narrow(%1) {{axis=0, start={0}, length=96}}
  %3 = matmul(%0, %2)
  output "p" = %3
)",
                                          from);
    ir::Kernel kernel = kernels::lower(plan_of(graph.c_str()), ir::gpu_model())[0];
    webgpu::Elements elements{};
    ASSERT_TRUE(webgpu::compact(kernel, elements));
    EXPECT_EQ(elements[static_cast<std::size_t>(ir::Space::inputs)], 2 * 96 * 1024);
    texts.push_back(wgsl::emit({&kernel, 1}, {}, false)[0].wgsl);
  }
  EXPECT_EQ(texts[1], texts[0]);
  EXPECT_EQ(texts[2], texts[0]);
}

// A file from another machine may name tiles that are no alternative here.
TEST(WebgpuTuner, UnknownTilesAreNoAlternative) {
  ir::Kernel kernel = kernels::lower(plan_of(kProducts[0].graph), ir::gpu_model())[0];
  const auto& matmul = *kernel.get_if<ir::MatmulKernel>();
  EXPECT_FALSE(kernels::alternative(matmul, ir::gpu_model(), {7, 7, 7}));
  EXPECT_EQ(kernels::alternative(matmul, ir::gpu_model(), tiles_of(kernel).size()),
            tiles_of(kernel));
}

}  // namespace
}  // namespace tensorgrad
