// Shared by the commands: options, errors, JSON lines for programs and text for people. With
// --json, stdout holds only JSON lines, and text for people goes to stderr.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "output.h"
#include "tensorgrad/compile.h"

namespace tensorgrad::tool {

using Json = nlohmann::ordered_json;  // keeps the order of keys
// Files that nest deeper are refused, because writing JSON is recursive.
inline constexpr int kDeepestJson = 32;

// Validators that refuse other values and add nothing to the help text.
CLI::Validator in_range(std::int64_t low, std::int64_t high);
CLI::Validator positive();
CLI::Validator share(double low, double high);  // from low to high, both included
CLI::Validator one_of(std::vector<std::string> names);
// Names of devices, and `more`.
CLI::Validator device_name(const std::vector<std::string>& more = {});

// Where a program runs.
struct DeviceOptions {
  std::string device = "auto";
  int threads = 0;                   // 0: one per core
  std::vector<std::string> without;  // passes of the compiler
  CompileCallback progress;          // of compiling; none: no reports
};
void add_device_options(CLI::App& command, DeviceOptions& options);
void add_without_option(CLI::App& command, std::vector<std::string>& without);
void add_json_flag(CLI::App& command, bool& json);
// 0, the model's default, if the option is not given.
void add_batch_option(CLI::App& command, std::int64_t& batch);

// Prints one line to stdout and flushes, so that a reader sees it at once.
void print_json(const Json& line);
// The shortest decimal number that reads back as the same float.
double shortest(float value);
double rounded(double value, int decimals);
// "1,234,567"
std::string grouped(std::int64_t value);
// "1 step", "1,500 steps"
std::string counted(std::int64_t count, std::string_view what);
// Replaces the escapes "\\n", "\\t" and "\\\\", which a shell passes on unchanged.
std::string unescaped(const std::string& text);
// Number of elements in all parameters.
std::int64_t parameter_count(const ProgramHandle& program);

// The vector instructions that programs use on that device: "AVX2"; empty for a GPU.
std::string simd_of(const std::string& device);

// "cpu (2 threads, AVX2)", "webgpu:0 (NVIDIA H200, discrete GPU, vulkan)"
std::string where_text(const std::string& device, int threads);

// The stream for text for people.
inline std::FILE* people(bool json) { return json ? stderr : stdout; }

// Reports a wrong command line: exit code 2.
template <class... Args>
[[noreturn]] void usage_error(fmt::format_string<Args...> format, Args&&... args) {
  throw CLI::ValidationError(fmt::format(format, std::forward<Args>(args)...));
}

// "there is no task 'sine': the tasks are addition, copy, sin", and the nearest name as a hint.
[[noreturn]] void unknown_name(std::string_view what, std::string_view wanted,
                               const std::vector<std::string>& names);

// Returns the item with that name; throws a usage error if there is none.
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
