#include "passes.h"

#include "command.h"
#include "tensorgrad/compile.h"

namespace tensorgrad::tool {

namespace {

void list_passes(bool json) {
  if (!json) print_out("The passes in the order they run, and what is true after each:\n");
  for (const PassInfo& pass : compiler_passes()) {
    if (json)
      print_json({{"pass", pass.name}, {"what", pass.what}});
    else
      print_out("  {:<14}{}\n", pass.name, pass.what);
  }
}

}  // namespace

void add_passes_command(CLI::App& tg, int& exit_code) {
  auto json = std::make_shared<bool>(false);
  CLI::App& command = *tg.add_subcommand("passes", "List the passes of the compiler");
  add_json_flag(command, *json);
  command.footer("Other commands leave passes out with --without A,B.\nExample:\n  tg passes");
  command.callback([json, &exit_code] {
    list_passes(*json);
    exit_code = 0;
  });
}

}  // namespace tensorgrad::tool
