#include "devices.h"

#include <sstream>

#include "command.h"
#include "self_test.h"
#include "tensorgrad/device.h"

namespace tensorgrad::tool {

namespace {

void print_device(const DeviceInfo& device) {
  const bool short_name = device.available && device.name == "webgpu";
  print_out("{:<10}{}{}\n", device.name, device.description,
            !device.available                ? "   (not available)"
            : device.chosen_by_auto          ? "   (chosen by auto)"
            : device.software && !short_name ? "   (never chosen by auto)"
                                             : "");
  if (device.max_buffer_bytes > 0 && !short_name) {
    const auto mib = [](std::int64_t bytes) { return bytes / (1 << 20); };
    print_out("{:<10}buffers up to {} MiB, bindings up to {} MiB, {} subgroups, {} timestamps\n",
              "", mib(device.max_buffer_bytes), mib(device.max_binding_bytes),
              device.subgroups ? "with" : "without", device.timestamps ? "with" : "without");
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
                {"subgroups", device.subgroups},
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
