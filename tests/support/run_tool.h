// Runs the command-line tool and the examples as users do, through a shell, and captures their
// output.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tensorgrad {

struct ToolRun {
  int exit_code = -1;  // 128 + signal if a signal ended it
  std::string out, err;
};

// `arguments` are the words after `tg`. `wrapper` comes before the tool: "timeout --foreground -s
// INT 3".
ToolRun run_tool(const std::string& arguments, const std::string& wrapper = "");

// Runs any shell command.
ToolRun run_command(const std::string& command);

// Standard output as JSON lines with ordered keys. A line that is not JSON fails the test.
std::vector<nlohmann::ordered_json> json_lines(const ToolRun& run);

// The keys of an object in order: "event step loss".
std::string keys(const nlohmann::ordered_json& object);

void expect_contains(const std::string& text, const std::string& part);
void expect_starts_with(const std::string& text, const std::string& start);

}  // namespace tensorgrad
