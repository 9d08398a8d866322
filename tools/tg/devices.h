// `tg devices`: lists the devices that programs can run on.
#pragma once

#include <CLI/App.hpp>

namespace tensorgrad::tool {

void add_devices_command(CLI::App& tg, int& exit_code);

}  // namespace tensorgrad::tool
