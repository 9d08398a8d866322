// `tg train text FILE`: trains a language model on a text. The run is a folder and can be resumed.
#pragma once

#include <CLI/CLI.hpp>

namespace tensorgrad::tool {

// Adds the command below `tg train`.
void add_train_text_command(CLI::App& train, int& exit_code);

}  // namespace tensorgrad::tool
