#include "devices.h"

#include "command.h"
#include "tensorgrad/device.h"

namespace tensorgrad::tool {

namespace {

void list_devices(bool json) {
  for (const DeviceInfo& device : devices()) {
    if (json) {
      print_json({{"name", device.name},
                  {"description", device.description},
                  {"available", device.available},
                  {"chosen_by_auto", device.chosen_by_auto},
                  {"problem", device.problem}});
      continue;
    }
    fmt::print("{:<10}{}{}\n", device.name, device.description,
               device.chosen_by_auto ? "   (what auto chooses)"
               : device.available    ? ""
                                     : "   (not available)");
    if (!device.problem.empty()) fmt::print("{:<10}{}\n", "", device.problem);
  }
}

}  // namespace

void add_devices_command(CLI::App& tg, int& exit_code) {
  auto json = std::make_shared<bool>(false);
  CLI::App& command = *tg.add_subcommand("devices", "List the devices that programs can run on");
  add_json_flag(command, *json);
  command.footer("Example:\n  tg devices --json");
  command.callback([json, &exit_code] {
    list_devices(*json);
    exit_code = 0;
  });
}

}  // namespace tensorgrad::tool
