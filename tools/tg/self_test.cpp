#include "self_test.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include "checks/check_row.h"
#include "command.h"
#include "runtime/blocking.h"
#include "support/text.h"
#include "tensorgrad/device.h"
#include "tensorgrad/error.h"

namespace tensorgrad::tool {

namespace {

using Clock = std::chrono::steady_clock;
using checks::RowOutcome;
using checks::Sample;

// No row starts after kBudget; running rows may finish until kPatience. A software driver can take
// 20 s to compile a single shader.
constexpr std::chrono::seconds kBudget{50}, kPatience{57};
// A row that takes longer than this hangs.
constexpr std::chrono::seconds kLongest{25};
// Each thread opens its own device, so that drivers compile kernels in parallel. The interpreter,
// which takes half the time on a fast GPU, runs on all threads.
constexpr unsigned kMostThreads = 8;
constexpr std::size_t kMostShown = 20;  // failures listed for people
constexpr std::size_t kLine = 60;       // width of the progress line

struct Failure {
  std::string row, text;
  RowOutcome outcome;
};

struct Tally {
  std::size_t passed = 0;
  std::vector<Failure> failures;
  std::set<std::string> ops;
  double worst = 0;
  std::string worst_row;

  // Rows that were still running at kPatience. Their threads still run and use the devices.
  std::vector<std::string> unfinished;
  bool hangs = false;  // one of them has exceeded kLongest

  std::size_t rows() const { return passed + failures.size(); }
};

// Description of the device for people: "NVIDIA H200, discrete GPU, vulkan".
std::string description_of(const std::string& device) {
  for (const DeviceInfo& info : devices())
    if (info.name == device) return info.description;
  return device;
}

class SelfTest {
 public:
  SelfTest(const SelfTestOptions& options, std::vector<const Sample*> rows, std::string device)
      : options_(options), rows_(std::move(rows)), device_(std::move(device)) {}

  // Runs the rows on several threads, and shows progress from this thread.
  Tally run() {
    const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
    std::vector<std::thread> threads;
    const unsigned count = std::min(cores, kMostThreads);
    running_.resize(count);
    for (unsigned i = 0; i < count; ++i) threads.emplace_back([this, i] { work(running_[i]); });
    const bool all_ended = watch(threads.size());
    for (std::thread& thread : threads) all_ended ? thread.join() : thread.detach();
    std::lock_guard lock(mutex_);
    if (broken_ && tally_.rows() == 0 && all_ended) std::rethrow_exception(broken_);
    for (const Running& now : running_) {
      if (!now.row) continue;
      tally_.unfinished.push_back(now.row->name());
      tally_.hangs = tally_.hangs || Clock::now() - now.since > kLongest;
    }
    return tally_;
  }

  // Whether a thread could not reopen its device.
  bool lost_device() {
    std::lock_guard lock(mutex_);
    return broken_ != nullptr;
  }

  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  // The current work of a thread.
  struct Running {
    const Sample* row = nullptr;
    Clock::time_point since;
    std::int64_t shaders = 0;  // shaders that the driver has yet to compile
  };

  bool time_is_left() const { return options_.all || Clock::now() - start_ < kBudget; }

  void work(Running& now) {
    try {
      auto device = runtime::blocking::open_own_device(device_, 1);
      for (std::size_t i; time_is_left() && (i = next_++) < rows_.size();) {
        const Sample& row = *rows_[i];
        begin(now, &row);
        try {
          const RowOutcome outcome = checks::check_row(
              *device, row, [&](const CompileProgress& progress) { note_shaders(now, progress); });
          note(row, outcome, outcome.text());
        } catch (const std::exception& error) {
          RowOutcome refused;
          refused.worst = HUGE_VAL;
          note(row, refused, error.what());
          device = runtime::blocking::open_own_device(device_, 1);  // the old one may be lost
        }
        begin(now, nullptr);
      }
    } catch (...) {  // no device available: the other threads continue
      std::lock_guard lock(mutex_);
      broken_ = std::current_exception();
    }
    std::lock_guard lock(mutex_);
    ++ended_;
    changed_.notify_one();
  }

  void begin(Running& now, const Sample* row) {
    std::lock_guard lock(mutex_);
    now = {row, Clock::now()};
  }

  void note_shaders(Running& now, const CompileProgress& progress) {
    if (progress.work == CompileWork::kernels) return;  // kernels of a CPU compile quickly
    std::lock_guard lock(mutex_);
    now.shaders = progress.total - progress.done;
  }

  void note(const Sample& row, const RowOutcome& outcome, const std::string& text) {
    std::lock_guard lock(mutex_);
    tally_.ops.insert(row.op);
    if (text.empty())
      ++tally_.passed;
    else
      tally_.failures.push_back({row.name(), text, outcome});
    if (tally_.worst_row.empty() || outcome.worst > tally_.worst)
      tally_.worst = outcome.worst, tally_.worst_row = row.name();
  }

  // Blocks until all threads have ended or kPatience is over; returns whether all ended. Updates
  // one line on a terminal; prints a line every five seconds elsewhere.
  bool watch(std::size_t threads) {
    std::FILE* out = people(options_.json);
    const bool in_place = is_terminal(out);
    auto shown = Clock::now();
    const auto pause = in_place ? std::chrono::milliseconds(200) : std::chrono::seconds(5);
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, std::chrono::milliseconds(200),
                              [&] { return ended_ == threads; })) {
      if (!options_.all && Clock::now() - start_ > kPatience) break;
      if (Clock::now() - shown < pause) continue;
      shown = Clock::now();
      const std::string line = progress_line();
      in_place ? print_to(out, "\r{:<{}}", line, kLine) : print_to(out, "{}\n", line);
    }
    if (in_place) print_to(out, "\r{:{}}\r", "", kLine);
    return threads == ended_;
  }

  // "row 12 of 2000, 0 failed, compiling 3 shaders, 15 s"
  std::string progress_line() const {
    std::int64_t shaders = 0;
    for (const Running& now : running_) shaders += now.shaders;
    const std::string compiling =
        shaders > 0 ? fmt::format("compiling {}, ", counted(shaders, "shader")) : "";
    return fmt::format("row {} of {}, {} failed, {}{:.0f} s", tally_.rows(), rows_.size(),
                       tally_.failures.size(), compiling, seconds());
  }

  const SelfTestOptions& options_;
  const std::vector<const Sample*> rows_;
  const std::string device_;
  const Clock::time_point start_ = Clock::now();
  std::atomic<std::size_t> next_ = 0;
  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  Tally tally_;
  std::size_t ended_ = 0;         // number of threads that ended
  std::vector<Running> running_;  // by thread
  std::exception_ptr broken_;
};

// JSON has no infinity: null means an error that cannot be measured.
Json json_number(double value) { return std::isfinite(value) ? Json(value) : Json(); }

void print_failure_lines(const Failure& failure) {
  if (failure.outcome.wrong.empty())
    print_json({{"event", "failure"}, {"row", failure.row}, {"message", failure.text}});
  for (const checks::Wrong& wrong : failure.outcome.wrong)
    print_json({{"event", "failure"},
                {"row", failure.row},
                {"result", wrong.result},
                {"type", wrong.first.type.text()},
                {"element", wrong.first.element},
                {"expected", json_number(wrong.first.want)},
                {"got", json_number(wrong.first.got)},
                {"error", json_number(wrong.first.error)},
                {"allowed", wrong.first.allowed},
                {"wrong_elements", wrong.elements}});
}

void print_failures(const std::vector<Failure>& failures, bool json) {
  std::FILE* out = people(json);
  for (std::size_t i = 0; i < failures.size(); ++i) {
    if (json) print_failure_lines(failures[i]);
    if (i >= kMostShown) continue;
    print_to(out, "FAIL  {}\n", failures[i].row);
    for (const std::string& line : split(failures[i].text, '\n')) print_to(out, "      {}\n", line);
  }
  if (failures.size() > kMostShown)
    print_to(out, "      and {} more rows; --json lists them all\n", failures.size() - kMostShown);
}

std::vector<const Sample*> chosen_rows(const std::string& pattern) {
  std::vector<const Sample*> rows = checks::rows_by_turns();
  std::erase_if(rows, [&](const Sample* row) { return !matches(pattern, row->name()); });
  if (rows.empty())
    usage_error("--rows: no row is called '{}'\n  hint: 'softmax*', '*_long_*'", pattern);
  return rows;
}

std::size_t op_count(const std::vector<const Sample*>& rows) {
  std::set<std::string> ops;
  for (const Sample* row : rows) ops.insert(row->op);
  return ops.size();
}

}  // namespace

int self_test(const SelfTestOptions& options) {
  const std::vector<const Sample*> rows = chosen_rows(options.rows);
  const std::string device = runtime::blocking::open_device(options.device, 0)->name();
  const std::string description = description_of(device);
  std::FILE* out = people(options.json);
  print_to(out, "{}: {}\n", device, description);

  const auto test = std::make_unique<SelfTest>(options, rows, device);
  Tally done = test->run();
  const double seconds = test->seconds();
  std::sort(done.failures.begin(), done.failures.end(),
            [](const Failure& a, const Failure& b) { return a.row < b.row; });
  print_failures(done.failures, options.json);
  print_to(out,
           "{} passed, {} failed in {:.1f} s; the worst error is {:.2g} of the tolerance: {}\n",
           done.passed, done.failures.size(), seconds, done.worst, done.worst_row);
  if (done.rows() < rows.size())
    print_to(out, "ran {} of {} rows, of {} of {} ops{}\n", done.rows(), rows.size(),
             done.ops.size(), op_count(rows),
             done.hangs ? fmt::format("; the device may hang, these rows did not finish: {}",
                                      join(done.unfinished, ", "))
             : test->lost_device() ? "; the device could not be opened again"
                                   : "; --all runs the rest");
  if (options.json)
    print_json({{"event", "done"},
                {"device", device},
                {"description", description},
                {"passed", done.passed},
                {"failed", done.failures.size()},
                {"rows", rows.size()},
                {"unfinished", done.unfinished},
                {"hangs", done.hangs},
                {"worst", json_number(done.worst)},
                {"worst_row", done.worst_row},
                {"seconds", rounded(seconds, 2)}});
  const bool whole = !done.hangs && !test->lost_device();
  const int exit_code = done.failures.empty() && done.rows() > 0 && whole ? 0 : 1;
  if (!done.unfinished.empty()) {  // do not destroy what their threads use
    std::fflush(nullptr);
    std::_Exit(exit_code);
  }
  return exit_code;
}

}  // namespace tensorgrad::tool
