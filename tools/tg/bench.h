// `tg bench`: measures training steps and matmuls.
#pragma once

#include <CLI/App.hpp>

namespace tensorgrad::tool {

void add_bench_command(CLI::App& tg, int& exit_code);

}  // namespace tensorgrad::tool
