// compile(): from a model and a function to something that trains or runs. See tensorgrad.h for a
// whole program.
#pragma once

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
#include "tensorgrad/optim.h"
#include "tensorgrad/param.h"
#include "tensorgrad/reflect.h"
#include "tensorgrad/tensor.h"

namespace tensorgrad {

struct InputSpec {
  std::string name;
  Shape shape;
  DType dtype = f32;
};

// Patterns over parameter names: `*` stands for anything, `?` for one character.
using NameFilter = std::vector<std::string>;

struct TrainingOptions {
  std::vector<InputSpec> inputs = {};
  Optimizer optimizer = Adam{};
  float clip_grad_norm = 0;         // scale all gradients down to this global norm; 0: off
  NameFilter normalize_grads = {};     // scale the gradient of each of these to norm 1, before clipping
  // Average the gradients of this many steps, then update. If the last of them is not finite, the
  // whole round is dropped.
  int accumulate = 1;
  NameFilter freeze = {};              // not trained, and no backward for them
  std::optional<NameFilter> train_only = {};  // everything else is frozen
  std::optional<NameFilter> decay = {};  // which parameters decay, instead of their own flags
  NonFinite non_finite = NonFinite::fail;
  std::uint32_t seed = 0;           // of initial weights and random ops
  std::string device = "auto";      // "auto", "cpu", "webgpu" or "webgpu:1"
  int threads = 0;                  // of the CPU; 0: one per core
  std::vector<std::string> without = {};  // compiler passes to leave out, by name: see compiler_passes()
};

struct ForwardOptions {
  std::vector<InputSpec> inputs = {};
  std::uint32_t seed = 0;
  std::string device = "auto";
  int threads = 0;
  std::vector<std::string> without = {};
};

// Another graph over parameters that exist already.
struct AttachOptions {
  std::vector<InputSpec> inputs = {};
  bool training = false;  // true: dropout drops
  std::vector<std::string> without = {};
};

// A part of the compiler that can be left out, for looking inside and for finding faults. Values
// stay what they are, up to rounding.
struct PassInfo {
  std::string_view name;
  std::string_view what;  // becomes true
};
std::vector<PassInfo> compiler_passes();

// ---- while tracing

// The inputs of a traced function: `in["x"]`.
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

// What a traced function returns: one tensor, or several by name. The loss of a training function
// is its only tensor, or the one named "loss".
class Outputs {
 public:
  Outputs(const Tensor& only) : items_{{"", only}} {}
  Outputs(std::initializer_list<std::pair<std::string, Tensor>> items) : items_(items) {}
  Outputs(std::vector<std::pair<std::string, Tensor>> items) : items_(std::move(items)) {}
  const std::vector<std::pair<std::string, Tensor>>& items() const { return items_; }

 private:
  std::vector<std::pair<std::string, Tensor>> items_;
};

// ---- while running

// Numbers for one input. Only looked at during the call that receives it.
class FeedValue {
 public:
  FeedValue(const std::vector<float>& v) : floats_(v) {}
  FeedValue(std::span<const float> v) : floats_(v) {}
  FeedValue(const std::vector<std::int32_t>& v) : dtype_(i32), ints_(v) {}
  FeedValue(std::span<const std::int32_t> v) : dtype_(i32), ints_(v) {}
  FeedValue(const Array& array);
  FeedValue(float v) : scalar_f_(v), is_scalar_(true) {}
  FeedValue(double v) : FeedValue(static_cast<float>(v)) {}
  FeedValue(std::int32_t v) : dtype_(i32), scalar_i_(v), is_scalar_(true) {}

  DType dtype() const { return dtype_; }
  const std::optional<Shape>& shape() const { return shape_; }
  std::span<const float> floats() const { return is_scalar_ ? std::span(&scalar_f_, 1) : floats_; }
  std::span<const std::int32_t> ints() const { return is_scalar_ ? std::span(&scalar_i_, 1) : ints_; }

 private:
  DType dtype_ = f32;
  std::optional<Shape> shape_;  // known for an Array; checked then
  std::span<const float> floats_;
  std::span<const std::int32_t> ints_;
  float scalar_f_ = 0;
  std::int32_t scalar_i_ = 0;
  bool is_scalar_ = false;
};

// Numbers by input name: `{{"x", x}, {"y", y}}`.
class Feed {
 public:
  Feed() = default;
  Feed(std::initializer_list<std::pair<std::string, FeedValue>> items) : items_(items) {}
  void set(std::string name, FeedValue value) { items_.emplace_back(std::move(name), value); }
  const std::vector<std::pair<std::string, FeedValue>>& items() const { return items_; }

 private:
  std::vector<std::pair<std::string, FeedValue>> items_;
};

struct RunOptions {
  bool captures = false;  // also keep what capture() named
};

namespace detail {
class Session;
class Program;
struct Outcome;
}  // namespace detail

// A step or run that was handed to the device. Reading waits for it; the numbers are its own and
// stay as they are when later steps run. Copies share them, on any thread.
class Result {
 public:
  // The loss of a step.
  float loss() const;
  // The only output, or the one of that name. Of a Result without a name, which is about to go, a copy.
  const Array& output() const&;
  Array output() && { return std::as_const(*this).output(); }
  const Array& operator[](std::string_view name) const&;
  Array operator[](std::string_view name) && { return std::as_const(*this)[name]; }
  // What capture() named; needs RunOptions{.captures = true}.
  const Array& capture(std::string_view name) const&;
  Array capture(std::string_view name) && { return std::as_const(*this).capture(name); }
  const NamedArrays& captures() const&;
  NamedArrays captures() && { return std::as_const(*this).captures(); }
  // Global norm of the gradients before clipping; needs clip_grad_norm.
  float grad_norm() const;
  // False when the step met NaN or infinity and was skipped.
  bool finite() const;
  void wait() const;

  explicit Result(std::shared_ptr<detail::Outcome> outcome) : outcome_(std::move(outcome)) {}

 private:
  std::shared_ptr<detail::Outcome> outcome_;
};

// What the compiler made of a step.
struct Counts {
  std::int64_t kernels = 0;        // of the plan
  std::int64_t dispatches = 0;     // that the device is given per step
  std::int64_t passes = 0;         // per step; 0 on the CPU
  std::int64_t submits = 0;        // per step; 0 on the CPU
  std::int64_t arena_bytes = 0;    // activations and temporaries
  std::int64_t param_bytes = 0;
  std::int64_t gradient_bytes = 0;
  std::int64_t state_bytes = 0;    // of the optimizer
  std::int64_t input_bytes = 0;
  std::int64_t operations = 0;     // floating-point and integer arithmetic per step
  std::int64_t bytes_moved = 0;    // read and written by kernels per step, each element once a kernel
};

// A kernel of the plan, and what it writes. Bytes are counted once, however often a kernel reads them.
struct PlannedTensor {
  std::string type;           // "f32[32,784]"
  std::string space;          // "arena", "gradients", ...
  std::int64_t offset = 0;    // in bytes
  std::int64_t bytes = 0;
  std::int64_t last_use = 0;  // the last kernel that reads it; the number of kernels if it outlives the run
  bool in_place = false;      // written over an operand
};

struct PlannedKernel {
  std::string kind;           // rows, columns, matmul, single or copy
  std::string phase;          // forward; in training also backward, for what only gradients need, and update
  std::int64_t stage = 0;     // kernels of one stage do not need each other, and may run at the same time
  std::vector<std::string> ops;
  std::int64_t operations = 0, bytes_read = 0, bytes_written = 0;
  std::vector<PlannedTensor> writes;
};

// How long the device takes for one dispatch of a step, measured alone.
struct DispatchTime {
  std::int64_t kernel = 0;  // of plan(); some kernels take two dispatches
  std::string name;
  double microseconds = 0;
};

struct ParamInfo {
  std::string name;
  Shape shape;
  bool decay = false;
  bool frozen = false;
};

enum class Upload : std::uint8_t {
  strict,   // every parameter, and nothing else
  partial,  // any of them
};

// What training and forward programs have in common. Programs over the same parameters and their
// results may be used from several threads: the calls take turns. Moving or assigning a handle while
// another thread uses it is not safe, as for any object.
class ProgramHandle {
 public:
  // Keeps numbers for an input on the device; steps that do not feed it use them.
  void set_input(const std::string& name, const FeedValue& value);
  std::vector<ParamInfo> parameters() const;
  NamedArrays download() const;
  // All or nothing: on an error no parameter was changed.
  void upload(const NamedArrays& values, Upload mode = Upload::strict);
  // SHA-256 of names and bytes of all parameters, in field order.
  std::string fingerprint() const;
  Counts counts() const;
  // Time from tracing to runnable.
  double compile_ms() const;
  std::string device() const;
  int threads() const;
  // A stage of the compiler as text: trace, differentiate, update, simplify, fuse, plan, lower or wgsl.
  std::string show(std::string_view stage) const;
  static std::span<const std::string_view> stages();
  // The kernels of a step in order, as show("plan") prints them.
  std::vector<PlannedKernel> plan() const;
  // Runs that many steps on inputs set with set_input() and times every dispatch; the shortest of its times.
  // Slower than steps are otherwise: nothing runs side by side. The steps count as steps.
  std::vector<DispatchTime> profile(int steps = 10);

 protected:
  ProgramHandle(std::shared_ptr<detail::Session> session, std::shared_ptr<detail::Program> program)
      : session_(std::move(session)), program_(std::move(program)) {}
  detail::Session& session(const char* call) const;
  detail::Program& program(const char* call) const;
  std::shared_ptr<detail::Session> session_;
  std::shared_ptr<detail::Program> program_;
};

class TrainingHandle : public ProgramHandle {
 public:
  // Forward, backward and update, enqueued. Only reading the result waits.
  Result step(const Feed& feed = {}, const RunOptions& options = {});
  // Gradients of the last step, before clipping.
  NamedArrays gradients() const;
  NamedArrays optimizer_state() const;
  void upload_optimizer_state(const NamedArrays& state);
  // Initial weights, empty optimizer state and step 0 again; with another seed if given.
  void reset(std::optional<std::uint32_t> seed = {});
  // The learning rate of the steps enqueued from now on.
  void set_lr(Schedule lr);
  double lr() const;  // of the next step
  std::int64_t steps() const;  // enqueued so far
  void wait();

 protected:
  using ProgramHandle::ProgramHandle;
};

class ForwardHandle : public ProgramHandle {
 public:
  Result run(const Feed& feed = {}, const RunOptions& options = {});

 protected:
  using ProgramHandle::ProgramHandle;
};

namespace detail {

using Trace = std::function<Outputs(const Inputs&)>;
using FoundParams = std::vector<std::pair<std::string, Param*>>;

struct Compiled {
  std::shared_ptr<Session> session;
  std::shared_ptr<Program> program;
};
Compiled compile_training(const FoundParams& params, const TrainingOptions& options, const Trace& trace);
Compiled compile_forward(const FoundParams& params, const ForwardOptions& options, const Trace& trace);
Compiled attach(const std::shared_ptr<Session>& session, const AttachOptions& options, const Trace& trace);

template <class M>
FoundParams find_params(M& model) {
  FoundParams found;
  walk_model<Param>(model, [&](const std::string& path, Param& param) { found.emplace_back(path, &param); });
  return found;
}

template <class M, class F>
Trace bind_model(const std::shared_ptr<M>& model, F& function) {
  return [model, &function](const Inputs& in) -> Outputs { return function(std::as_const(*model), in); };
}

}  // namespace detail

// A compiled forward pass over the parameters of a model.
template <class M>
class Forward : public ForwardHandle {
 public:
  const M& model() const {
    session("model");
    return *model_;
  }

  // Another forward pass over the same parameters, without copies.
  template <class F>
  Forward attach(const AttachOptions& options, F&& function) {
    session("attach");
    auto made = detail::attach(session_, options, detail::bind_model(model_, function));
    return Forward(model_, made.session, made.program);
  }

  Forward(std::shared_ptr<M> model, std::shared_ptr<detail::Session> session, std::shared_ptr<detail::Program> program)
      : ForwardHandle(std::move(session), std::move(program)), model_(std::move(model)) {}

 private:
  std::shared_ptr<M> model_;
};

// A compiled training step.
template <class M>
class Training : public TrainingHandle {
 public:
  // The model as declared; its parameters' numbers come by download().
  const M& model() const {
    session("model");
    return *model_;
  }

  // A forward pass over the parameters in training, without copies: it sees every update.
  template <class F>
  Forward<M> attach(const AttachOptions& options, F&& function) {
    session("attach");
    auto made = detail::attach(session_, options, detail::bind_model(model_, function));
    return Forward<M>(model_, made.session, made.program);
  }

  Training(std::shared_ptr<M> model, std::shared_ptr<detail::Session> session, std::shared_ptr<detail::Program> program)
      : TrainingHandle(std::move(session), std::move(program)), model_(std::move(model)) {}

 private:
  std::shared_ptr<M> model_;
};

// Traces `function(const M&, const Inputs&)`, which returns the loss (and other outputs), and
// compiles forward, backward and optimizer into one step.
//   auto train = tg::compile(Mlp{}, {.inputs = {{"x", {256, 1}}}, .optimizer = tg::Adam{.lr = 0.005}},
//       [](const Mlp& m, const tg::Inputs& in) { return mean(square(m.l1(in["x"]))); });
template <class M, class F>
Training<M> compile(M model, const TrainingOptions& options, F&& function) {
  auto shared = std::make_shared<M>(std::move(model));
  auto made = detail::compile_training(detail::find_params(*shared), options, detail::bind_model(shared, function));
  return Training<M>(shared, made.session, made.program);
}

// The same without loss, backward and optimizer; dropout does nothing.
template <class M, class F>
Forward<M> compile_forward(M model, const ForwardOptions& options, F&& function) {
  auto shared = std::make_shared<M>(std::move(model));
  auto made = detail::compile_forward(detail::find_params(*shared), options, detail::bind_model(shared, function));
  return Forward<M>(shared, made.session, made.program);
}

}  // namespace tensorgrad
