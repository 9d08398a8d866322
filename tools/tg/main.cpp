// tg, the command-line tool: puts the commands together and turns errors into exit codes: 0 for
// success, 1 for an error, 2 for wrong words on the command line.
#include <algorithm>
#include <exception>

#include "bench.h"
#include "command.h"
#include "devices.h"
#include "ops.h"
#include "show.h"
#include "tensorgrad/error.h"
#include "train.h"
#include "verify.h"

namespace tensorgrad::tool {

namespace {

constexpr int kError = 1, kUsage = 2;

void complain(std::string_view message) {
  std::fflush(stdout);
  fmt::print(stderr, "tg: {}\n", message);
}

// CLI11 calls an unknown command an argument that was not expected.
void check_command(const CLI::App& tg, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return;
  std::vector<std::string> names;
  for (const CLI::App* command : tg.get_subcommands({})) names.push_back(command->get_name());
  if (std::find(names.begin(), names.end(), argv[1]) == names.end())
    unknown_name("command", argv[1], names);
}

int run(int argc, char** argv) {
  int exit_code = 0;
  CLI::App tg("Trains, shows and measures models with tensorgrad, a tensor compiler.", "tg");
  tg.set_version_flag("--version", "tensorgrad " TENSORGRAD_VERSION);
  tg.require_subcommand(0, 1);
  add_train_command(tg, exit_code);
  add_show_command(tg, exit_code);
  add_bench_command(tg, exit_code);
  add_ops_command(tg, exit_code);
  add_devices_command(tg, exit_code);
  add_verify_command(tg, exit_code);
  for (CLI::App* command : tg.get_subcommands({})) command->group("Commands");
  tg.get_formatter()->label("SUBCOMMAND", "COMMAND");
  // Set last, because a command would inherit it.
  tg.footer("tg COMMAND --help says more.\nExample:\n  tg train addition");
  try {
    check_command(tg, argc, argv);
    tg.parse(argc, argv);
    if (tg.get_subcommands().empty()) fmt::print("{}", tg.help());
    return exit_code;
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return tg.exit(e);  // --help and --version
    const std::string message = e.what();
    const auto called = tg.get_subcommands();
    const bool hinted = message.find("hint:") != message.npos;
    complain(hinted || called.empty()
                 ? message
                 : fmt::format("{}\n  hint: tg {} --help", message, called.front()->get_name()));
    return kUsage;
  } catch (const std::exception& e) {
    complain(e.what());
    return kError;
  }
}

}  // namespace

}  // namespace tensorgrad::tool

int main(int argc, char** argv) { return tensorgrad::tool::run(argc, argv); }
