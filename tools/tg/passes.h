// `tg passes`: lists the passes of the compiler that can be left out, with a sentence each.
#pragma once

#include <CLI/App.hpp>

namespace tensorgrad::tool {

void add_passes_command(CLI::App& tg, int& exit_code);

}  // namespace tensorgrad::tool
