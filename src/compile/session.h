// Session: the parameters of a model on a device, and everything that programs over them share.
// Program: one traced function, taken down the line from trace to run.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "compile/memory.h"
#include "compile/outcome.h"
#include "optim/update.h"
#include "runtime/device.h"
#include "schedule/plan.h"
#include "tensorgrad/compile.h"
#include "trace/trace.h"

namespace tensorgrad::detail {

// A graph compiled and loaded, with memory of its own for results and temporaries.
struct Variant {
  schedule::Plan plan;
  std::vector<ir::Kernel> kernels;
  std::unique_ptr<runtime::Loaded> loaded;
  std::unique_ptr<runtime::Buffer> outputs;
  std::array<std::unique_ptr<runtime::Buffer>, ir::kArenas> arenas;
  std::weak_ptr<Outcome> latest;  // of the run that wrote `outputs`
};

struct ParamRecord {
  std::string name;
  Shape shape;
  Init init;
  bool decay = false, frozen = false;
};

class Program {
 public:
  // The stages of the line that this program has, in order.
  struct Stages {
    ir::Graph trace, differentiate, update, simplify;
    ir::Graph accumulate;  // of a step that only accumulates
    ir::Graph recognised;  // of a forward program: the trace with ops in place of what is written out
  };

  bool training = false;
  std::vector<InputSpec> specs;
  std::vector<std::string> without;  // passes left out
  Stages stages;
  schedule::Layout inputs;
  std::unique_ptr<runtime::Buffer> input_buffer;
  std::int64_t input_capacity = 0;  // elements of it
  std::unique_ptr<Variant> main, with_captures, accumulating, accumulating_captures;
  // The same by number, which tells whose node a bad id met; `diagnosing` is made when it is needed.
  enum class Kind : std::uint8_t { main, with_captures, accumulating, accumulating_captures, diagnosing };
  Variant* variant(Kind kind) const {
    Variant* const all[] = {main.get(), with_captures.get(), accumulating.get(), accumulating_captures.get(), nullptr};
    return all[static_cast<std::size_t>(kind)];
  }
  std::unique_ptr<runtime::Buffer> faults;  // bad ids; while there is one, no variant changes parameters or state
  double compile_ms = 0;
  std::int64_t runs = 0;
  std::map<std::string, std::int32_t> scalars;  // as they were uploaded last

  struct Held {
    std::vector<std::byte> bytes;
    bool current = false;  // the input buffer holds them
  };
  std::map<std::string, Held> held;  // inputs set to stay
};

class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(const FoundParams& params, const std::string& device, int threads, std::uint32_t seed);

  std::shared_ptr<Program> build_training(const TrainingOptions& options, const Trace& trace);
  std::shared_ptr<Program> build_forward(const std::vector<InputSpec>& inputs, bool training,
                                         const std::vector<std::string>& without, const Trace& trace);

  std::shared_ptr<Outcome> step(const std::shared_ptr<Program>& program, const Feed& feed, const RunOptions& options);
  std::shared_ptr<Outcome> run(const std::shared_ptr<Program>& program, const Feed& feed, const RunOptions& options);
  std::vector<DispatchTime> profile(const std::shared_ptr<Program>& program, int steps);
  // Until all steps are done; raises what went wrong.
  void wait(Program& program);
  void set_input(Program& program, const std::string& name, const FeedValue& value);

  std::vector<ParamInfo> parameters() const;
  NamedArrays download(ir::Space space) const;
  void upload(const NamedArrays& values, Upload mode);
  NamedArrays optimizer_state();
  void upload_optimizer_state(const NamedArrays& state);
  std::string fingerprint() const;
  void reset(Program& program, std::optional<std::uint32_t> seed);
  void set_lr(Schedule lr);
  double next_lr() const;
  std::int64_t steps() const;
  Counts counts(const Program& program) const;
  std::vector<PlannedKernel> plan(const Program& program) const;
  std::string show(const Program& program, std::string_view stage) const;
  const runtime::Device& device() const { return *device_; }

  // Raises the error of an earlier step, once.
  void raise_pending();
  void acknowledge(std::int64_t step);

 private:
  friend struct Outcome;
  std::unique_ptr<Variant> compile(const ir::Graph& graph, Program& program, bool captures,
                                   const std::vector<std::string>& without, Program::Kind kind);
  Variant& choose(Program& program, bool captures, bool accumulating);
  // Memory of the device. When there is none, the error names what `tenants` lists; `plan` is null before there is one.
  std::unique_ptr<runtime::Buffer> allocate(ir::Space space, std::int64_t elements, const schedule::Plan* plan,
                                            const std::function<std::vector<Tenant>()>& tenants) const;
  void lay_out_parameters();
  void initialise();
  bool is_flat(const schedule::Layout::Entry& entry) const;
  void allocate_inputs(Program& program) const;
  void grow_state(const Program& program);
  void check_feed(const Program& program, const Feed& feed) const;
  void feed_inputs(Program& program, const Feed& feed);
  void feed_scalar(Program& program, const char* name, float value);
  void submit(Program& program, Variant& variant);
  std::shared_ptr<Outcome> expect_outcome(const std::shared_ptr<Program>& program, Variant& variant, bool captures);
  void raise_failure(Program& program, const runtime::IndexFailure& failure, std::int64_t step);
  std::optional<runtime::IndexFailure> failure_of(const Program& program) const;
  std::string note_failure(Program& program, std::int64_t step);
  void notice();
  void write_counter(const char* name, std::int64_t value);
  std::optional<std::int64_t> read_counter(const char* name) const;
  std::string diagnose(Program& program);
  Array read_array(const runtime::Buffer& buffer, std::int64_t offset, const ir::Type& type) const;
  runtime::Spaces spaces(Program& program, Variant& variant) const;
  std::int64_t next_update() const { return steps_ / accumulate_ + 1; }

  std::uint64_t id_;
  std::shared_ptr<runtime::Device> device_;
  std::vector<ParamRecord> params_;
  std::map<std::string, std::string> aliases_;  // name of a tied field -> name of the parameter
  schedule::Layout param_layout_, state_layout_;
  std::int64_t flat_elements_ = 0;  // of the parameters in training, which come first
  std::unique_ptr<runtime::Buffer> param_buffer_, gradient_buffer_, state_buffer_;
  std::int64_t state_capacity_ = 0;
  std::uint32_t seed_ = 0;
  std::int64_t steps_ = 0;
  int accumulate_ = 1;
  Schedule lr_ = 0.0;
  NonFinite non_finite_ = NonFinite::ignore;
  std::string pending_;  // error that nobody has seen yet
  std::int64_t pending_step_ = -1;
  // Everything above, and outcomes, which keep it when the session is gone.
  std::shared_ptr<std::recursive_mutex> mutex_ = std::make_shared<std::recursive_mutex>();
};

}  // namespace tensorgrad::detail
