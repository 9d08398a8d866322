// Tiles of products: all alternatives give the same bits, and what was fastest is remembered.
#include "runtime/webgpu/tuner.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>

#include "kernels/lower.h"
#include "kernels/tiles.h"
#include "ops/table.h"
#include "runtime/device.h"
#include "schedule/plan.h"
#include "tensorgrad/error.h"
#include "tests/support/gpu_test.h"
#include "tests/webgpu/common.h"

namespace tensorgrad {
namespace {

namespace fs = std::filesystem;

struct Product {
  const char* name;
  const char* graph;
};

// x [M, K] and y are inputs; each graph has results of its own.
const Product kProducts[] = {
    {"plain", R"(
  %0 = input {name="x", dtype=f32, shape=[1024,96]}
  %1 = input {name="y", dtype=f32, shape=[96,1024]}
  %2 = matmul(%0, %1)
  output "p" = %2
)"},
    {"ragged", R"(
  %0 = input {name="x", dtype=f32, shape=[901,94]}
  %1 = input {name="y", dtype=f32, shape=[94,1001]}
  %2 = matmul(%0, %1)
  %3 = tanh(%2)
  output "p" = %3
)"},
    {"transposed", R"(
  %0 = input {name="x", dtype=f32, shape=[8,64,256]}
  %1 = input {name="y", dtype=f32, shape=[8,300,64]}
  %2 = permute(%0) {order=[0,2,1]}
  %3 = permute(%1) {order=[0,2,1]}
  %4 = matmul(%2, %3)
  output "p" = %4
)"},
    {"in_parts_with_sums", R"(
  %0 = input {name="x", dtype=f32, shape=[2100,200]}
  %1 = input {name="y", dtype=f32, shape=[2100,260]}
  %2 = permute(%0) {order=[1,0]}
  %3 = matmul(%2, %1)
  %4 = reduce_sum(%1) {axes=[0]}
  output "p" = %3
  output "s" = %4
)"},
};

schedule::Plan plan_of(const char* body) {
  const ir::Graph graph = ir::parse(fmt::format("graph {{{}}}\n", body), ops::find_primitive);
  schedule::Layout parameters, state, inputs;
  return schedule::plan(graph, {parameters, state, inputs});
}

// The outputs as they lie in memory.
std::vector<std::byte> run(runtime::Device& device, const schedule::Plan& plan, const std::vector<ir::Kernel>& kernels) {
  const auto loaded = device.load(kernels);
  std::array<std::unique_ptr<runtime::Buffer>, ir::kSpaces> buffers;
  runtime::Spaces spaces;
  for (std::size_t s = 0; s < buffers.size(); ++s) {
    buffers[s] = device.allocate(plan.elements[s], "memory");
    spaces[s] = buffers[s].get();
  }
  std::mt19937 random(3);
  std::vector<float> values;
  for (std::int64_t i = 0; i < plan.elements[static_cast<std::size_t>(ir::Space::inputs)]; ++i)
    values.push_back(static_cast<float>(random()) / 4294967296.0f - 0.5f);
  device.upload(*buffers[static_cast<std::size_t>(ir::Space::inputs)], 0, std::as_bytes(std::span(values)));
  device.submit(*loaded, spaces);
  std::vector<std::byte> out(static_cast<std::size_t>(plan.bytes(ir::Space::outputs)));
  device.read(*buffers[static_cast<std::size_t>(ir::Space::outputs)], 0, out);
  return out;
}

class GpuTiles : public GpuTest, public testing::WithParamInterface<Product> {};

TEST_P(GpuTiles, AlternativesGiveTheSameBits) {
  const auto device = runtime::open_device("webgpu", 0);
  const schedule::Plan plan = plan_of(GetParam().graph);
  std::vector<ir::Kernel> kernels = kernels::lower(plan);
  ASSERT_EQ(kernels.size(), 1u) << plan.text();
  std::optional<std::vector<std::byte>> first;
  int tried = 0;
  for (const kernels::MatmulTiles& tiles : kernels::alternatives(kernels[0])) {
    kernels[0].tiles = tiles.name();
    const auto bits = run(*device, plan, kernels);
    if (!first) first = bits;
    EXPECT_TRUE(bits == *first) << tiles.name();
    ++tried;
  }
  EXPECT_GE(tried, 3);
}

INSTANTIATE_TEST_SUITE_P(Webgpu, GpuTiles, testing::ValuesIn(kProducts), [](const auto& test) { return std::string(test.param.name); });

// ---- the file

class WebgpuChoices : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / ("tg_choices_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(folder_);
    file_ = folder_ / "deep" / "choices.json";
  }
  void TearDown() override { fs::remove_all(folder_); }
  void write(const std::string& text) {
    fs::create_directories(file_.parent_path());
    std::ofstream(file_) << text;
  }
  fs::path folder_, file_;
};

TEST_F(WebgpuChoices, AreRememberedBetweenPrograms) {
  webgpu::Choices first(file_);
  EXPECT_FALSE(first.find("card", "k1"));
  first.add("card", "k1", "128x64x16", "a product");
  first.save();
  webgpu::Choices second(file_);
  EXPECT_EQ(second.find("card", "k1"), "128x64x16");
  EXPECT_FALSE(second.find("another card", "k1"));
  // Two programs that save one after the other lose nothing.
  webgpu::Choices third(file_);
  second.add("card", "k2", "64x64x32", "");
  third.add("another card", "k1", "64x128x16", "");
  second.save();
  third.save();
  const webgpu::Choices last(file_);
  EXPECT_EQ(last.find("card", "k1"), "128x64x16");
  EXPECT_EQ(last.find("card", "k2"), "64x64x32");
  EXPECT_EQ(last.find("another card", "k1"), "64x128x16");
  EXPECT_EQ(std::distance(fs::directory_iterator(file_.parent_path()), {}), 1);  // no half-written files
}

TEST_F(WebgpuChoices, AFileThatIsNoneOfOursIsIgnoredAndReplaced) {
  for (const char* text : {"", "{", "[1, 2]", "null", R"({"format": "tensorgrad choices", "version": 1})",
                           R"({"format": "tensorgrad choices", "version": 0, "adapters": {"card": {"k": {"tiles": "1x1x1", "kernel": ""}}}})",
                           R"({"format": "tensorgrad choices", "version": 1, "adapters": {"card": {"k": {"tiles": 7, "kernel": ""}}}})",
                           R"({"format": "tensorgrad choices", "version": 1, "adapters": {"card": [1]}})"}) {
    SCOPED_TRACE(text);
    write(text);
    webgpu::Choices choices(file_);
    EXPECT_FALSE(choices.find("card", "k"));
    choices.add("card", "k", "64x64x32", "");
    choices.save();
    EXPECT_EQ(webgpu::Choices(file_).find("card", "k"), "64x64x32");
  }
}

TEST_F(WebgpuChoices, WithoutAPlaceToWriteNothingIsLost) {
  write("in the way");
  webgpu::Choices choices(file_ / "below a file" / "choices.json");
  choices.add("card", "k", "64x64x32", "");
  choices.save();
  EXPECT_EQ(choices.find("card", "k"), "64x64x32");
  webgpu::Choices nowhere;
  nowhere.add("card", "k", "64x64x32", "");
  nowhere.save();
  EXPECT_EQ(nowhere.find("card", "k"), "64x64x32");
}

// ---- measuring

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

TEST_F(GpuTuner, MeasuresOnceAndRemembers) {
  const fs::path file = fs::path(testing::TempDir()) / "tg_tuner" / "choices.json";
  fs::remove_all(file.parent_path());
  const std::vector<ir::Kernel> kernels = kernels::lower(plan_of(kLarge));
  const auto chosen = [&](webgpu::Tuner& tuner) {
    std::vector<ir::Kernel> out = kernels;
    tuner.choose(out, {});
    return out[0].tiles;
  };
  webgpu::Tuner off(webgpu::shared_gpu(), webgpu::Tuning::off, webgpu::Choices(file));
  EXPECT_EQ(chosen(off), "");
  webgpu::Tuner remembers(webgpu::shared_gpu(), webgpu::Tuning::remember, webgpu::Choices(file));
  EXPECT_EQ(chosen(remembers), "");
  EXPECT_EQ(remembers.measured(), 0);
  webgpu::Tuner first(webgpu::shared_gpu(), webgpu::Tuning::measure, webgpu::Choices(file));
  const std::string tiles = chosen(first);
  EXPECT_NE(tiles, "");
  EXPECT_EQ(chosen(first), tiles);
  EXPECT_EQ(first.measured(), 1);
  webgpu::Tuner second(webgpu::shared_gpu(), webgpu::Tuning::measure, webgpu::Choices(file));
  EXPECT_EQ(chosen(second), tiles);
  EXPECT_EQ(second.measured(), 0);
  fs::remove_all(file.parent_path());
}

// Without room for trials, tiles are chosen by shape, and nothing else happens.
TEST_F(GpuTuner, AFailedTrialCostsNothing) {
  const std::unique_ptr<webgpu::Gpu> gpu = webgpu::Gpu::open();
  webgpu::Tuner tuner(*gpu, webgpu::Tuning::measure, webgpu::Choices());
  std::vector<ir::Kernel> kernels = kernels::lower(plan_of(kLarge));
  gpu->inject(webgpu::Fault::buffer_memory);
  tuner.choose(kernels, {});
  EXPECT_EQ(kernels[0].tiles, "");
  tuner.choose(kernels, {});  // there is room again
  EXPECT_NE(kernels[0].tiles, "");
}

// The same product elsewhere in memory is the same product.
TEST(WebgpuTuner, PlacesDoNotMatter) {
  ir::Kernel here = kernels::lower(plan_of(kProducts[0].graph))[0], there = here;
  std::swap(there.loads[0].place, there.loads[1].place);
  for (ir::Load& load : there.loads) load.place.offset += 6400;
  for (ir::Store& store : there.parts[0].stores) store.place.offset += 640;
  webgpu::Elements a{}, b{};
  ASSERT_TRUE(webgpu::compact(here, a));
  ASSERT_TRUE(webgpu::compact(there, b));
  EXPECT_EQ(a, b);
  EXPECT_EQ(a[static_cast<std::size_t>(ir::Space::inputs)], 2 * 1024 * 96);
  EXPECT_EQ(wgsl::emit({&here, 1}, {}, false)[0].wgsl, wgsl::emit({&there, 1}, {}, false)[0].wgsl);
}

// Nor does it matter which part of a larger tensor is read: the layers of a model are parts of one flat tensor.
TEST(WebgpuTuner, ViewsOfALargerTensorDoNotMatter) {
  std::vector<std::string> texts;
  for (const int from : {0, 96, 300}) {
    const std::string graph = fmt::format(R"(
  %0 = input {{name="x", dtype=f32, shape=[1024,96]}}
  %1 = input {{name="y", dtype=f32, shape=[400,1024]}}
  %2 = narrow(%1) {{axis=0, start={0}, length=96}}
  %3 = matmul(%0, %2)
  output "p" = %3
)", from);
    ir::Kernel kernel = kernels::lower(plan_of(graph.c_str()))[0];
    webgpu::Elements elements{};
    ASSERT_TRUE(webgpu::compact(kernel, elements));
    EXPECT_EQ(elements[static_cast<std::size_t>(ir::Space::inputs)], 2 * 96 * 1024);
    texts.push_back(wgsl::emit({&kernel, 1}, {}, false)[0].wgsl);
  }
  EXPECT_EQ(texts[1], texts[0]);
  EXPECT_EQ(texts[2], texts[0]);
}

// A file made elsewhere may name what is no alternative here.
TEST(WebgpuTuner, UnknownTilesMeanTilesByShape) {
  ir::Kernel kernel = kernels::lower(plan_of(kProducts[0].graph))[0];
  const std::string by_shape = kernels::choose_tiles(kernel).name();
  kernel.tiles = "7x7x7";
  EXPECT_EQ(kernels::choose_tiles(kernel).name(), by_shape);
}

}  // namespace
}  // namespace tensorgrad
