// `tg generate CHECKPOINT`: generates text with a trained model.
#pragma once

#include <CLI/CLI.hpp>

namespace tensorgrad::tool {

void add_generate_command(CLI::App& tg, int& exit_code);

}  // namespace tensorgrad::tool
