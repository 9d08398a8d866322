// `tg train text FILE`: a language model learns a text; the run is a folder that can be gone on with.
#pragma once

#include <CLI/CLI.hpp>

namespace tensorgrad::tool {

// Below `tg train`.
void add_train_text_command(CLI::App& train, int& exit_code);

}  // namespace tensorgrad::tool
