#include "passes.h"

#include "command.h"
#include "tensorgrad/compile.h"

namespace tensorgrad::tool {

namespace {

void list_passes(bool json) {
  if (!json)
    print_out(
        "The stages of the compiler in the order they run: from level to level, and what is true "
        "after each.\nUnder a stage are the passes that --without leaves out.\n");
  for (const StageInfo& stage : compiler_stages()) {
    if (json)
      print_json(
          {{"stage", stage.name}, {"what", stage.what}, {"from", stage.from}, {"to", stage.to}});
    else
      print_out("\n{:<16}{} -> {}: {}\n", stage.name, stage.from, stage.to, stage.what);
    for (const PassInfo& pass : compiler_passes()) {
      if (pass.stage != stage.name) continue;
      if (json)
        print_json({{"pass", pass.name}, {"what", pass.what}, {"stage", pass.stage}});
      else
        print_out("  {:<14}{}\n", pass.name, pass.what);
    }
  }
}

}  // namespace

void add_passes_command(CLI::App& tg, int& exit_code) {
  auto json = std::make_shared<bool>(false);
  CLI::App& command = *tg.add_subcommand("passes", "List the stages and passes of the compiler");
  add_json_flag(command, *json);
  command.footer("Other commands leave passes out with --without A,B.\nExample:\n  tg passes");
  command.callback([json, &exit_code] {
    list_passes(*json);
    exit_code = 0;
  });
}

}  // namespace tensorgrad::tool
