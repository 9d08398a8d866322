// tg, the command-line tool: collects the commands and turns errors into exit codes: 0 for success,
// 1 for an error, 2 for a wrong command line, 141 if the reader of stdout has closed it.
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <sstream>

#include "bench.h"
#include "command.h"
#include "convert.h"
#include "devices.h"
#include "generate.h"
#include "inspect.h"
#include "ops.h"
#include "passes.h"
#include "plot.h"
#include "read_json.h"
#include "show.h"
#include "support/text.h"
#include "tensorgrad/error.h"
#include "train.h"
#include "verify.h"

namespace tensorgrad::tool {

namespace {

constexpr int kError = 1, kUsage = 2;

void complain(std::string_view message) { print_to(stderr, "tg: {}\n", message); }

// CLI11 reports an unknown command as an unexpected argument.
void check_command(const CLI::App& tg, const std::vector<std::string>& words) {
  if (words.empty() || words[0].starts_with('-')) return;
  std::vector<std::string> names;
  for (const CLI::App* command : tg.get_subcommands({})) names.push_back(command->get_name());
  if (words[0] == "test" || words[0] == "web" || words[0] == "webgpu")
    usage_error(
        "{0}: only the wrapper ./tg of a tensorgrad checkout has this command\n"
        "  hint: ./tg {0}, in the folder of the checkout",
        words[0]);
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

// The innermost command that was called: `text` of `train text`. Null if there is none.
const CLI::App* called_command(const CLI::App& tg) {
  const CLI::App* found = nullptr;
  for (auto called = tg.get_subcommands(); !called.empty(); called = found->get_subcommands())
    found = called.front();
  return found;
}

// "train text"
std::string words_to(const CLI::App& command) {
  std::string words = command.get_name();
  for (const CLI::App* above = command.get_parent(); above && above->get_parent();
       above = above->get_parent())
    words = above->get_name() + " " + words;
  return words;
}

// CLI11 counts the extra words; users want to see the first.
std::string about_first_extra(const CLI::App& tg, const CLI::App* command) {
  const auto extras = tg.remaining(true);
  const std::string first = extras.empty() ? "" : extras.front();
  const std::string who = command ? words_to(*command) : "tg";
  const std::string help = command ? fmt::format("tg {} --help", who) : "tg --help";
  if (!first.starts_with('-'))
    return fmt::format("{}: unexpected argument '{}'\n  hint: {}", who, first, help);
  std::vector<std::string> names;
  for (const CLI::Option* option : (command ? command : &tg)->get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  const std::string near = nearest_name(first.substr(0, first.find('=')), names);
  return fmt::format("{}: there is no option '{}'\n  hint: {}", who, first,
                     near.empty() ? help : fmt::format("did you mean {}?", near));
}

// The result of main(): the command's exit code, unless results were lost.
int ended(int exit_code) {
  if (output_error() == 0 || exit_code != 0) return exit_code;
  if (output_error() == EPIPE) return 128 + SIGPIPE;
  complain(fmt::format("the output could not be written: {}", std::strerror(output_error())));
  return kError;
}

// CLI11's text may lack its last newline.
void print_help(const std::string& text) {
  print_out("{}{}", text, text.ends_with('\n') ? "" : "\n");
}

// --help and --version
int show_help(const CLI::App& tg, const CLI::ParseError& asked) {
  std::ostringstream out, err;
  tg.exit(asked, out, err);
  print_help(out.str());
  return ended(0);
}

int run(int argc, char** argv) {
  int exit_code = 0;
  std::vector<std::string> words = words_of(argc, argv);
  CLI::App tg("Trains, shows and measures models with tensorgrad, a tensor compiler.", "tg");
  tg.set_version_flag("-v,--version", "tensorgrad " TENSORGRAD_VERSION);
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
  // Set last, because commands added later would inherit it.
  tg.footer(
      "tg COMMAND --help lists the options of a command.\n"
      "Examples:\n"
      "  tg train text book.txt                train a language model on your text\n"
      "  tg generate runs/book-gpt             generate text with it\n"
      "  tg plot runs/book-gpt                 draw its training curves\n"
      "  tg train addition                     train a transformer to add, in a minute");
  try {
    check_command(tg, words);
    std::reverse(words.begin(), words.end());  // CLI11 expects reverse order
    tg.parse(words);
    if (tg.get_subcommands().empty()) print_help(tg.help());
    return ended(exit_code);
  } catch (const CLI::ExtrasError&) {
    complain(about_first_extra(tg, called_command(tg)));
    return kUsage;
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return show_help(tg, e);
    const std::string message = e.what();
    const CLI::App* called = called_command(tg);
    const bool hinted = message.find("hint:") != message.npos;
    complain(hinted || !called
                 ? message
                 : fmt::format("{}\n  hint: tg {} --help", message, words_to(*called)));
    return kUsage;
  } catch (const std::filesystem::filesystem_error& e) {
    const std::string where = e.path1().empty() ? "the current folder" : e.path1().string();
    complain(fmt::format("{}: {}", where, e.code().message()));
    return kError;
  } catch (const Json::exception& e) {
    // JSON readers report bad files themselves, so this is a bug.
    complain(
        fmt::format("internal error: JSON: {}\n"
                    "  this is a bug in tensorgrad; please report it with the command",
                    reason(e)));
    return kError;
  } catch (const std::exception& e) {
    complain(e.what());
    return kError;
  }
}

}  // namespace

}  // namespace tensorgrad::tool

int main(int argc, char** argv) {
  tensorgrad::tool::open_standard_streams();
  // The software driver needs time quadratic in its vector width to compile shaders with barriers.
  setenv("LP_NATIVE_VECTOR_WIDTH", "128", 0);
  return tensorgrad::tool::run(argc, argv);
}
