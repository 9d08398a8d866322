// Runs the command-line tool and the examples as their users do, through a shell, and keeps what
// they printed.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tensorgrad {

struct ToolRun {
  int exit_code = -1;  // 128 + signal when one ended it
  std::string out, err;
};

// `arguments` are the words after `tg`. `wrapper` stands before the tool: "timeout --foreground -s
// INT 3".
ToolRun run_tool(const std::string& arguments, const std::string& wrapper = "");

// Any command of the shell.
ToolRun run_command(const std::string& command);

// Standard output as JSON lines, keys in their order. A line that is none fails the test.
std::vector<nlohmann::ordered_json> json_lines(const ToolRun& run);

// The names in an object, in their order: "event step loss".
std::string keys(const nlohmann::ordered_json& object);

void expect_contains(const std::string& text, const std::string& part);
void expect_starts_with(const std::string& text, const std::string& start);

}  // namespace tensorgrad
