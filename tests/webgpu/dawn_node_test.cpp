// npm's dawn.node: what is refused before it is loaded, and what is found in it.
#include "runtime/webgpu/dawn_node_native.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/support/run_tool.h"
#include "tests/webgpu/common.h"

namespace tensorgrad::webgpu {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHint = "\n  hint: ./tg webgpu gets it";

fs::path folder() {
  const fs::path path = fs::path(testing::TempDir()) / "tensorgrad_dawn_node";
  fs::create_directories(path);
  return path;
}

// Builds a shared object from a line of C++.
std::string add_on(const std::string& name, const std::string& code) {
  const std::string file = (folder() / name).string();
  std::ofstream(file + ".cc") << code << "\n";
  EXPECT_EQ(
      run_command(fmt::format("'{}' -shared -fPIC -o '{}' '{}.cc'", TENSORGRAD_CXX, file, file))
          .exit_code,
      0);
  return file;
}

// The package has libraries for several machines side by side.
std::string of_machine(const std::string& machine) {
  for (const std::string& place : library_places()) {
    const fs::path found = fs::path(place).parent_path().parent_path() / machine / "dawn.node";
    if (fs::exists(found)) return found.string();
  }
  return "";
}

std::string refusal(const std::string& file) {
  return device_error([&] { load_library(file); });
}

TEST(DawnNode, AMissingFileIsNamed) {
  EXPECT_EQ(refusal("/nowhere/dawn.node"),
            fmt::format("webgpu: cannot load the library: /nowhere/dawn.node: cannot open the "
                        "file{}",
                        kHint));
}

TEST(DawnNode, AFileThatIsNoSharedObjectIsRefused) {
  const std::string file = (folder() / "text.node").string();
  std::ofstream(file) << std::string(4096, 'x');
  EXPECT_EQ(refusal(file),
            fmt::format("webgpu: cannot load the library: {}: not a shared object of "
                        "64 bits{}",
                        file, kHint));
  std::ofstream(file) << "short";
  EXPECT_EQ(refusal(file),
            fmt::format("webgpu: cannot load the library: {}: the file is cut off{}", file, kHint));
}

TEST(DawnNode, AnotherAddOnIsRefusedByTheMissingFunction) {
  const std::string file = add_on("other.node", "extern \"C\" void dawnProcSetProcs() {}");
  EXPECT_EQ(refusal(file),
            fmt::format("webgpu: cannot load the library: {}: it is not Dawn: it has "
                        "no _ZN4dawn6native8GetProcsEv{}",
                        file, kHint));
}

TEST(DawnNode, AStrippedOneIsRefused) {
  const std::string file = add_on("stripped.node", "extern \"C\" void dawnProcSetProcs() {}");
  ASSERT_EQ(run_command("strip '" + file + "'").exit_code, 0);
  EXPECT_EQ(refusal(file), fmt::format("webgpu: cannot load the library: {}: it has no symbol "
                                       "table: it was stripped{}",
                                       file, kHint));
}

// Every prefix of a real file is refused or accepted, and never read past its end.
TEST(DawnNode, ACutOffFileIsRefused) {
  const std::string whole = add_on("whole.node", "extern \"C\" void dawnProcSetProcs() {}");
  const std::string file = (folder() / "part.node").string();
  const auto size = fs::file_size(whole);
  for (std::uintmax_t kept = 0; kept < size; kept += 97) {
    fs::copy_file(whole, file, fs::copy_options::overwrite_existing);
    fs::resize_file(file, kept);
    expect_starts_with(refusal(file), "webgpu: cannot load the library: " + file);
  }
}

// Loading another machine's library is impossible, but its functions can be found.
TEST(DawnNode, HasTheEntriesOnBothMachines) {
  for (const char* machine : {"linux-x64", "linux-arm64"}) {
    const std::string file = of_machine(machine);
    if (file.empty()) GTEST_SKIP() << "./tg webgpu was not run";
    EXPECT_EQ(dawn_node_entries(file).size(), 3u) << file;
  }
}

using GpuDawnNode = GpuTest;

TEST_F(GpuDawnNode, IsNamedByItsOwnPath) {
  if (!is_node_addon(library().path)) GTEST_SKIP() << "another library is in use";
  EXPECT_EQ(file_of(library()), library().path);
}

}  // namespace
}  // namespace tensorgrad::webgpu
