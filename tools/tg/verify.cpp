#include "verify.h"

#include <cmath>
#include <memory>
#include <set>

#include "replay.h"
#include "support/text.h"

namespace tensorgrad::tool {

namespace {

const char* name(CaseKind kind) { return kind == CaseKind::op ? "op" : "train"; }

// JSON has no infinity: null means an error that cannot be measured.
Json json_number(double value) { return std::isfinite(value) ? Json(value) : Json(); }

struct Tally {
  int passed = 0, failed = 0, skipped = 0;
  double worst = 0;
  std::string where;                  // case of the worst error
  std::set<std::string> skipped_for;  // reasons

  void add(const ReferenceCase& reference, const Verdict& verdict) {
    ++(verdict.skipped ? skipped : verdict.ok ? passed : failed);
    if (verdict.skipped) skipped_for.insert(verdict.reason);
    if (!verdict.skipped && (where.empty() || verdict.worst > worst))
      worst = verdict.worst, where = reference.name;
  }
};

void report(const VerifyOptions& options, const ReferenceCase& reference, const Verdict& verdict) {
  const char* kind = name(reference.kind);
  if (options.json) {
    Json line{{"case", reference.name}, {"kind", kind}};
    if (verdict.skipped) {
      line["skipped"] = true;
    } else {
      line["worst"] = json_number(verdict.worst);
      line["ok"] = verdict.ok;
    }
    if (!verdict.reason.empty()) line["reason"] = verdict.reason;
    print_json(line);
  }
  for (const std::string& note : verdict.notes)
    print_to(stderr, "note  {}: {}\n", reference.name, note);
  if (verdict.skipped) {
    if (options.verbose) print_to(stderr, "skip  {}: {}\n", reference.name, verdict.reason);
  } else if (!verdict.ok || options.verbose) {
    print_to(people(options.json), "{}  {:<28} {:<6} worst {:<10.3g} {}\n",
             verdict.ok ? "ok  " : "FAIL", reference.name, kind, verdict.worst, verdict.reason);
  }
}

// The cases that match the filter, and the device that "auto" selects.
struct Work {
  std::vector<ReferenceCase> cases;
  std::string device;
  int threads = 0;
};

Work prepare(const VerifyOptions& options) try {
  Work work{.cases = read_reference_directory(options.directory)};
  std::erase_if(work.cases,
                [&](const ReferenceCase& c) { return !matches(options.filter, c.name); });
  const auto probe = compile_forward(
      std::vector<Param>{}, {.device = options.where.device, .threads = options.where.threads},
      [](const auto&, const Inputs&) { return zeros({1}); });
  work.device = probe.device();
  work.threads = probe.threads();
  return work;
} catch (const Error& error) {
  usage_error("{}", error.what());
}

}  // namespace

int verify(const VerifyOptions& options) {
  const Work work = prepare(options);
  if (work.cases.empty())
    usage_error("{}: no case is called '{}'", options.directory, options.filter);
  Tally tally;
  for (const ReferenceCase& reference : work.cases) {
    const Verdict verdict = replay(reference, options.where, tolerance_for(work.device));
    tally.add(reference, verdict);
    report(options, reference, verdict);
  }
  if (tally.skipped > 0 && !options.verbose)
    print_to(stderr, "skipped {}: {}; --verbose names them\n", tally.skipped,
             fmt::join(tally.skipped_for, ", "));
  if (options.json)
    print_json({{"event", "done"},
                {"passed", tally.passed},
                {"failed", tally.failed},
                {"skipped", tally.skipped}});
  print_to(people(options.json), "{} passed, {} failed, {} skipped on {}", tally.passed,
           tally.failed, tally.skipped, where_text(work.device, work.threads));
  if (!tally.where.empty())
    print_to(people(options.json), "; the worst error is {:.3g} of the tolerance: {}", tally.worst,
             tally.where);
  print_to(people(options.json), "\n");
  return tally.failed > 0 ? 1 : 0;
}

void add_verify_command(CLI::App& tg, int& exit_code) {
  auto options = std::make_shared<VerifyOptions>();
  CLI::App& command =
      *tg.add_subcommand("verify", "Replay reference values and compare the results");
  command
      .add_option("DIR", options->directory,
                  "Folder with ops.json and train_*.json and their .safetensors")
      ->required();
  add_device_options(command, options->where);
  command
      .add_option("--filter", options->filter,
                  "Run only cases whose name matches, such as conv2d_*")
      ->type_name("GLOB");
  add_json_flag(command, options->json);
  command.add_flag("--verbose", options->verbose,
                   "Print a line for every case, also if it passes or is skipped");
  command.footer("Example:\n  tg verify tests/fixtures --filter 'train_*' --verbose");
  command.callback([options, &exit_code] { exit_code = verify(*options); });
}

}  // namespace tensorgrad::tool
