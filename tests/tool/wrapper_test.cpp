// ./tg itself, with stand-ins for the programs that it calls: what people see while it builds.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/run_tool.h"
#include "tests/support/terminal.h"

namespace tensorgrad {
namespace {

namespace fs = std::filesystem;

class ToolWrapper : public testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(root);
    const fs::path source = TENSORGRAD_SOURCE_DIR;
    fs::create_directories(root / "bin");
    fs::create_directories(root / "src");
    fs::create_directories(root / "checks");
    fs::create_directories(root / "tools" / "webgpu");
    fs::create_directories(root / "build" / "webgpu");
    fs::copy_file(source / "tg", root / "tg");
    // No attempt to get the WebGPU library: it was tried before.
    const fs::path lock = source / "tools" / "webgpu" / "package-lock.json";
    fs::copy_file(lock, root / "tools" / "webgpu" / "package-lock.json");
    fs::copy_file(lock, root / "build" / "webgpu" / "tried");
    program(root / "bin" / "dpkg-query", "for name; do echo \"$name installed\"; done");
    program(root / "bin" / "apt-get", "echo \"apt-get was called\" >&2; exit 1");
    program(root / "bin" / "ctest", "echo 'the tests ran'");
    program(root / "build" / "release" / "bin" / "tg", "echo '\"webgpu:0\"'");
    // A build that stops in the middle until the test lets it go on.
    program(root / "bin" / "cmake",
            "[ \"$1\" = --build ] || exit 0\n"
            "echo '[1/3] one'; echo '[2/3] two'\n"
            "while [ ! -e '" +
                (root / "go_on").string() + "' ]; do sleep 0.1; done\necho '[3/3] three'");
  }
  void TearDown() override { fs::remove_all(root); }

  static void program(const fs::path& path, const std::string& lines) {
    fs::create_directories(path.parent_path());
    std::ofstream(path) << "#!/bin/sh\n" << lines << "\n";
    fs::permissions(path, fs::perms::owner_all);
  }
  std::vector<std::string> environment() const {
    return {"PATH=" + (root / "bin").string() + ":" + std::getenv("PATH"),
            "CI=", "TENSORGRAD_BUILD_DIR=" + (root / "build").string()};
  }
  void go_on() const { std::ofstream(root / "go_on") << "\n"; }

  const fs::path root = fs::path(testing::TempDir()) / "tg_wrapper";
};

TEST_F(ToolWrapper, ShowsHowFarTheBuildIsAndWhatEachStageTook) {
  std::vector<std::string> own = environment();
  Terminal tests({(root / "tg").string(), "test"}, own);
  expect_contains(tests.wait_for("tg: built 2 of 3"), "tg: release: building");
  go_on();
  const std::string rest = tests.rest();
  EXPECT_EQ(tests.exit_code(), 0) << rest;
  expect_contains(rest, "tg: release: built in 0 min ");
  expect_contains(rest, "the tests ran");
  const std::size_t report = rest.find("tg: release: built in 0 min ", rest.find("the tests ran"));
  ASSERT_NE(report, std::string::npos) << rest;
  expect_contains(rest.substr(report), " s, tested in 0 min ");
  expect_contains(rest.substr(report), "tg: passed in 0 min ");
}

TEST_F(ToolWrapper, AFailedBuildShowsItsOutputAndRunsNoTest) {
  program(root / "bin" / "cmake",
          "[ \"$1\" = --build ] || exit 0\necho '[1/3] one'; echo 'error: no such thing'; exit 1");
  std::vector<std::string> own = environment();
  Terminal tests({(root / "tg").string(), "test"}, own);
  const std::string shown = tests.rest();
  EXPECT_EQ(tests.exit_code(), 1) << shown;
  expect_contains(shown, "error: no such thing");
  expect_contains(shown, "tg: FAILED in 0 min ");
  expect_contains(shown, "release build");
  EXPECT_EQ(shown.find("the tests ran"), std::string::npos) << shown;
}

}  // namespace
}  // namespace tensorgrad
