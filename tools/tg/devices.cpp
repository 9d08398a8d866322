#include "devices.h"

#include <algorithm>
#include <sstream>
#include <utility>
#include <vector>

#include "command.h"
#include "self_test.h"
#include "tensorgrad/device.h"

namespace tensorgrad::tool {

namespace {

const char* word(MatrixComponent component) {
  switch (component) {
    case MatrixComponent::float32:
      return "f32";
    case MatrixComponent::float16:
      return "f16";
    case MatrixComponent::uint32:
      return "u32";
    case MatrixComponent::int32:
      return "i32";
    case MatrixComponent::uint8:
      return "u8";
    case MatrixComponent::int8:
      return "i8";
  }
  return "";
}

std::string subgroups(const DeviceInfo& device) {
  if (!device.subgroups) return "without subgroups";
  if (device.subgroup_min == device.subgroup_max)
    return fmt::format("subgroups of {}", device.subgroup_min);
  return fmt::format("subgroups of {} to {}", device.subgroup_min, device.subgroup_max);
}

// "f16 -> f32 16x16x16, 16x8x16; u8 -> u32 16x16x32": M x N x K by types.
std::string matrices(const std::vector<MatrixShape>& shapes) {
  std::vector<std::pair<std::string, std::string>> by_type;
  for (const MatrixShape& shape : shapes) {
    const std::string type = fmt::format("{} -> {}", word(shape.component), word(shape.result));
    const std::string size = fmt::format("{}x{}x{}", shape.M, shape.N, shape.K);
    const auto same = std::find_if(by_type.begin(), by_type.end(),
                                   [&](const auto& entry) { return entry.first == type; });
    if (same == by_type.end())
      by_type.emplace_back(type, size);
    else
      same->second += ", " + size;
  }
  std::string out;
  for (const auto& [type, sizes] : by_type)
    out += fmt::format("{}{} {}", out.empty() ? "" : "; ", type, sizes);
  return out.empty() ? "none" : out;
}

nlohmann::json matrices_json(const std::vector<MatrixShape>& shapes) {
  nlohmann::json out = nlohmann::json::array();
  for (const MatrixShape& shape : shapes)
    out.push_back({{"component", word(shape.component)},
                   {"result", word(shape.result)},
                   {"M", shape.M},
                   {"N", shape.N},
                   {"K", shape.K}});
  return out;
}

void print_device(const DeviceInfo& device) {
  const bool short_name = device.available && device.name == "webgpu";
  print_out("{:<10}{}{}\n", device.name, device.description,
            !device.available                ? "   (not available)"
            : device.chosen_by_auto          ? "   (chosen by auto)"
            : device.software && !short_name ? "   (never chosen by auto)"
                                             : "");
  if (device.max_buffer_bytes > 0 && !short_name) {
    const auto mib = [](std::int64_t bytes) { return bytes / (1 << 20); };
    print_out("{:<10}buffers up to {} MiB, bindings up to {} MiB\n", "",
              mib(device.max_buffer_bytes), mib(device.max_binding_bytes));
    print_out("{:<10}{} f16, {}, {} timestamps\n", "", device.shader_f16 ? "with" : "without",
              subgroups(device), device.timestamps ? "with" : "without");
    print_out("{:<10}matrices: {}\n", "", matrices(device.matrix_shapes));
  }
  // A hint is on a separate line.
  std::istringstream lines(device.problem);
  for (std::string line; std::getline(lines, line);) print_out("{:<10}{}\n", "", line);
}

void list_devices(bool json) {
  for (const DeviceInfo& device : devices()) {
    if (!json) {
      print_device(device);
      continue;
    }
    print_json({{"name", device.name},
                {"description", device.description},
                {"available", device.available},
                {"chosen_by_auto", device.chosen_by_auto},
                {"problem", device.problem},
                {"backend", device.backend},
                {"software", device.software},
                {"max_buffer_bytes", device.max_buffer_bytes},
                {"max_binding_bytes", device.max_binding_bytes},
                {"shader_f16", device.shader_f16},
                {"subgroups", device.subgroups},
                {"subgroup_min", device.subgroup_min},
                {"subgroup_max", device.subgroup_max},
                {"matrix_shapes", matrices_json(device.matrix_shapes)},
                {"timestamps", device.timestamps},
                {"simd", device.simd}});
  }
}

}  // namespace

void add_devices_command(CLI::App& tg, int& exit_code) {
  struct Options {
    bool self_test = false;
    SelfTestOptions test;
  };
  auto options = std::make_shared<Options>();
  CLI::App& command =
      *tg.add_subcommand("devices", "List the devices that programs can run on, or test one");
  CLI::Option* self_test_flag = command.add_flag(
      "--self-test", options->self_test,
      "Run ops and their gradients on a device and check the results, in under a minute");
  command.add_option("--device", options->test.device, "Device to test")
      ->needs(self_test_flag)
      ->check(device_name())
      ->capture_default_str()
      ->type_name("NAME");
  command
      .add_option("--rows", options->test.rows,
                  "Test only rows whose name matches, such as softmax_*")
      ->needs(self_test_flag)
      ->type_name("GLOB");
  command.add_flag("--all", options->test.all, "Run all rows, without a time limit")
      ->needs(self_test_flag);
  add_json_flag(command, options->test.json);
  command.footer("Example:\n  tg devices --self-test --device webgpu");
  command.callback([options, &exit_code] {
    exit_code = 0;
    if (options->self_test)
      exit_code = self_test(options->test);
    else
      list_devices(options->test.json);
  });
}

}  // namespace tensorgrad::tool
