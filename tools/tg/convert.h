// `tg convert IN OUT`: converts weights from and to the names and layouts of PyTorch programs.
#pragma once

#include <CLI/CLI.hpp>

namespace tensorgrad::tool {

void add_convert_command(CLI::App& tg, int& exit_code);

}  // namespace tensorgrad::tool
