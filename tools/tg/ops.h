// `tg ops`: lists the ops and layers of the registry, and writes docs/ops.md.
#pragma once

#include <CLI/App.hpp>
#include <string>

namespace tensorgrad::tool {

void add_ops_command(CLI::App& tg, int& exit_code);

// `tg ops --primitives`
void list_primitives(bool json);
// The reference page.
std::string ops_page();

}  // namespace tensorgrad::tool
