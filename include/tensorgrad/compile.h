// compile() turns a model and a function into a program that trains or runs. See tensorgrad.h for a
// complete example.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tensorgrad/array.h"
#include "tensorgrad/future.h"
#include "tensorgrad/optim.h"
#include "tensorgrad/param.h"
#include "tensorgrad/progress.h"
#include "tensorgrad/reflect.h"
#include "tensorgrad/tensor.h"

namespace tensorgrad {

// Declares an input of a program.
struct InputSpec {
  std::string name;
  Shape shape;
  DType dtype = f32;
};

// Patterns for parameter names: `*` matches any text, `?` matches one character.
using NameFilter = std::vector<std::string>;

// Options of compile().
struct TrainingOptions {
  std::vector<InputSpec> inputs = {};
  Optimizer optimizer = Adam{};
  float clip_grad_norm = 0;  // scales all gradients down to this global norm; 0: off
  NameFilter normalize_grads =
      {};  // scales the gradient of each of these to norm 1, before clipping
  // Averages the gradients of this many steps (a round), then updates once. If the last step of a
  // round is not finite, the whole round is dropped. An earlier step that is not finite adds
  // nothing to the average. NonFinite::ignore drops nothing.
  int accumulate = 1;
  NameFilter freeze = {};                     // not trained; they cost no backward pass
  std::optional<NameFilter> train_only = {};  // all other parameters are frozen
  std::optional<NameFilter> decay = {};       // which parameters decay; replaces their own flags
  NonFinite non_finite = NonFinite::fail;
  std::uint32_t seed = 0;       // for initial weights and random ops
  std::string device = "auto";  // "auto", "cpu", "webgpu" or "webgpu:1"
  int threads = 0;              // CPU threads; 0: one per core
  std::vector<std::string> without =
      {};                         // names of compiler passes to leave out: see compiler_passes()
  CompileCallback progress = {};  // reports kernel compilation; a software GPU driver takes minutes
};

// Options of compile_forward(). The fields mean the same as in TrainingOptions.
struct ForwardOptions {
  std::vector<InputSpec> inputs = {};
  std::uint32_t seed = 0;
  std::string device = "auto";
  int threads = 0;
  std::vector<std::string> without = {};
  CompileCallback progress = {};
};

// Options of attach(), which compiles another graph over existing parameters.
struct AttachOptions {
  std::vector<InputSpec> inputs = {};
  bool training = false;  // true: dropout is active
  std::vector<std::string> without = {};
  CompileCallback progress = {};
};

// A compiler pass that can be left out, to look inside the compiler or to find faults. Leaving it
// out changes results by rounding at most.
struct PassInfo {
  std::string_view name;
  std::string_view what;   // says what is true after the pass
  std::string_view stage;  // it is part of
};
// Lists the compiler passes that can be left out, in the order they run.
std::vector<PassInfo> compiler_passes();

// A stage of the compiler.
struct StageInfo {
  std::string_view name;
  std::string_view what;      // says what is true after the stage
  std::string_view from, to;  // levels: function, Graph, groups, Plan, Kernel, code, Executable
};
// Lists the stages of the compiler in the order they run.
std::vector<StageInfo> compiler_stages();

// How long a stage took.
struct StageTime {
  std::string_view stage;
  double milliseconds = 0;
};

// ---- while tracing

// The inputs of a traced function, by name: `in["x"]`.
class Inputs {
 public:
  struct Name {
    std::string_view text;
    Site site;
    Name(const char* t, Site s = Site::here()) : text(t), site(s) {}
    Name(const std::string& t, Site s = Site::here()) : text(t), site(s) {}
  };
  Tensor operator[](Name name) const;

  explicit Inputs(std::vector<std::pair<std::string, Tensor>> items) : items_(std::move(items)) {}

 private:
  std::vector<std::pair<std::string, Tensor>> items_;
};

// The outputs of a traced function: one tensor, or several tensors with names. The loss of a
// training function is its only tensor, or the tensor named "loss".
class Outputs {
 public:
  Outputs(const Tensor& only) : items_{{"", only}} {}
  Outputs(std::initializer_list<std::pair<std::string, Tensor>> items) : items_(items) {}
  Outputs(std::vector<std::pair<std::string, Tensor>> items) : items_(std::move(items)) {}
  const std::vector<std::pair<std::string, Tensor>>& items() const& { return items_; }
  std::vector<std::pair<std::string, Tensor>> items() && { return std::move(items_); }

 private:
  std::vector<std::pair<std::string, Tensor>> items_;
};

// ---- while running

// The values of one input. It views an lvalue (vector or Array) and a span: they must outlive the
// call that receives the FeedValue. It owns an rvalue: a temporary or a moved object. Copies share
// the values.
class FeedValue {
 public:
  FeedValue(const std::vector<float>& v) : floats_(v) {}
  FeedValue(std::vector<float>&& v) : FeedValue(Owned<float>(std::move(v))) {}
  FeedValue(const std::vector<float>&& v) : FeedValue(std::vector<float>(v)) {}
  FeedValue(std::span<const float> v) : floats_(v) {}
  FeedValue(const std::vector<std::int32_t>& v) : dtype_(i32), ints_(v) {}
  FeedValue(std::vector<std::int32_t>&& v) : FeedValue(Owned<std::int32_t>(std::move(v))) {}
  FeedValue(const std::vector<std::int32_t>&& v) : FeedValue(std::vector<std::int32_t>(v)) {}
  FeedValue(std::span<const std::int32_t> v) : dtype_(i32), ints_(v) {}
  template <std::size_t N>
  FeedValue(const std::array<float, N>&& v) : FeedValue(std::vector<float>(v.begin(), v.end())) {}
  template <std::size_t N>
  FeedValue(const std::array<std::int32_t, N>&& v)
      : FeedValue(std::vector<std::int32_t>(v.begin(), v.end())) {}
  FeedValue(const Array& array);
  FeedValue(Array&& array);
  FeedValue(const Array&& array) : FeedValue(Array(array)) {}
  FeedValue(float v) : scalar_f_(v), is_scalar_(true) {}
  FeedValue(double v) : FeedValue(static_cast<float>(v)) {}
  FeedValue(std::int32_t v) : dtype_(i32), scalar_i_(v), is_scalar_(true) {}

  DType dtype() const { return dtype_; }
  const std::optional<Shape>& shape() const& { return shape_; }
  std::span<const float> floats() const& { return is_scalar_ ? std::span(&scalar_f_, 1) : floats_; }
  std::span<const std::int32_t> ints() const& {
    return is_scalar_ ? std::span(&scalar_i_, 1) : ints_;
  }
  void shape() const&& = delete;  // these would dangle
  void floats() const&& = delete;
  void ints() const&& = delete;

 private:
  template <class T>
  struct Owned {
    std::shared_ptr<const std::vector<T>> values;
    explicit Owned(std::vector<T> v)
        : values(std::make_shared<const std::vector<T>>(std::move(v))) {}
  };
  explicit FeedValue(const Owned<float>& own) : floats_(*own.values), owner_(own.values) {}
  explicit FeedValue(const Owned<std::int32_t>& own)
      : dtype_(i32), ints_(*own.values), owner_(own.values) {}

  DType dtype_ = f32;
  std::optional<Shape> shape_;  // known for an Array, and checked then
  std::span<const float> floats_;
  std::span<const std::int32_t> ints_;
  std::shared_ptr<const void> owner_;  // owns the values; null for a view
  float scalar_f_ = 0;
  std::int32_t scalar_i_ = 0;
  bool is_scalar_ = false;
};

// Values by input name: `{{"x", x}, {"y", y}}`.
class Feed {
 public:
  Feed() = default;
  Feed(std::initializer_list<std::pair<std::string, FeedValue>> items) : items_(items) {}
  void set(std::string name, FeedValue value) {
    items_.emplace_back(std::move(name), std::move(value));
  }
  const std::vector<std::pair<std::string, FeedValue>>& items() const& { return items_; }
  void items() const&& = delete;

 private:
  std::vector<std::pair<std::string, FeedValue>> items_;
};

struct RunOptions {
  bool captures = false;  // also returns what capture() named; throws if it named nothing
};

namespace detail {
class Driver;
class Program;
class TrainingProgram;
class Outcome;
}  // namespace detail

// The result of a step or run. Reading it blocks until the device has finished. It owns its values:
// later steps do not change them. Copies share the values and may be used on any thread. Dropping
// it does not stop the step.
class Result {
 public:
  // Returns true if reading it does not block. Asks for the values if nobody has: poll() then makes
  // progress.
  bool ready() const;
  // Calls `callback` once with the result, in poll(), when it is ready: reading it returns the
  // values, or throws the error of the step.
  void then(std::function<void(const Result&)> callback) const;
  // Returns the loss of a step.
  float loss() const;
  // Returns the only output, or the output of that name. On an rvalue, returns a copy.
  const Array& output() const&;
  Array output() &&;
  const Array& operator[](std::string_view name) const&;
  Array operator[](std::string_view name) &&;
  // Returns what capture() named. Needs RunOptions{.captures = true}. On an rvalue, returns a copy.
  const Array& capture(std::string_view name) const&;
  Array capture(std::string_view name) &&;
  const NamedArrays& captures() const&;
  NamedArrays captures() &&;
  // Returns the global norm of the gradients before clipping. Needs clip_grad_norm.
  float grad_norm() const;
  // Returns false if the step met NaN or infinity and was skipped.
  bool finite() const;
  // Blocks until the device has finished. Throws if the step or run failed.
  void wait() const;

  explicit Result(std::shared_ptr<detail::Outcome> outcome) : outcome_(std::move(outcome)) {}

 private:
  std::shared_ptr<detail::Outcome> outcome_;
};

// The work and the memory of a compiled step.
struct Counts {
  std::int64_t kernels = 0;      // in the plan
  std::int64_t dispatches = 0;   // submitted to the device per step
  std::int64_t passes = 0;       // compute passes per step; 0 on the CPU
  std::int64_t submits = 0;      // queue submits per step; 0 on the CPU
  std::int64_t arena_bytes = 0;  // activations and temporaries
  std::int64_t param_bytes = 0;
  std::int64_t gradient_bytes = 0;
  std::int64_t state_bytes = 0;  // optimizer state
  std::int64_t input_bytes = 0;
  std::int64_t operations = 0;   // arithmetic per step, floating-point and integer
  std::int64_t bytes_moved = 0;  // read and written per step; a kernel counts each element once
};

// A tensor that a kernel of the plan writes.
struct PlannedTensor {
  std::string type;         // "f32[32,784]"
  std::string space;        // "arena", "gradients", ...
  std::int64_t offset = 0;  // in bytes
  std::int64_t bytes = 0;
  std::int64_t last_use =
      0;  // index of the last kernel that reads it; the number of kernels if it outlives the run
  bool in_place = false;  // overwrites an operand
};

// A kernel of the plan. Bytes are counted once, even if the kernel reads them several times.
struct PlannedKernel {
  std::string kind;  // rows, columns, matmul, single or copy
  std::string
      phase;  // forward; in training also backward (only gradients need the kernel) and update
  std::int64_t stage =
      0;  // kernels of one stage do not depend on each other and may run concurrently
  std::vector<std::string> ops;
  std::string where;  // layer and line of the user's call: "layers.0.mlp, at gpt.cpp:41"
  std::int64_t operations = 0, bytes_read = 0, bytes_written = 0;
  std::vector<PlannedTensor> writes;
};

// The device time of one dispatch of a step, measured alone.
struct DispatchTime {
  std::int64_t kernel = 0;  // index in plan(); some kernels take two dispatches
  std::string name;
  double microseconds = 0;  // the shortest
  // Over all steps. For clocks that are coarser than a kernel: browsers round times to 100 us.
  double mean_microseconds = 0;
};

// A parameter of a program.
struct ParamInfo {
  std::string name;
  Shape shape;
  bool decay = false;
  bool frozen = false;
};

// An input, output or capture of a program.
struct TensorInfo {
  std::string name;
  Shape shape;
  DType dtype = f32;
};

// Which parameters upload() expects.
enum class Upload : std::uint8_t {
  strict,   // all parameters, and nothing else
  partial,  // any subset of the parameters
};

// The common interface of training and forward programs. Several threads may use programs over the
// same parameters, and their results: the calls are serialized. Do not move or assign a handle
// while another thread uses it.
//
// Calls take effect in order. Those whose name ends in _async never block: what cannot be done yet
// is queued, and poll() goes on with it. set_input(), upload(), reset(), reset_optimizer() and
// set_lr() never block either: they are queued behind what is queued, with copies of their values.
// The other calls block where the device is asynchronous. A progress callback or a learning-rate
// schedule is called in the middle of a call and must not use the program, except for steps().
class ProgramHandle {
 public:
  // Sets the values of an input for all steps that do not feed it. Copies the values.
  void set_input(const std::string& name, const FeedValue& value);
  // Lists the parameters, in field order.
  std::vector<ParamInfo> parameters() const;
  // These list the inputs, outputs and captures in the order of declaration. They are known before
  // the first run. An output without a name is "out", or "loss" in training.
  std::vector<TensorInfo> inputs() const;
  std::vector<TensorInfo> outputs() const;
  std::vector<TensorInfo> captures() const;
  // Returns the values of all parameters.
  NamedArrays download() const;
  // Sets the values of parameters. If it throws, no parameter was changed.
  void upload(const NamedArrays& values, Upload mode = Upload::strict);
  // Returns the SHA-256 of the names and bytes of all parameters, in field order.
  std::string fingerprint() const;
  Counts counts() const;
  // Returns the milliseconds from tracing until the program could run.
  double compile_ms() const;
  std::string device() const;
  int threads() const;
  // Returns what a stage of compiler_stages() made of the program, for its device: `emit` is the
  // code that the device runs. Forward programs have no stages differentiate and update.
  std::string show(std::string_view stage) const;
  // Returns how long each stage took to compile the program.
  std::vector<StageTime> stage_times() const;
  // Returns the kernels of a step in order, as show("plan") prints them.
  std::vector<PlannedKernel> plan() const;
  // Runs this many steps and returns the time of each dispatch. Inputs that are not fed
  // are those of set_input(). The steps are slower than usual, because nothing runs concurrently.
  // They count as steps: training updates its parameters. With `accumulate`, only steps that update
  // are timed.
  std::vector<DispatchTime> profile(int steps = 10, const Feed& feed = {});

  // Like download() and profile(), and do not block. On the CPU, each poll() makes one step of a
  // profile.
  Future<NamedArrays> download_async() const;
  Future<std::vector<DispatchTime>> profile_async(int steps = 10, const Feed& feed = {});
  // What completes the futures of this program while it is polled, for futures of your own.
  std::shared_ptr<Pollable> source() const;

 protected:
  ProgramHandle(std::shared_ptr<detail::Driver> driver, std::shared_ptr<detail::Program> program)
      : driver_(std::move(driver)), program_(std::move(program)) {}
  detail::Driver& driver(const char* call) const;
  detail::Program& program(const char* call) const;
  Result run_program(const char* call, const Feed& feed, const RunOptions& options) const;
  Result run_program_async(const char* call, const Feed& feed, const RunOptions& options) const;
  std::shared_ptr<detail::Driver> driver_;  // destroyed after the program
  std::shared_ptr<detail::Program> program_;
};

// A compiled training step, without the type of its model.
class TrainingHandle : public ProgramHandle {
 public:
  // Runs forward, backward and update. On a GPU it only enqueues them, and reading the result
  // blocks. On the CPU it returns when the step is done. Throws the error of an earlier step that
  // nobody has read.
  Result step(const Feed& feed = {}, const RunOptions& options = {});
  // Like step(), and does not block: not while the device is full, nor while the first step with
  // captures is compiled. Copies the feed if it has to queue the step. Throws only if the feed is
  // wrong; all other errors are those of the result. Steps after one that failed change nothing and
  // have the same error, until it is read. On the CPU the step is done when the call returns, and
  // callbacks still run in poll().
  Result step_async(const Feed& feed = {}, const RunOptions& options = {});
  // Returns the gradients of the last step, before clipping.
  NamedArrays gradients() const;
  Future<NamedArrays> gradients_async() const;
  NamedArrays optimizer_state() const;
  Future<NamedArrays> optimizer_state_async() const;
  void upload_optimizer_state(const NamedArrays& state);
  // Calls upload() and upload_optimizer_state() for a checkpoint. If it throws, neither parameters
  // nor optimizer state were changed. The learning rate stays that of the program: call set_lr()
  // before, if it was changed.
  void restore(const NamedArrays& parameters, const NamedArrays& optimizer_state);
  Future<Done> restore_async(const NamedArrays& parameters, const NamedArrays& optimizer_state);
  // Restores the initial weights, clears the optimizer state and sets the step to 0. A given seed
  // replaces the seed of initial weights and random ops.
  void reset(std::optional<std::uint32_t> seed = {});
  // Clears the optimizer state and sets the step to 0. Keeps the weights.
  void reset_optimizer();
  // Sets the learning rate of all later updates. The next update is update 1 of the schedule. To
  // resume such a run, call set_lr() and then upload_optimizer_state(), which restores where the
  // schedule started.
  void set_lr(Schedule lr);
  double lr() const;  // learning rate of the next step
  // Returns the number of the next step. A step that was not finite counts; steps that were refused
  // because of it do not.
  std::int64_t steps() const;
  // Blocks until all steps have finished. Throws if one of them failed.
  void wait();
  Future<Done> wait_async();

 protected:
  using ProgramHandle::ProgramHandle;
  detail::TrainingProgram& training(const char* call) const;
};

// A compiled forward pass, without the type of its model.
class ForwardHandle : public ProgramHandle {
 public:
  // Runs the forward pass. On a GPU it only enqueues it, and reading the result blocks.
  Result run(const Feed& feed = {}, const RunOptions& options = {});
  // Like run(), and does not block: see TrainingHandle::step_async().
  Result run_async(const Feed& feed = {}, const RunOptions& options = {});

 protected:
  using ProgramHandle::ProgramHandle;
};

namespace detail {

using Trace = std::function<Outputs(const Inputs&)>;
using FoundParams = std::vector<std::pair<std::string, Param*>>;

struct Compiled {
  std::shared_ptr<Driver> driver;
  std::shared_ptr<Program> program;
};
// These trace in the call.
Future<Compiled> compile_training(const FoundParams& params, const TrainingOptions& options,
                                  const Trace& trace);
Future<Compiled> compile_forward(const FoundParams& params, const ForwardOptions& options,
                                 const Trace& trace);
Future<Compiled> attach(const std::shared_ptr<Driver>& driver, const AttachOptions& options,
                        const Trace& trace);

template <class M>
FoundParams find_params(M& model) {
  FoundParams found;
  walk_model<Param>(
      model, [&](const std::string& path, Param& param) { found.emplace_back(path, &param); });
  return found;
}

template <class M, class F>
Trace bind_model(const std::shared_ptr<M>& model, F& function) {
  return [model, &function](const Inputs& in) -> Outputs {
    return function(std::as_const(*model), in);
  };
}

}  // namespace detail

// A compiled forward pass over the parameters of a model.
template <class M>
class Forward : public ForwardHandle {
 public:
  const M& model() const& {
    driver("model");
    return *model_;
  }
  void model() const&& = delete;  // it would dangle

  // Compiles another forward pass over the same parameters. Shares them without copies.
  template <class F>
  Forward attach(const AttachOptions& options, F&& function) {
    return attach_async(options, function).take();
  }
  // Like attach(), and does not block. Traces in the call.
  template <class F>
  Future<Forward> attach_async(const AttachOptions& options, F&& function) {
    driver("attach");
    return detail::attach(driver_, options, detail::bind_model(model_, function))
        .map([model = model_](const detail::Compiled& made) { return Forward(model, made); });
  }

  Forward(std::shared_ptr<M> model, const detail::Compiled& made)
      : ForwardHandle(made.driver, made.program), model_(std::move(model)) {}

 private:
  std::shared_ptr<M> model_;
};

// A compiled training step.
template <class M>
class Training : public TrainingHandle {
 public:
  // Returns the model as declared. The values of its parameters come from download().
  const M& model() const& {
    driver("model");
    return *model_;
  }
  void model() const&& = delete;  // it would dangle

  // Compiles a forward pass over the parameters in training. Shares them without copies, so it sees
  // every update.
  template <class F>
  Forward<M> attach(const AttachOptions& options, F&& function) {
    return attach_async(options, function).take();
  }
  // Like attach(), and does not block. Traces in the call.
  template <class F>
  Future<Forward<M>> attach_async(const AttachOptions& options, F&& function) {
    driver("attach");
    return detail::attach(driver_, options, detail::bind_model(model_, function))
        .map([model = model_](const detail::Compiled& made) { return Forward<M>(model, made); });
  }

  Training(std::shared_ptr<M> model, const detail::Compiled& made)
      : TrainingHandle(made.driver, made.program), model_(std::move(model)) {}

 private:
  std::shared_ptr<M> model_;
};

// Like compile(), and does not block: allocates memory and compiles kernels while poll() is called.
// Traces and plans in the call, which throws what is wrong with the options. The first call for a
// GPU also loads its driver, which takes about 0.1 s.
template <class M, class F>
Future<Training<M>> compile_async(M model, const TrainingOptions& options, F&& function) {
  auto shared = std::make_shared<M>(std::move(model));
  return detail::compile_training(detail::find_params(*shared), options,
                                  detail::bind_model(shared, function))
      .map([shared](const detail::Compiled& made) { return Training<M>(shared, made); });
}

// Compiles forward, backward and optimizer into one training step. Traces
// `function(const M&, const Inputs&)`, which returns the loss (and other outputs).
//   auto train = tg::compile(Mlp{}, {.inputs = {{"x", {256, 1}}}, .optimizer = tg::Adam{}},
//       [](const Mlp& m, const tg::Inputs& in) { return mean(square(m.l1(in["x"]))); });
template <class M, class F>
Training<M> compile(M model, const TrainingOptions& options, F&& function) {
  return compile_async(std::move(model), options, function).take();
}

// Like compile_forward(), and does not block. Traces in the call.
template <class M, class F>
Future<Forward<M>> compile_forward_async(M model, const ForwardOptions& options, F&& function) {
  auto shared = std::make_shared<M>(std::move(model));
  return detail::compile_forward(detail::find_params(*shared), options,
                                 detail::bind_model(shared, function))
      .map([shared](const detail::Compiled& made) { return Forward<M>(shared, made); });
}

// Compiles a forward pass: no loss, no backward, no optimizer. Dropout does nothing.
template <class M, class F>
Forward<M> compile_forward(M model, const ForwardOptions& options, F&& function) {
  return compile_forward_async(std::move(model), options, function).take();
}

}  // namespace tensorgrad
