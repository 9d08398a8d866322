// `tg train`: trains a small model on a built-in task.
#pragma once

#include <CLI/App.hpp>

namespace tensorgrad::tool {

void add_train_command(CLI::App& tg, int& exit_code);

}  // namespace tensorgrad::tool
