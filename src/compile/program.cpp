#include "compile/program.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "compile/memory.h"
#include "ir/primitive.h"
#include "support/fail.h"
#include "support/integers.h"
#include "support/text.h"
#include "support/wait.h"

namespace tensorgrad::detail {

using ir::Result;
using ir::Space;

namespace {

using Clock = std::chrono::steady_clock;

bool is_diagnosing(Program::Kind kind) {
  return kind == Program::Kind::diagnosing || kind == Program::Kind::diagnosing_update;
}

bool has_captures(Program::Kind kind) {
  return kind == Program::Kind::with_captures || kind == Program::Kind::accumulating_captures;
}

// The update that an executable of a training program makes.
std::optional<optim::Purpose> purpose_of(Program::Kind kind) {
  switch (kind) {
    case Program::Kind::main:
    case Program::Kind::with_captures:
      return optim::Purpose::apply;
    case Program::Kind::accumulating:
    case Program::Kind::accumulating_captures:
      return optim::Purpose::accumulate;
    case Program::Kind::diagnosing:
      return {};
    case Program::Kind::diagnosing_update:
      return optim::Purpose::candidate;
  }
  return {};
}

}  // namespace

Program::Program(Driver& driver, Request request, const trace::Source& source,
                 CompileCallback progress)
    : driver_(driver), progress_(std::move(progress)), started_(Clock::now()) {
  const auto front = std::make_shared<Compilation>();
  front->request = std::move(request);
  front->source = &source;
  run_stages(front, Stage::Id::trace, Stage::Id::differentiate).get();
  front->source = nullptr;
  front_ = std::move(*front);
  for (const InputSpec& spec : inputs()) layout_.place(spec.name, {spec.dtype, spec.shape});
}

std::vector<TensorInfo> Program::results(Result::Kind kind) const {
  std::vector<TensorInfo> out;
  for (const Result& result : front_.traced->results) {
    const ir::Type& type = (*front_.traced)[result.node].type;
    if (result.kind == kind) out.push_back({result.name, type.shape, type.dtype});
  }
  return out;
}

// ---- compiling

std::vector<TaskStep> Program::compile_steps() {
  const auto faults = [this, self = shared_from_this()] {
    return driver_.device()
        .allocate(runtime::kFaultElements, "bad ids")
        .map([self](const std::shared_ptr<runtime::Buffer>& buffer) {
          self->faults_ = buffer;
          return Done{};
        });
  };
  const auto done = [this, self = shared_from_this()] {
    const std::chrono::duration<double, std::milli> took = Clock::now() - started_;
    compile_ms_ = took.count();
    return Completion<Done>(Done{});
  };
  return {faults, compile_step(Kind::main), done};
}

TaskStep Program::compile_step(Kind kind) {
  return [self = shared_from_this(), kind] {
    return self->build(kind).map([self, kind](const Built& built) {
      self->install(kind, built);
      return Done{};
    });
  };
}

// The stages after those that all executables of a program share.
Completion<Program::Built> Program::build(Kind kind) {
  Compilation made = front_;
  made.captures = has_captures(kind);
  if (made.request.trains()) made.purpose = purpose_of(kind);
  made.tag = static_cast<int>(kind);
  made.device = &driver_.device();
  made.parameters = &driver_.state().layout().layout;
  made.state = &driver_.state().optimizer_layout();
  if (is_diagnosing(kind))
    made.request.without = {"fuse", "reuse"};  // keeps every value
  else
    made.progress = progress_;
  // A capture may read an input that nothing else read; all declared inputs have a place already.
  // If memory is lacking, the program stays as it was.
  const auto after = std::make_shared<schedule::Layout>(layout_);
  made.inputs = after.get();
  const auto made_executable = make_executable(std::move(made));
  const bool grows = after->elements() != capacity_ || !inputs_;
  return made_executable.map(
      [device = &driver_.device(), after, grows](const std::shared_ptr<Executable>& executable) {
        if (!grows) return Completion<Built>(Built{executable, *after, nullptr});
        return allocate(*device, Space::inputs, after->elements(), &executable->made.plan,
                        [executable, after] { return tenants(*after); })
            .map([executable, after](const std::shared_ptr<runtime::Buffer>& buffer) {
              return Built{executable, *after, buffer};
            });
      });
}

void Program::install(Kind kind, const Built& built) {
  layout_ = built.layout;
  if (built.inputs) {
    inputs_ = built.inputs;
    capacity_ = layout_.elements();
    scalars_.clear();
    uploaded_.clear();
    for (const auto& executable : executables_)
      if (executable) executable->spaces = {};
  }
  executables_[usize(kind)] = built.executable;
}

runtime::Spaces Program::spaces_of(const Executable& executable) const {
  runtime::Spaces out;
  driver_.state().bind(out);
  out[usize(Space::inputs)] = inputs_;
  out[usize(Space::outputs)] = executable.outputs;
  for (int i = 0; i < ir::kArenas; ++i) out[usize(ir::arena(i))] = executable.arenas[usize(i)];
  out.faults = faults_;
  return out;
}

// ---- running

void Program::Submission::own() {
  for (Fed& fed : inputs)
    if (!fed.owner) {
      fed.owner =
          std::make_shared<const std::vector<std::byte>>(fed.bytes.begin(), fed.bytes.end());
      fed.bytes = *fed.owner;
    }
}

Program::Submission Program::prepare(const Feed& feed, const RunOptions& options) {
  std::vector<Fed> values = values_of(feed);
  if (options.captures && results(Result::Kind::capture).empty())
    user_error(
        "captures: this program has none\n  hint: capture(\"name\", tensor) in the traced function "
        "names one");
  Submission out;
  out.run = std::make_shared<Run>(shared_from_this(), options.captures);
  out.inputs = std::move(values);
  return out;
}

bool Program::submit(Submission& submission) {
  Run& run = *submission.run;
  if (run.state() != Run::State::queued) return true;  // nobody waits for it any more
  for (const auto& failure : {failure_, driver_.training_failure})
    if (failure && failure->state == Failure::State::known) {
      run.fail_with(failure);
      return true;
    }
  const Kind kind = next_kind(run.with_captures());
  std::shared_ptr<Executable>& found = executables_[usize(kind)];
  if (!found) {
    if (!submission.building) submission.building = build(kind);
    if (!submission.building->ready()) return false;
    install(kind, submission.building->get());
  }
  const std::shared_ptr<Executable> executable = found;
  if (!executable->spaces.faults) executable->spaces = spaces_of(*executable);
  runtime::Device& device = driver_.device();
  if (device.full()) return false;
  if (const auto earlier = executable->latest.lock(); earlier && !earlier->preserve()) return false;
  preserve_status();  // of the others: the bad ids of all runs are in one place
  driver_.state().initialise();
  before_submit();
  upload(submission.inputs);
  if (submission.apart)
    submit_apart(submission, *executable);
  else
    device.submit(executable->made.loaded, executable->spaces);
  run.submitted(device, executable, after_submit(), failure_);
  if (device.immediate()) driver_.ask(submission.run, Run::Wanted::status);
  return true;
}

void Program::raise_failures() {
  for (const auto& failure : {failure_, driver_.training_failure})
    if (failure && failure->state == Failure::State::known) {
      failure->report();
      std::rethrow_exception(failure->error);
    }
}

std::shared_ptr<Run> Program::run(const Feed& feed, const RunOptions& options) {
  std::unique_lock lock(driver_.turn());
  if (const auto late = driver_.take_late()) std::rethrow_exception(late);
  raise_failures();
  auto submission = std::make_shared<Submission>(prepare(feed, options));
  const std::shared_ptr<Run> run = submission->run;
  if (!driver_.queue().empty() || !submit(*submission)) {
    enqueue(submission);
    driver_.advance();
    lock.unlock();
    try {
      wait_until(
          driver_,
          [&] {
            const std::lock_guard again(driver_.turn());
            return run->state() != Run::State::queued;
          },
          "an earlier run");
    } catch (...) {  // the values of the feed are about to go
      const std::lock_guard again(driver_.turn());
      run->fail_with(std::current_exception());
      submission.reset();
      throw;
    }
    lock.lock();
  }
  driver_.advance();
  const std::shared_ptr<Failure>& failure = run->failure();
  const bool at_once =
      failure && failure->kind == Failure::Kind::bad_id && driver_.device().immediate();
  if (run->state() == Run::State::failed && (at_once || !run->was_submitted())) {
    if (failure && failure->error == run->error()) failure->report();
    std::rethrow_exception(run->error());
  }
  return run;
}

std::shared_ptr<Run> Program::run_async(const Feed& feed, const RunOptions& options) {
  const std::lock_guard lock(driver_.turn());
  auto submission = std::make_shared<Submission>(prepare(feed, options));
  const std::shared_ptr<Run> run = submission->run;
  if (const auto late = driver_.take_late()) {
    run->fail_with(late);
    return run;
  }
  bool submitted = false;
  if (driver_.queue().empty()) try {
      submitted = submit(*submission);
    } catch (...) {
      run->fail_with(std::current_exception());
      submitted = true;
    }
  if (!submitted) {
    submission->own();
    enqueue(submission);
  }
  driver_.advance();
  return run;
}

void Program::enqueue(const std::shared_ptr<Submission>& submission) {
  if (front_.request.trains()) submission->counted = driver_.queued_step();
  driver_.queue().add(
      {[self = shared_from_this(), submission] { return self->submit(*submission); },
       [run = submission->run](const std::exception_ptr& error) { run->fail_with(error); }});
}

Program::Kind Program::next_kind(bool captures) const {
  return captures ? Kind::with_captures : Kind::main;
}

namespace {

float bits_of(std::int64_t value) {
  const auto number = static_cast<std::int32_t>(value);
  float bits;
  std::memcpy(&bits, &number, sizeof bits);
  return bits;
}

}  // namespace

void Program::before_submit() { feed_random(runs_); }

std::int64_t Program::after_submit() {
  ++runs_;
  return -1;
}

void Program::feed_random(std::int64_t step) {
  feed_scalar(ops::Builder::kSeedInput, bits_of(driver_.state().seed()));
  feed_scalar(ops::Builder::kStepInput, bits_of(step));
}

// ---- failures

Completion<Done> Program::read_faults(const std::shared_ptr<Status>& status) const {
  return driver_.device().read(*faults_, 0, status->faults, status);
}

void Program::preserve_status() {
  for (const auto& each : executables_)
    if (const auto latest = each ? each->latest.lock() : nullptr) latest->preserve_status();
}

void Program::clear_faults() {
  preserve_status();
  const std::array<std::int32_t, runtime::kFaultElements> none{};
  driver_.device().upload(*faults_, 0, std::as_bytes(std::span(none)));
}

void Program::forget_failure() {
  failure_->on_report = {};
  failure_ = std::make_shared<Failure>();
  clear_faults();
}

std::shared_ptr<Failure> Program::judge(const Status& status, std::int64_t,
                                        const std::shared_ptr<Failure>& failure) {
  const auto bad = runtime::Device::failure_in(status.faults);
  if (!bad) return nullptr;
  if (failure->state != Failure::State::none) return failure;  // another run has found it
  failure->found(Failure::Kind::bad_id);
  failure->set(error_of(*bad, ""));
  if (failure == failure_)
    failure->on_report = [program = weak_from_this()] {
      if (const auto self = program.lock()) self->forget_failure();
    };
  return failure;
}

namespace {

// Exclusive upper bound of the ids of a node.
std::int64_t id_extent(const ir::Graph& graph, ir::NodeId id) {
  const ir::Node& node = graph[id];
  switch (node.op->core) {
    case ir::Core::gather:
      return graph[node.inputs[0]].type.shape[0];
    case ir::Core::take:
      return graph[node.inputs[0]].type.shape[node.as<ir::AxisAttrs>().axis];
    case ir::Core::segment_sum:
      return node.as<ir::RowsAttrs>().rows;
    case ir::Core::scatter_add:
      return node.as<ir::ScatterAttrs>().size;
    default:
      return node.as<ir::CheckAttrs>().size;
  }
}

std::string broken_rule(const ir::Graph& graph, const runtime::IndexFailure& failure) {
  if (const std::string_view own = graph[failure.node].op->broken; !own.empty())
    return std::string(own);
  const std::int64_t extent = id_extent(graph, failure.node);
  const std::string range =
      extent > 0 ? fmt::format("ids are 0 to {}", extent - 1) : "there are none";
  return fmt::format("id {} is out of range: {}", failure.value, range);
}

}  // namespace

std::exception_ptr Program::error_of(const runtime::IndexFailure& bad,
                                     std::string_view prefix) const {
  const auto& executable =
      bad.tag >= 0 && usize(bad.tag) < executables_.size() ? executables_[usize(bad.tag)] : nullptr;
  if (!executable) internal_error("a bad id was reported for an unknown program: {}", bad.value);
  const ir::Graph& graph = executable->made.plan.graph;
  const ir::Node& node = graph[bad.node];
  const ir::CallSite& site = graph.sites[usize(node.site)];
  const std::string op = site.composite.empty() ? std::string(node.op->name) : site.composite;
  return std::make_exception_ptr(
      UserError(std::string(prefix) +
                user_message(op, broken_rule(graph, bad), "", site.scope, site.file, site.line)));
}

}  // namespace tensorgrad::detail
