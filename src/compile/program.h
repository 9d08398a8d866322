// Program: a traced function, its executables, and its inputs. TrainingProgram adds what a step
// needs beyond a run: rounds, learning rates, and what to do about a step that is not finite.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compile/driver.h"
#include "compile/executable.h"
#include "compile/pipeline.h"
#include "compile/run.h"
#include "tensorgrad/compile.h"

namespace tensorgrad::detail {

class Program : public Judge, public std::enable_shared_from_this<Program> {
 public:
  // Numbers the executables. A reported bad id carries this number, which tells whose graph its
  // node is in. The last two are compiled on demand, and not kept.
  enum class Kind : std::uint8_t {
    main,
    with_captures,
    accumulating,
    accumulating_captures,
    diagnosing,         // loss and gradients, with every value kept
    diagnosing_update,  // the parameters that the update would make
  };

  // Traces. Needs no device.
  Program(Driver& driver, Request request, const trace::Source& source, CompileCallback progress);

  // Compiles the executables that every run needs, and allocates the memory of the program.
  virtual std::vector<TaskStep> compile_steps();

  // Runs the program, or enqueues a run. Blocks while the device is full. Throws what is wrong with
  // the input, and failures that are not reported yet.
  std::shared_ptr<Run> run(const Feed& feed, const RunOptions& options);
  // Never blocks. The run reports all errors but those of the input.
  std::shared_ptr<Run> run_async(const Feed& feed, const RunOptions& options);
  void set_input(const std::string& name, const FeedValue& value);
  // Runs the program until `steps` runs of its plan were measured, each kernel alone. Throws what
  // is wrong with the input.
  Future<std::vector<DispatchTime>> profile_async(int steps, const Feed& feed);

  const std::vector<InputSpec>& inputs() const { return front_.request.trace.inputs; }
  // The outputs or the captures of the function.
  std::vector<TensorInfo> results(ir::Result::Kind kind) const;
  double compile_ms() const { return compile_ms_; }
  Counts counts() const;
  std::vector<PlannedKernel> plan() const;
  std::string show(std::string_view stage) const;
  std::vector<StageTime> stage_times() const;

  std::shared_ptr<Failure> judge(const Status& status, std::int64_t step,
                                 const std::shared_ptr<Failure>& failure) override;

 protected:
  // What a run does when it is submitted, in this order. before_submit() may throw what keeps it
  // from running.
  virtual Kind next_kind(bool captures) const;
  virtual void before_submit();
  virtual std::int64_t after_submit();  // returns the number of the step, or -1
  // The runs that it takes, from the end of the queue on, until so many were of kind `main`.
  virtual std::int64_t runs_until(std::int64_t main) const { return main; }

  // A compiled executable, and a larger buffer for inputs if it needs one.
  struct Built {
    std::shared_ptr<Executable> executable;
    schedule::Layout layout;  // of the inputs
    std::shared_ptr<runtime::Buffer> inputs;
  };
  Completion<Built> build(Kind kind);
  // A step of compile_steps().
  TaskStep compile_step(Kind kind);
  const std::shared_ptr<Executable>& executable(Kind kind) const {
    return executables_[usize(kind)];
  }
  // The memory that an executable of this program uses.
  runtime::Spaces spaces_of(const Executable& executable) const;
  void feed_scalar(const char* name, float value);
  void feed_random(std::int64_t step);  // what random numbers depend on
  std::exception_ptr error_of(const runtime::IndexFailure& bad, std::string_view prefix) const;
  Completion<Done> read_faults(const std::shared_ptr<Status>& status) const;
  void preserve_status();  // of the latest runs, before the bad ids change
  void clear_faults();
  // Throws failures that are not reported yet.
  void raise_failures();
  // Starts with a new failure, after the last one was reported or forgotten.
  void forget_failure();
  const std::shared_ptr<Failure>& failure() const { return failure_; }

  Driver& driver_;

 private:
  // A value of a run. Nobody owns it while the caller of run() waits.
  using Bytes = std::shared_ptr<const std::vector<std::byte>>;
  struct Fed {
    std::string_view name;
    std::int64_t offset = 0;  // in the buffer of the inputs
    std::span<const std::byte> bytes;
    Bytes owner;
    bool held = false;  // by set_input()
  };
  // A run on its way to the device.
  struct Submission {
    std::vector<Fed> inputs;
    std::shared_ptr<Run> run;
    std::optional<Completion<Built>> building;
    std::shared_ptr<void> counted;  // as a step, while it is queued
    // Measures the run: the kernels of its executable, each with a dispatch of its own.
    std::shared_ptr<runtime::Loaded> apart;
    Completion<std::vector<runtime::Device::Time>> times;  // once it is submitted

    void own();  // copies the values of the feed
  };
  class Profile;

  Submission prepare(const Feed& feed, const RunOptions& options);
  void check_feed(const Feed& feed) const;
  std::vector<Fed> values_of(const Feed& feed) const;
  // Returns true when it is submitted, or has failed.
  bool submit(Submission& submission);
  void submit_apart(Submission& submission, const Executable& executable);
  void enqueue(const std::shared_ptr<Submission>& submission);
  void install(Kind kind, const Built& built);
  void upload(const std::vector<Fed>& inputs);

  std::int64_t runs_ = 0;  // enqueued
  Compilation front_;      // the stages that all executables share, to `differentiate`
  CompileCallback progress_;
  schedule::Layout layout_;  // of the inputs
  std::shared_ptr<runtime::Buffer> inputs_;
  std::int64_t capacity_ = 0;                // of inputs_, in elements
  std::shared_ptr<runtime::Buffer> faults_;  // bad ids; while it holds one, no executable changes
                                             // parameters or state
  std::array<std::shared_ptr<Executable>, 4> executables_;
  std::shared_ptr<Failure> failure_ = std::make_shared<Failure>();
  double compile_ms_ = 0;
  std::chrono::steady_clock::time_point started_;

  std::map<std::string, Bytes, std::less<>> held_;            // inputs fixed by set_input()
  std::map<std::string, Bytes, std::less<>> uploaded_;        // which of them the buffer holds
  std::map<std::string, std::int32_t, std::less<>> scalars_;  // that the buffer holds, as bits
};

}  // namespace tensorgrad::detail
