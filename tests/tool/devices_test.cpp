// `tg devices`: available devices, and hints for missing ones.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "codegen/cpu/simd.h"
#include "tests/support/gpu_test.h"
#include "tests/support/run_tool.h"

namespace tensorgrad {
namespace {

constexpr const char* kKeys =
    "name description available chosen_by_auto problem backend software max_buffer_bytes "
    "max_binding_bytes shader_f16 subgroups subgroup_min "
    "subgroup_max matrix_shapes timestamps simd";

TEST(ToolDevices, ListsTheCpuFirst) {
  const ToolRun run = run_tool("devices --json");
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.err, "");
  const auto lines = json_lines(run);
  ASSERT_GE(lines.size(), 2u);
  EXPECT_EQ(lines[0]["name"], "cpu");
  EXPECT_EQ(lines.back()["name"], "webgpu");
  int automatic = 0;
  for (const auto& line : lines) {
    EXPECT_EQ(keys(line), kKeys);
    EXPECT_EQ(line["available"], line["problem"] == "");
    if (line["chosen_by_auto"]) {
      ++automatic;
      EXPECT_FALSE(line["software"]) << line;
    }
  }
  EXPECT_EQ(automatic, 1);
  expect_starts_with(run_tool("devices").out, "cpu       the CPU, ");
}

TEST(ToolDevices, TheCpuUsesTheVectorInstructionsThatAreNamed) {
  const std::string best = json_lines(run_tool("devices --json"))[0]["simd"];
  EXPECT_EQ(best, cpu::simd_targets().front());
  for (const std::string& name : cpu::simd_targets()) {
    const ToolRun run = run_tool("devices --json", "env TENSORGRAD_SIMD=" + name);
    EXPECT_EQ(json_lines(run)[0]["simd"], name);
  }
  const ToolRun run = run_tool("devices", "env TENSORGRAD_SIMD=AVX9");
  EXPECT_EQ(run.exit_code, 0);
  expect_starts_with(run.out,
                     "cpu       the CPU   (not available)\n"
                     "          TENSORGRAD_SIMD: 'AVX9' is not available\n"
                     "            hint: this machine and build have " +
                         best);
}

TEST(ToolDevices, ALibraryThatIsNotThereIsNamedWithTheRepair) {
  const ToolRun run = run_tool("devices", "env TENSORGRAD_WEBGPU_LIBRARY=/nowhere/dawn.so");
  EXPECT_EQ(run.exit_code, 0);
  expect_contains(run.out,
                  "webgpu    a GPU, through WebGPU   (not available)\n"
                  "          cannot load the library: /nowhere/dawn.so: ");
  EXPECT_EQ(run.err, "");
}

TEST(ToolDevices, ALibraryThatIsAnotherIsNamedWithTheRepair) {
  const ToolRun run = run_tool("devices", "env TENSORGRAD_WEBGPU_LIBRARY=libm.so.6");
  expect_contains(
      run.out,
      "          libm.so.6 is another library or an old version: it has no wgpuCreateInstance\n"
      "            hint: Dawn of 2026 is expected; ./tg webgpu gets it\n");
  EXPECT_EQ(run.err, "");
}

// A broken loader stands for a missing one.
TEST(ToolDevices, WithoutTheVulkanLoaderTheRepairIsNamed) {
  const std::filesystem::path folder = testing::TempDir() + "tensorgrad_no_vulkan";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "libvulkan.so.1") << "no library";
  const ToolRun run = run_tool("devices", "env LD_LIBRARY_PATH=" + folder.string());
  if (run.out.find("the library dawn.node was not found") != std::string::npos)
    GTEST_SKIP() << "without the library, the loader is not looked for";
  expect_contains(run.out,
                  "          the Vulkan loader libvulkan.so.1 is missing\n"
                  "            hint: run ./tg webgpu in tensorgrad's source tree, or: sudo apt-get "
                  "install libvulkan1\n");
  EXPECT_EQ(run.err, "");
}

TEST(ToolDevices, AUserOfWebgpuIsToldTheSame) {
  const ToolRun run =
      run_tool("train sin --device webgpu", "env TENSORGRAD_WEBGPU_LIBRARY=/nowhere/libwebgpu.so");
  EXPECT_EQ(run.exit_code, 1);
  expect_starts_with(run.err, "tg: webgpu: ");
  expect_contains(run.err, "/nowhere/libwebgpu.so");
}

using GpuToolDevices = GpuTest;

TEST_F(GpuToolDevices, OneThatIsNotThereIsNotFound) {
  const ToolRun run = run_tool("train sin --device webgpu:99");
  EXPECT_EQ(run.exit_code, 2);
  std::string names = "auto";
  for (const auto& device : json_lines(run_tool("devices --json")))
    names += ", " + device["name"].get<std::string>();
  expect_starts_with(run.err, "tg: --device: there is no device 'webgpu:99': the devices are " +
                                  names + "\n  hint: ");
}

TEST_F(GpuToolDevices, AreListed) {
  const ToolRun run = run_tool("devices --json");
  EXPECT_EQ(run.err, "");  // Dawn's own warnings are not shown
  const auto lines = json_lines(run);
  ASSERT_GE(lines.size(), 3u);
  EXPECT_EQ(lines[1]["name"], "webgpu:0");
  EXPECT_EQ(lines[1]["available"], true);
  EXPECT_NE(lines[1]["backend"], "");
  EXPECT_GE(lines[1]["max_buffer_bytes"], 256 << 20);
  EXPECT_GE(lines[1]["max_binding_bytes"], 128 << 20);
}

// The line for people says the same as the line for programs.
TEST_F(GpuToolDevices, AreListedWithTheirFeatures) {
  const auto gpu = json_lines(run_tool("devices --json")).at(1);
  const std::string text = run_tool("devices").out;
  expect_contains(text, gpu["shader_f16"] ? "          with f16, " : "          without f16, ");
  const int least = gpu["subgroup_min"], most = gpu["subgroup_max"];
  EXPECT_EQ(gpu["subgroups"], most > 0);
  expect_contains(text, most == 0       ? "without subgroups"
                        : least == most ? fmt::format("subgroups of {},", most)
                                        : fmt::format("subgroups of {} to {},", least, most));
  if (gpu["matrix_shapes"].empty()) {
    expect_contains(text, "          matrices: none\n");
    return;
  }
  for (const auto& shape : gpu["matrix_shapes"]) {
    expect_contains(text, fmt::format("{} -> {} ", shape["component"].get<std::string>(),
                                      shape["result"].get<std::string>()));
    expect_contains(text, fmt::format("{}x{}x{}", shape["M"].get<int>(), shape["N"].get<int>(),
                                      shape["K"].get<int>()));
  }
}

TEST_F(GpuToolDevices, WithoutADriverTheRepairIsNamed) {
  const ToolRun run = run_tool("devices", "env VK_DRIVER_FILES=/nowhere VK_ICD_FILENAMES=/nowhere");
  expect_contains(run.out,
                  "          WebGPU found no usable GPU driver\n"
                  "            hint: install the Vulkan driver of the GPU's vendor; or, to try "
                  "things out without a GPU: "
                  "./tg webgpu --software\n");
  EXPECT_EQ(run.err, "");
  const ToolRun train = run_tool("train sin --device webgpu",
                                 "env VK_DRIVER_FILES=/nowhere VK_ICD_FILENAMES=/nowhere");
  EXPECT_EQ(train.exit_code, 1);
  expect_starts_with(train.err, "tg: webgpu: WebGPU found no usable GPU driver\n  hint: ");
}

}  // namespace
}  // namespace tensorgrad
