// `tg plot`: the curves, samples and settings of training runs as one HTML page.
#pragma once

#include <CLI/App.hpp>
#include <filesystem>
#include <vector>

namespace tensorgrad::tool {

void add_plot_command(CLI::App& tg, int& exit_code);

// The page of these runs' folders; what is wrong with a log but no reason to stop is told on stderr.
void write_plot(const std::vector<std::filesystem::path>& runs, const std::filesystem::path& out);

}  // namespace tensorgrad::tool
