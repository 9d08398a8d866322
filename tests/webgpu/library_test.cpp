// Finding and refusing the native WebGPU library.
#include <fmt/format.h>

#include <cstdlib>
#include <fstream>

#include "tests/support/run_tool.h"
#include "tests/webgpu/common.h"

namespace tensorgrad::webgpu {
namespace {

TEST(WebgpuLibrary, AnotherLibraryIsRefusedByTheMissingFunction) {
  EXPECT_EQ(device_error([] { load_library("libm.so.6"); }),
            "webgpu: libm.so.6 is another library or an old version: it has no wgpuCreateInstance\n"
            "  hint: Dawn of 2026 is expected; ./tg webgpu gets it");
}

TEST(WebgpuLibrary, AMissingFileIsNamed) {
  const std::string text = device_error([] { load_library("/nowhere/libwebgpu.so"); });
  expect_starts_with(text, "webgpu: cannot load the library: /nowhere/libwebgpu.so: ");
  expect_contains(text, "\n  hint: ./tg webgpu gets it");
}

// It has the functions of all libraries, and lacks the newer ones.
TEST(WebgpuLibrary, AnOlderOneIsRefusedByTheFirstFunctionThatItLacks) {
  const std::string file = testing::TempDir() + "tensorgrad_old_webgpu";
  std::ofstream(file + ".cc")
      << "extern \"C\" void* wgpuCreateInstance(const void*) { return nullptr; }\n";
  ASSERT_EQ(
      std::system(
          fmt::format("'{}' -shared -fPIC -o '{}.so' '{}.cc'", TENSORGRAD_CXX, file, file).c_str()),
      0);
  EXPECT_EQ(device_error([&] { load_library(file + ".so"); }),
            fmt::format("webgpu: {}.so is another library or an old version: it has no "
                        "wgpuHasInstanceFeature\n"
                        "  hint: Dawn of 2026 is expected; ./tg webgpu gets it",
                        file));
}

TEST(WebgpuLibrary, WithoutOneTheRepairIsNamed) {
  EXPECT_EQ(device_error([] {
              first_of({"/nowhere/a.so", "/nowhere/b.so"});
            }),
            "webgpu: the library dawn.node was not found\n"
            "  hint: run ./tg webgpu in tensorgrad's source tree, or name it in "
            "TENSORGRAD_WEBGPU_LIBRARY");
  EXPECT_EQ(first_of({"/nowhere/a.so", TENSORGRAD_SOURCE_DIR}), TENSORGRAD_SOURCE_DIR);
}

TEST(WebgpuLibrary, IsLookedForBesideTheProgram) {
  const auto places = library_places();
  ASSERT_GE(places.size(), 2u);
  EXPECT_TRUE(places[0].ends_with("/lib/tensorgrad/dawn.node")) << places[0];
  EXPECT_TRUE(places[1].ends_with("/dawn.node")) << places[1];
}

}  // namespace
}  // namespace tensorgrad::webgpu
