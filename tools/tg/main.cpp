// tg, the command-line tool: puts the commands together and turns errors into exit codes: 0 for
// success, 1 for an error, 2 for wrong words on the command line.
#include <cstdlib>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>

#include "bench.h"
#include "command.h"
#include "convert.h"
#include "devices.h"
#include "generate.h"
#include "inspect.h"
#include "ops.h"
#include "passes.h"
#include "plot.h"
#include "show.h"
#include "support/text.h"
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
void check_command(const CLI::App& tg, const std::vector<std::string>& words) {
  if (words.empty() || words[0].starts_with('-')) return;
  std::vector<std::string> names;
  for (const CLI::App* command : tg.get_subcommands({})) names.push_back(command->get_name());
  if (std::find(names.begin(), names.end(), words[0]) == names.end())
    unknown_name("command", words[0], names);
}

// `tg help` and `tg help COMMAND` mean --help.
std::vector<std::string> words_of(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  if (words.empty() || words[0] != "help") return words;
  words.erase(words.begin());
  words.insert(words.begin() + (words.empty() ? 0 : 1), "--help");
  return words;
}

// The command that was called: the innermost one, `text` of `train text`. Null when there is none.
const CLI::App* called_command(const CLI::App& tg) {
  const CLI::App* found = nullptr;
  for (auto called = tg.get_subcommands(); !called.empty(); called = found->get_subcommands()) found = called.front();
  return found;
}

// "train text"
std::string words_to(const CLI::App& command) {
  std::string words = command.get_name();
  for (const CLI::App* above = command.get_parent(); above && above->get_parent(); above = above->get_parent())
    words = above->get_name() + " " + words;
  return words;
}

// CLI11 counts the words that it cannot place; people want to know about the first of them.
std::string about_first_extra(const CLI::App& tg, const CLI::App* command) {
  const auto extras = tg.remaining(true);
  const std::string first = extras.empty() ? "" : extras.front();
  const std::string who = command ? words_to(*command) : "tg";
  const std::string help = command ? fmt::format("tg {} --help", who) : "tg --help";
  if (!first.starts_with('-')) return fmt::format("{}: '{}' is a word too many\n  hint: {}", who, first, help);
  std::vector<std::string> names;
  for (const CLI::Option* option : (command ? command : &tg)->get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  const std::string near = nearest_name(first.substr(0, first.find('=')), names);
  return fmt::format("{}: there is no option '{}'\n  hint: {}", who, first,
                     near.empty() ? help : fmt::format("did you mean {}?", near));
}

int run(int argc, char** argv) {
  int exit_code = 0;
  std::vector<std::string> words = words_of(argc, argv);
  CLI::App tg("Trains, shows and measures models with tensorgrad, a tensor compiler.", "tg");
  tg.set_version_flag("--version", "tensorgrad " TENSORGRAD_VERSION);
  tg.require_subcommand(0, 1);
  add_train_command(tg, exit_code);
  add_generate_command(tg, exit_code);
  add_convert_command(tg, exit_code);
  add_inspect_command(tg, exit_code);
  add_plot_command(tg, exit_code);
  add_show_command(tg, exit_code);
  add_bench_command(tg, exit_code);
  add_ops_command(tg, exit_code);
  add_devices_command(tg, exit_code);
  add_verify_command(tg, exit_code);
  add_passes_command(tg, exit_code);
  for (CLI::App* command : tg.get_subcommands({})) command->group("Commands");
  tg.get_formatter()->label("SUBCOMMAND", "COMMAND");
  // Set last, because a command would inherit it.
  tg.footer("tg COMMAND --help says more.\nExample:\n  tg train addition");
  try {
    check_command(tg, words);
    std::reverse(words.begin(), words.end());  // as CLI11 wants them
    tg.parse(words);
    if (tg.get_subcommands().empty()) fmt::print("{}", tg.help());
    if (std::fflush(stdout) != 0 || std::ferror(stdout)) {
      complain(fmt::format("the output could not be written: {}", std::strerror(errno)));
      return kError;
    }
    return exit_code;
  } catch (const CLI::ExtrasError&) {
    complain(about_first_extra(tg, called_command(tg)));
    return kUsage;
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return tg.exit(e);  // --help and --version
    const std::string message = e.what();
    const CLI::App* called = called_command(tg);
    const bool hinted = message.find("hint:") != message.npos;
    complain(hinted || !called ? message : fmt::format("{}\n  hint: tg {} --help", message, words_to(*called)));
    return kUsage;
  } catch (const std::exception& e) {
    complain(e.what());
    return kError;
  }
}

}  // namespace

}  // namespace tensorgrad::tool

int main(int argc, char** argv) {
  // The software driver compiles shaders with barriers in time that grows with the square of its vectors' width.
  setenv("LP_NATIVE_VECTOR_WIDTH", "128", 0);
  return tensorgrad::tool::run(argc, argv);
}
