// Session: the parameters of a model on a device, and everything that its programs share. Program:
// one traced function with all its stages, from trace to run.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "compile/memory.h"
#include "compile/outcome.h"
#include "compile/parameters.h"
#include "compile/pipeline.h"
#include "support/integers.h"
#include "tensorgrad/compile.h"

namespace tensorgrad::detail {

// A compiled and loaded graph with its own memory for results and temporaries.
struct Executable {
  Compilation made;
  std::shared_ptr<runtime::Buffer> outputs;
  std::array<std::shared_ptr<runtime::Buffer>, ir::kArenas> arenas;
  std::weak_ptr<Outcome> latest;  // outcome of the run that wrote `outputs`
};

class Program {
 public:
  // The outputs or the captures of the traced function.
  std::vector<TensorInfo> results(ir::Result::Kind kind) const;

  bool training = false;
  std::vector<InputSpec> specs;
  CompileCallback progress;
  Compilation front;  // the stages that all executables share, to `differentiate`
  schedule::Layout inputs;
  std::shared_ptr<runtime::Buffer> input_buffer;
  std::int64_t input_capacity = 0;  // in elements
  std::unique_ptr<Executable> main, with_captures, accumulating, accumulating_captures;
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
  Executable* executable(Kind kind) const {
    Executable* const all[] = {
        main.get(), with_captures.get(), accumulating.get(), accumulating_captures.get(), nullptr,
        nullptr};
    return all[usize(kind)];
  }
  // Bad ids. While it holds one, no executable changes parameters or state.
  std::shared_ptr<runtime::Buffer> faults;
  double compile_ms = 0;
  std::int64_t runs = 0;
  std::map<std::string, std::int32_t> scalars;  // values uploaded last

  struct Held {
    std::vector<std::byte> bytes;
    bool current = false;  // the input buffer holds them
  };
  std::map<std::string, Held> held;  // inputs fixed by set_input()
};

class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(const FoundParams& params, const std::string& device, int threads, std::uint32_t seed);

  std::shared_ptr<Program> build_training(const TrainingOptions& options, const Trace& trace);
  std::shared_ptr<Program> build_forward(const AttachOptions& options, const Trace& trace);

  std::shared_ptr<Outcome> step(const std::shared_ptr<Program>& program, const Feed& feed,
                                const RunOptions& options);
  std::shared_ptr<Outcome> run(const std::shared_ptr<Program>& program, const Feed& feed,
                               const RunOptions& options);
  std::vector<DispatchTime> profile(const std::shared_ptr<Program>& program, int steps);
  // Blocks until all steps are done; throws their errors.
  void wait(Program& program);
  void set_input(Program& program, const std::string& name, const FeedValue& value);

  std::vector<ParamInfo> parameters() const;
  NamedArrays download(ir::Space space);
  void upload(const NamedArrays& values, Upload mode);
  NamedArrays optimizer_state();
  void upload_optimizer_state(const NamedArrays& state);
  // Writes both, or neither if one of them is refused. Downloads nothing.
  void restore(const NamedArrays& parameters, const NamedArrays& state);
  std::string fingerprint();
  void reset(Program& program, std::optional<std::uint32_t> seed);
  void reset_optimizer(Program& program);
  void set_lr(Schedule lr);
  double next_lr() const;
  std::int64_t steps() const;
  Counts counts(const Program& program) const;
  std::vector<PlannedKernel> plan(const Program& program) const;
  std::string show(const Program& program, std::string_view stage) const;
  std::vector<StageTime> stage_times(const Program& program) const;
  const runtime::Device& device() const { return *device_; }

  // Throws the error of an earlier step, once.
  void raise_pending();
  void acknowledge(std::int64_t step);

 private:
  friend struct Outcome;
  std::unique_ptr<Executable> compile(Program& program, Program::Kind kind);
  void run_front(Program& program, const Trace& function);
  Executable& choose(Program& program, bool captures, bool accumulating);
  // Allocates device memory. If that fails, the error lists `tenants`; `plan` is null before there
  // is one.
  std::shared_ptr<runtime::Buffer> allocate(
      ir::Space space, std::int64_t elements, const schedule::Plan* plan,
      const std::function<std::vector<Tenant>()>& tenants) const;
  // Chooses where the parameters lie, and allocates their memory.
  void place_parameters();
  // Draws the initial values of parameters that were not uploaded. A model whose weights come from
  // a file never pays for them.
  void initialise();
  // Throw a UserError for what upload() and upload_optimizer_state() refuse, before anything is
  // written.
  void check_parameters(const NamedArrays& values, Upload mode) const;
  void check_optimizer_state(const NamedArrays& state) const;
  void write_parameters(const NamedArrays& values);
  void write_optimizer_state(const NamedArrays& state);
  // The entries of optimizer_state() by name, without the start of the schedule.
  std::map<std::string, ir::Type> state_types() const;
  void allocate_inputs(Program& program) const;
  void grow_state(const Program& program);
  void check_feed(const Program& program, const Feed& feed) const;
  void feed_inputs(Program& program, const Feed& feed);
  void feed_scalar(Program& program, const char* name, float value);
  void submit(Program& program, Executable& executable);
  std::shared_ptr<Outcome> expect_outcome(const std::shared_ptr<Program>& program,
                                          Executable& executable, bool captures);
  void raise_failure(Program& program, const runtime::IndexFailure& failure, std::int64_t step);
  std::optional<runtime::IndexFailure> failure_of(const Program& program) const;
  std::string note_failure(Program& program, std::int64_t step);
  void notice();
  void drop_stale_sums();
  void write_counter(const char* name, std::int64_t value);
  std::optional<std::int64_t> read_counter(const char* name) const;
  std::string diagnose(Program& program);
  std::string diagnose_update(Program& program);
  // `what` names the array in the error if the host lacks memory.
  Array read_array(const runtime::Buffer& buffer, std::int64_t offset, const ir::Type& type,
                   std::string_view what) const;
  runtime::Spaces spaces(Program& program, Executable& executable) const;
  std::int64_t next_update() const { return steps_ / accumulate_ + 1; }
  double next_rate() const { return lr_.at(std::max<std::int64_t>(1, next_update() - lr_start_)); }

  std::uint64_t id_;
  std::shared_ptr<runtime::Device> device_;
  Parameters params_;
  std::vector<bool> has_values_;  // by parameter; false: initial values are drawn at the first use
  ParameterLayout layout_;
  schedule::Layout state_layout_;
  std::shared_ptr<runtime::Buffer> param_buffer_, gradient_buffer_, state_buffer_;
  std::int64_t state_capacity_ = 0;
  std::uint32_t seed_ = 0;
  std::int64_t steps_ = 0;
  int accumulate_ = 1;
  bool stale_sums_ = false;  // a failed round or an upload may have left sums of gradients
  bool updates_ = true;      // false: NoOptimizer
  Schedule lr_ = 0.0;
  std::int64_t lr_start_ = 0;  // updates made before lr_ was set
  NonFinite non_finite_ = NonFinite::ignore;
  std::string pending_;  // error not yet reported to the user
  std::int64_t pending_step_ = -1;
  // Guards everything above, and outcomes, which keep it alive when the session is gone.
  std::shared_ptr<std::recursive_mutex> mutex_ = std::make_shared<std::recursive_mutex>();
};

}  // namespace tensorgrad::detail
