// tg bench --profile: the table, the JSON lines and the page agree.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/support/gpu_test.h"
#include "tests/support/run_tool.h"

namespace tensorgrad {
namespace {

using nlohmann::ordered_json;

struct Profiled {
  std::vector<ordered_json> lines;
  std::string page, err;
};

Profiled profile(const std::string& arguments) {
  const std::string file = testing::TempDir() + "tg_profile_" +
                           testing::UnitTest::GetInstance()->current_test_info()->name() + ".html";
  const ToolRun run = run_tool("bench --profile --json --page '" + file + "' " + arguments);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  std::ifstream in(file, std::ios::binary);
  Profiled out{json_lines(run), {std::istreambuf_iterator<char>(in), {}}, run.err};
  // The progress of compiling may come first.
  EXPECT_TRUE(out.err.ends_with("page written to " + file + "\n")) << out.err;
  std::filesystem::remove(file);
  return out;
}

// The data of the page.
ordered_json numbers_of(const std::string& page) {
  const std::string open = "<script type=\"application/json\" id=\"profiles\">";
  const std::size_t begin = page.find(open) + open.size();
  return ordered_json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

void expect_whole(const Profiled& found, const std::string& device) {
  ASSERT_EQ(found.lines.size(), 1u);
  const ordered_json& line = found.lines[0];
  EXPECT_EQ(keys(line), "model device batch profile total_us");
  expect_starts_with(line["device"], device);
  const auto plan = json_lines(run_tool("show mlp_sin --json"))[0]["plan"];
  ASSERT_EQ(line["profile"].size(), plan.size());
  double total = 0;
  std::vector<std::string> phases;
  for (std::size_t i = 0; i < plan.size(); ++i) {
    const ordered_json& kernel = line["profile"][i];
    EXPECT_EQ(keys(kernel), "kernel phase kind name where us dispatches gflops gb_per_s");
    EXPECT_EQ(kernel["kernel"], i);
    EXPECT_EQ(kernel["kind"], plan[i]["kind"]);
    EXPECT_GE(kernel["dispatches"], 1);
    total += kernel["us"].get<double>();
    phases.push_back(kernel["phase"]);
  }
  // Kernels that only the loss needs may run late.
  EXPECT_EQ(phases.front(), "forward");
  EXPECT_EQ(std::count(phases.begin(), phases.end(), "backward"), 6);
  EXPECT_EQ(phases.back(), "update");
  EXPECT_NEAR(total, line["total_us"].get<double>(), 0.1 + 0.01 * static_cast<double>(plan.size()));
  EXPECT_EQ(numbers_of(found.page), ordered_json::array({line}));
}

TEST(ToolProfile, PageAndLinesAgree) {
  expect_whole(profile("--models mlp_sin --device cpu"), "cpu (");
}

using GpuToolProfile = GpuTest;
TEST_F(GpuToolProfile, PageAndLinesAgree) {
  expect_whole(profile("--models mlp_sin --device webgpu"), "webgpu:0 (");
}

TEST(ToolProfile, ThePageNeedsNothingElse) {
  const Profiled found = profile("--models mlp_sin,gemm_512 --device cpu");
  EXPECT_EQ(numbers_of(found.page).size(), 2u);
  expect_contains(found.page, "time in microseconds");  // the axis has a title
  expect_starts_with(found.page, "<!DOCTYPE html>");
  EXPECT_TRUE(found.page.ends_with("</html>\n"));
  for (const char* outside : {"http", "src=", "href=", "@import", "url("})
    EXPECT_EQ(found.page.find(outside), std::string::npos) << outside;
}

TEST(ToolProfile, TableForPeople) {
  const std::string file = testing::TempDir() + "tg_profile_table.html";
  const ToolRun run =
      run_tool("bench --models addition --batch 4 --profile --device cpu --page '" + file + "'");
  EXPECT_EQ(run.exit_code, 0);
  expect_starts_with(run.out, "addition at batch 4 on cpu (");
  expect_contains(run.out, "GFLOP/s");
  expect_contains(run.out, "...\n");  // long names are cut
  expect_contains(run.out, "page written to " + file + "\n");
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace tensorgrad
