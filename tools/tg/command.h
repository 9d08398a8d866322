// What the commands share: options, errors, JSON lines for programs and text for people. With
// --json stdout belongs to the JSON lines alone, and text for people goes to stderr.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tensorgrad {
class ProgramHandle;
}

namespace tensorgrad::tool {

using Json = nlohmann::ordered_json;  // keys stay in the order they were written

// Refuse other values, without a word about it in the help text.
CLI::Validator in_range(std::int64_t low, std::int64_t high);
CLI::Validator positive();
CLI::Validator share(double low, double high);  // from low to high, both included
CLI::Validator one_of(std::vector<std::string> names);
CLI::Validator device_name();

// Where a program runs.
struct DeviceOptions {
  std::string device = "auto";
  int threads = 0;  // 0: one per core
  std::vector<std::string> without;  // passes of the compiler
};
void add_device_options(CLI::App& command, DeviceOptions& options);
void add_without_option(CLI::App& command, std::vector<std::string>& without);
void add_json_flag(CLI::App& command, bool& json);
// 0, the model's own, when it is not given.
void add_batch_option(CLI::App& command, std::int64_t& batch);

// One line on stdout, flushed: a reader sees it at once.
void print_json(const Json& line);
// What a program reads back as the same float, in few digits.
double shortest(float value);
double rounded(double value, int decimals);
// "1,234,567"
std::string grouped(std::int64_t value);
// "\\n", "\\t" and "\\\\" written out, as a shell passes them on, become what they mean.
std::string unescaped(const std::string& text);
// Numbers in all parameters.
std::int64_t parameter_count(const ProgramHandle& program);

// "cpu (2 threads)", "webgpu:0 (NVIDIA H200, discrete GPU, vulkan)"
std::string where_text(const std::string& device, int threads);

// Whether stdout is a pipe that nobody reads any more: `| head -1`.
bool reader_left();

// Where text for people goes.
inline std::FILE* people(bool json) { return json ? stderr : stdout; }
bool is_terminal(std::FILE* stream);

// Wrong words on the command line: exit code 2.
template <class... Args>
[[noreturn]] void usage_error(fmt::format_string<Args...> format, Args&&... args) {
  throw CLI::ValidationError(fmt::format(format, std::forward<Args>(args)...));
}

// "there is no task 'sine': the tasks are addition, copy, sin", and the nearest name as a hint.
[[noreturn]] void unknown_name(std::string_view what, std::string_view wanted,
                               const std::vector<std::string>& names);

// The item of `items` whose `name` is the wanted one; a usage error when there is none.
template <class Item>
const Item& find_named(std::span<const Item> items, std::string_view what,
                       std::string_view wanted) {
  std::vector<std::string> names;
  for (const Item& item : items) {
    if (item.name == wanted) return item;
    names.emplace_back(item.name);
  }
  unknown_name(what, wanted, names);
}

}  // namespace tensorgrad::tool
