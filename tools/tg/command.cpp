#include "command.h"

#include <unistd.h>

#include <cmath>

#include "support/text.h"
#include "tensorgrad/compile.h"

namespace tensorgrad::tool {

CLI::Validator in_range(std::int64_t low, std::int64_t high) {
  return CLI::Range(low, high).description("");
}

CLI::Validator positive() { return CLI::Validator(CLI::PositiveNumber).description(""); }

void add_device_options(CLI::App& command, DeviceOptions& options) {
  command.add_option("--device", options.device, "Where to run; tg devices lists them")
      ->capture_default_str()
      ->type_name("NAME");
  command.add_option("--threads", options.threads, "Threads of the CPU (default: one per core)")
      ->check(in_range(0, 1024))
      ->type_name("N");
  add_without_option(command, options.without);
}

void add_without_option(CLI::App& command, std::vector<std::string>& without) {
  std::vector<std::string> names;
  for (const PassInfo& pass : compiler_passes()) names.emplace_back(pass.name);
  command.add_option("--without", without, fmt::format("Passes of the compiler to leave out, of {}", join(names, ", ")))
      ->delimiter(',')
      ->type_name("A,B");
}

void add_json_flag(CLI::App& command, bool& json) {
  command.add_flag("--json", json, "JSON lines on stdout, text for people on stderr");
}

void add_batch_option(CLI::App& command, std::int64_t& batch) {
  command.add_option("--batch", batch, "Examples per step (default: the model's own)")
      ->check(in_range(1, 1 << 24))
      ->type_name("N");
}

void print_json(const Json& line) {
  fmt::print("{}\n", line.dump());
  std::fflush(stdout);
}

double shortest(float value) { return std::stod(fmt::format("{}", value)); }

double rounded(double value, int decimals) {
  const double scale = std::pow(10.0, decimals);
  return std::round(value * scale) / scale;
}

std::string grouped(std::int64_t value) {
  std::string text = std::to_string(value);
  for (auto i = static_cast<std::int64_t>(text.size()) - 3; i > (value < 0 ? 1 : 0); i -= 3)
    text.insert(static_cast<std::size_t>(i), ",");
  return text;
}

bool is_terminal(std::FILE* stream) { return isatty(fileno(stream)) == 1; }

void unknown_name(std::string_view what, std::string_view wanted,
                  const std::vector<std::string>& names) {
  const std::string near = nearest_name(wanted, names);
  usage_error("there is no {} '{}': the {}s are {}{}", what, wanted, what, join(names, ", "),
              near.empty() ? "" : fmt::format("\n  hint: {}?", near));
}

}  // namespace tensorgrad::tool
