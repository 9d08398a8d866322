// `tg show`: prints a stage of the compiler for one of the bench models.
#pragma once

#include <CLI/App.hpp>

namespace tensorgrad::tool {

void add_show_command(CLI::App& tg, int& exit_code);

}  // namespace tensorgrad::tool
