// `tg inspect`: shows the contents of a safetensors file or a checkpoint.
#pragma once

#include <CLI/App.hpp>

namespace tensorgrad::tool {

void add_inspect_command(CLI::App& tg, int& exit_code);

}  // namespace tensorgrad::tool
