#include "tests/support/run_tool.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>

namespace tensorgrad {

namespace {

#ifdef TENSORGRAD_TG
constexpr const char* kTool = TENSORGRAD_TG;
#else
constexpr const char* kTool = "";
#endif

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

ToolRun run_tool(const std::string& arguments, const std::string& wrapper) {
  if (!*kTool) {
    ADD_FAILURE() << "the tool was not built (TENSORGRAD_BUILD_TOOL=OFF)";
    return {};
  }
  return run_command(wrapper + " '" + kTool + "' " + arguments);
}

ToolRun run_command(const std::string& command) {
  ToolRun run;
  std::string errors = testing::TempDir() + "tg_stderr_XXXXXX";
  const int file = mkstemp(errors.data());
  if (file < 0) {
    ADD_FAILURE() << "cannot write to " << testing::TempDir();
    return run;
  }
  close(file);
  std::FILE* pipe = popen((command + " 2>'" + errors + "' </dev/null").c_str(), "r");
  if (!pipe) {
    ADD_FAILURE() << "cannot run " << command;
    return run;
  }
  char block[4096];
  while (const std::size_t size = std::fread(block, 1, sizeof block, pipe))
    run.out.append(block, size);
  const int status = pclose(pipe);
  run.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  run.err = read_file(errors);
  std::remove(errors.c_str());
  return run;
}

std::vector<nlohmann::ordered_json> json_lines(const ToolRun& run) {
  std::vector<nlohmann::ordered_json> lines;
  std::istringstream text(run.out);
  for (std::string line; std::getline(text, line);) {
    auto parsed = nlohmann::ordered_json::parse(line, nullptr, false);
    EXPECT_FALSE(parsed.is_discarded()) << "not JSON: " << line;
    if (!parsed.is_discarded()) lines.push_back(std::move(parsed));
  }
  EXPECT_FALSE(lines.empty()) << "no output; stderr:\n" << run.err;
  return lines;
}

std::string keys(const nlohmann::ordered_json& object) {
  std::string names;
  for (const auto& [key, value] : object.items()) names += (names.empty() ? "" : " ") + key;
  return names;
}

void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_PRED_FORMAT2(testing::IsSubstring, part, text);
}

void expect_starts_with(const std::string& text, const std::string& start) {
  EXPECT_EQ(text.substr(0, start.size()), start) << "the whole text:\n" << text;
}

}  // namespace tensorgrad
