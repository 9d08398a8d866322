// `tg verify`: replays a directory of reference values on a device and compares.
#pragma once

#include <CLI/App.hpp>
#include <string>

#include "command.h"

namespace tensorgrad::tool {

struct VerifyOptions {
  std::string directory;
  DeviceOptions where;
  std::string filter = "*";  // pattern over case names
  bool json = false, verbose = false;
};

// Returns the exit code: 0 if no case failed, 1 otherwise. Throws CLI::ValidationError (exit code
// 2) if the directory or the device is not available.
int verify(const VerifyOptions& options);

void add_verify_command(CLI::App& tg, int& exit_code);

}  // namespace tensorgrad::tool
