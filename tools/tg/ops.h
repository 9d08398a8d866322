// `tg ops`: lists the primitives.
#pragma once

#include <CLI/App.hpp>

namespace tensorgrad::tool {

void add_ops_command(CLI::App& tg, int& exit_code);

}  // namespace tensorgrad::tool
