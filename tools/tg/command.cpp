#include "command.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <optional>

#include "codegen/cpu/simd.h"
#include "support/integers.h"
#include "support/text.h"
#include "tensorgrad/device.h"

namespace tensorgrad::tool {

namespace {

// CLI11 prefixes the returned text with the option's name.
CLI::Validator validator(std::function<std::string(const std::string&)> problem) {
  return CLI::Validator([problem](std::string& text) { return problem(text); }, "");
}

template <class Number>
std::optional<Number> parse(const std::string& text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return {};
  return value;
}

std::vector<std::string> pass_names() {
  std::vector<std::string> names;
  for (const PassInfo& pass : compiler_passes()) names.emplace_back(pass.name);
  return names;
}

}  // namespace

CLI::Validator in_range(std::int64_t low, std::int64_t high) {
  return validator([=](const std::string& text) -> std::string {
    const auto value = parse<std::int64_t>(text);
    if (value && *value >= low && *value <= high) return "";
    return fmt::format("'{}' is not a whole number from {} to {}", text, grouped(low),
                       grouped(high));
  });
}

CLI::Validator positive() {
  return validator([](const std::string& text) -> std::string {
    const auto value = parse<double>(text);
    if (value && *value > 0 && std::isfinite(*value)) return "";
    return fmt::format("'{}' is not a number above 0", text);
  });
}

CLI::Validator share(double low, double high) {
  return validator([=](const std::string& text) -> std::string {
    const auto value = parse<double>(text);
    if (value && *value >= low && *value <= high) return "";
    return fmt::format("'{}' is not a number from {} to {}", text, low, high);
  });
}

CLI::Validator one_of(std::vector<std::string> names) {
  return validator([names = std::move(names)](const std::string& text) -> std::string {
    if (std::find(names.begin(), names.end(), text) != names.end()) return "";
    const std::string near = nearest_name(text, names);
    return fmt::format("'{}' is not one of {}{}", text, join(names, ", "),
                       near.empty() ? "" : fmt::format("\n  hint: {}?", near));
  });
}

// Accepts webgpu:N if there is no GPU at all: the library then reports what is missing.
CLI::Validator device_name(const std::vector<std::string>& more) {
  return validator([more](const std::string& text) -> std::string {
    if (text == "auto" || text == "cpu" || text == "webgpu") return "";
    std::vector<std::string> names = {"auto"};
    names.insert(names.end(), more.begin(), more.end());
    bool adapters = false;
    for (const DeviceInfo& device : devices()) {
      names.push_back(device.name);
      adapters = adapters || device.name.starts_with("webgpu:");
    }
    const bool known = std::find(names.begin(), names.end(), text) != names.end();
    if (known || (!adapters && text.starts_with("webgpu:"))) return "";
    if (text == "wgsl")
      usage_error(
          "the device wgsl only shows shaders\n  hint: tg show MODEL --stage emit --device wgsl");
    for (const char* other : {"gpu", "cuda", "vulkan", "metal", "d3d12"})
      if (CLI::detail::to_lower(text) == other)
        usage_error("there is no device '{}'\n  hint: webgpu?", text);
    unknown_name("device", text, names);
  });
}

void add_device_options(CLI::App& command, DeviceOptions& options) {
  command.add_option("--device", options.device, "Device to run on; tg devices lists them")
      ->check(device_name())
      ->capture_default_str()
      ->type_name("NAME");
  command.add_option("--threads", options.threads, "CPU threads; 0: one per core")
      ->check(in_range(0, 1024))
      ->capture_default_str()
      ->type_name("N");
  add_without_option(command, options.without);
}

void add_without_option(CLI::App& command, std::vector<std::string>& without) {
  command.add_option("--without", without, "Compiler passes to leave out; tg passes lists them")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(validator([](const std::string& text) -> std::string {
        const std::vector<std::string> names = pass_names();
        if (std::find(names.begin(), names.end(), text) != names.end()) return "";
        unknown_name("pass", text, names);
      }))
      ->type_name("A,B");
}

void add_json_flag(CLI::App& command, bool& json) {
  command.add_flag("--json", json, "Print JSON lines on stdout, and text for people on stderr");
}

void add_batch_option(CLI::App& command, std::int64_t& batch) {
  command.add_option("--batch", batch, "Examples per step (default: the model's)")
      ->check(in_range(1, 1 << 24))
      ->type_name("N");
}

void print_json(const Json& line) {
  // File names may contain any bytes.
  print_out("{}\n", line.dump(-1, ' ', false, Json::error_handler_t::replace));
}

double shortest(float value) { return std::stod(fmt::format("{}", value)); }

double rounded(double value, int decimals) {
  const double scale = std::pow(10.0, decimals);
  return std::round(value * scale) / scale;
}

std::string grouped(std::int64_t value) {
  std::string text = std::to_string(value);
  for (auto i = static_cast<std::int64_t>(text.size()) - 3; i > (value < 0 ? 1 : 0); i -= 3)
    text.insert(usize(i), ",");
  return text;
}

std::string counted(std::int64_t count, std::string_view what) {
  return fmt::format("{} {}{}", grouped(count), what, count == 1 ? "" : "s");
}

std::string unescaped(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char next = text[i] == '\\' && i + 1 < text.size() ? text[i + 1] : '\0';
    if (next == 'n' || next == 't' || next == '\\') {
      out += next == 'n' ? '\n' : next == 't' ? '\t' : '\\';
      ++i;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::int64_t parameter_count(const ProgramHandle& program) {
  const auto params = program.parameters();
  return std::accumulate(params.begin(), params.end(), std::int64_t{0},
                         [](std::int64_t n, const ParamInfo& p) { return n + p.shape.count(); });
}

std::string simd_of(const std::string& device) { return device == "cpu" ? cpu::simd_target() : ""; }

std::string where_text(const std::string& device, int threads) {
  if (threads > 0)
    return fmt::format("{} ({}, {})", device, counted(threads, "thread"), simd_of(device));
  for (const DeviceInfo& info : devices())
    if (info.name == device) return fmt::format("{} ({})", device, info.description);
  return device;
}

void unknown_name(std::string_view what, std::string_view wanted,
                  const std::vector<std::string>& names) {
  const std::string near = nearest_name(wanted, names);
  usage_error("there is no {} '{}': the {}{} are {}{}", what, wanted, what,
              what.ends_with('s') ? "es" : "s", join(names, ", "),
              near.empty() ? "" : fmt::format("\n  hint: {}?", near));
}

}  // namespace tensorgrad::tool
