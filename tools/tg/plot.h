// `tg plot`: the curves, samples and settings of training runs as one HTML page.
#pragma once

#include <CLI/App.hpp>
#include <filesystem>
#include <vector>

namespace tensorgrad::tool {

void add_plot_command(CLI::App& tg, int& exit_code);

// Writes the page for these run folders. Minor problems with a log are reported on stderr.
void write_plot(const std::vector<std::filesystem::path>& runs, const std::filesystem::path& out);

}  // namespace tensorgrad::tool
