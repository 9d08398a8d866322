// What is behind the handles of the C interface, and how errors pass its boundary.
#pragma once

#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "c/arguments.h"
#include "compile/recording.h"
#include "compile/report_json.h"
#include "nn/registry.h"
#include "support/fail.h"
#include "support/json_text.h"
#include "tensorgrad/c.h"
#include "tensorgrad/checkpoint.h"

namespace tensorgrad::c {

// Keeps an exception for tg_error().
void keep_error(const std::exception_ptr& error) noexcept;

// Runs the body of a C function. An exception, also that of an exhausted memory, is kept for
// tg_error(), and the function returns `failed`.
template <class F>
auto guarded(std::invoke_result_t<F> failed, F body) noexcept -> std::invoke_result_t<F> {
  try {
    return body();
  } catch (...) {
    keep_error(std::current_exception());
    return failed;
  }
}

// The handles that the caller holds, so that one that was freed is an error instead of a crash.
void add_handle(const void* handle, const char* kind);
void remove_handle(const void* handle) noexcept;
bool is_handle(const void* handle, const char* kind);

// Base of the types of c.h. `Own::kKind` is the name of the kind in errors.
template <class Own>
class Handle {
 public:
  Handle() { add_handle(this, Own::kKind); }
  Handle(const Handle&) : Handle() {}
  Handle& operator=(const Handle&) { return *this; }
  ~Handle() { remove_handle(this); }
};

// Throws a UserError if the caller passed null, or what is no handle of this kind. `what` is the
// name of the argument.
template <class T>
T& given(T* object, const char* what) {
  if (!object) user_error("{} is null", what);
  if (!is_handle(object, T::kKind))
    user_error("{}: this handle was freed, or it is no handle of this kind", what);
  return *object;
}
// Frees a handle. Null and a handle that was freed are ignored.
template <class T>
void free_handle(T* object) noexcept {
  if (object && is_handle(object, T::kKind)) delete object;
}

inline std::string_view text_or(const char* text, std::string_view otherwise = "") {
  return text ? text : otherwise;
}

// The caller's line. File names are kept as long as the process runs.
Site site_of(const char* file, int line);

std::string type_text(DType dtype, const Shape& shape);

// A handle of a program: training, or forward.
class OpenTraining : public TrainingHandle {
 public:
  explicit OpenTraining(const detail::Compiled& made) : TrainingHandle(made.driver, made.program) {}
  const std::shared_ptr<detail::Driver>& shared_driver() const { return driver_; }
};
class OpenForward : public ForwardHandle {
 public:
  explicit OpenForward(const detail::Compiled& made) : ForwardHandle(made.driver, made.program) {}
  const std::shared_ptr<detail::Driver>& shared_driver() const { return driver_; }
};

// The parameters and layers of a model. Graphs and programs have copies.
struct Model {
  std::vector<std::unique_ptr<Param>> own;  // those that belong to no layer
  struct PlacedLayer {
    const nn::PublicLayer* type;
    std::unique_ptr<nn::Layer> layer;
  };
  std::vector<PlacedLayer> layers;
  std::map<std::string, Param*, std::less<>> by_name;
  detail::FoundParams found;  // in the order in which they were added

  Model() = default;
  Model(const Model& other);
  Model& operator=(const Model&) = delete;

  void add(const std::string& name, Param& param);
};

}  // namespace tensorgrad::c

// The types of c.h.

struct tg_arrays : tensorgrad::c::Handle<tg_arrays> {
  static constexpr const char* kKind = "arrays";
  tensorgrad::NamedArrays values;
  std::map<std::string, std::string> metadata;  // of a file
  bool borrowed = false;                        // part of another handle
  std::string text;                             // that a function returned
  std::map<std::string, tensorgrad::Array>::iterator at(int index);
};

struct tg_bytes : tensorgrad::c::Handle<tg_bytes> {
  static constexpr const char* kKind = "bytes";
  std::string bytes;
};

struct tg_checkpoint : tensorgrad::c::Handle<tg_checkpoint> {
  static constexpr const char* kKind = "checkpoint";
  tensorgrad::Checkpoint value;
  tg_arrays parameters, optimizer;
  std::string text;

  explicit tg_checkpoint(tensorgrad::Checkpoint checkpoint) : value(std::move(checkpoint)) {
    parameters.borrowed = optimizer.borrowed = true;
  }
};

struct tg_model : tensorgrad::c::Handle<tg_model> {
  static constexpr const char* kKind = "model";
  tensorgrad::c::Model model;
  std::string text;
};

struct tg_program : tensorgrad::c::Handle<tg_program> {
  static constexpr const char* kKind = "program";
  std::shared_ptr<tensorgrad::c::Model> model;
  std::unique_ptr<tensorgrad::c::OpenTraining> training;  // one of them
  std::unique_ptr<tensorgrad::c::OpenForward> forward;
  int accumulate = 1;
  bool clips = false;
  std::string text;

  tensorgrad::ProgramHandle& handle() {
    if (training) return *training;
    return *forward;
  }
  tensorgrad::c::OpenTraining& trains(const char* call) {
    if (!training) tensorgrad::user_error("{}: this is not a training program", call);
    return *training;
  }
};

// The value of a future. Who wants it fills in what it has.
struct tg_value {
  tg_arrays arrays, captures;
  bool has_arrays = false, has_captures = false;
  std::string text;
  std::unique_ptr<tg_program> program;
  std::unique_ptr<tg_checkpoint> checkpoint;
  // A trainer or a generator: this file knows neither of them.
  std::shared_ptr<void> other;
  const void* type_of_other = nullptr;
};

struct tg_future : tensorgrad::c::Handle<tg_future> {
  static constexpr const char* kKind = "future";
  // Shared with the callback, which may outlive the handle.
  struct State {
    bool ready = false;
    std::exception_ptr error;
    tg_value value;
    std::string progress;
    State() { value.arrays.borrowed = value.captures.borrowed = true; }
  };
  std::shared_ptr<State> state = std::make_shared<State>();

  // The value. Throws if it is not there.
  tg_value& value() const;
};

namespace tensorgrad::c {

// Runs `fill` for a handle that becomes ready; an exception is its error.
template <class Fill>
void complete(tg_future::State& state, Fill fill) {
  try {
    fill(state.value);
  } catch (...) {
    state.error = std::current_exception();
  }
  state.ready = true;
}

// A handle that is ready when `future` is. `fill` makes its value.
template <class T, class Fill>
tg_future* waiting(const Future<T>& future, Fill fill,
                   std::shared_ptr<tg_future::State> state = std::make_shared<tg_future::State>()) {
  auto made = std::make_unique<tg_future>();
  made->state = state;
  future.then([state, fill = std::move(fill)](const Future<T>& done) {
    complete(*state, [&](tg_value& value) { fill(value, done.get()); });
  });
  return made.release();
}

inline void fill_arrays(tg_value& value, NamedArrays& arrays) {
  value.arrays.values = std::move(arrays);
  value.has_arrays = true;
}

inline void fill_times(tg_value& value, const std::vector<DispatchTime>& times) {
  value.text = detail::json_of(times);
}

// Reports the progress of compilation to a future.
CompileCallback progress_of(const std::shared_ptr<tg_future::State>& state);

Feed feed_of(const tg_arrays* arrays);

}  // namespace tensorgrad::c
