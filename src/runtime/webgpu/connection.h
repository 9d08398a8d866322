// An open device: its handles, its error reports, and the futures that have not arrived yet.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "runtime/webgpu/gpu.h"
#include "tensorgrad/completion.h"

namespace tensorgrad::webgpu {

// Written by callbacks on any thread; read by Connection::check.
class Reports {
 public:
  void error(api::ErrorType type, std::string_view message);
  void lost(std::string_view message);
  void raise();  // throws the first error once; throws the loss of the device every time
  bool any() const { return any_; }
  bool is_lost() {
    std::lock_guard lock(mutex_);
    return !lost_.empty();
  }

 private:
  std::atomic<bool> any_ = false;
  std::mutex mutex_;
  std::string error_, lost_;
};

// Passes shared ownership of `target` to a callback. The callback may run after its caller gave up
// waiting, at the latest when the instance ends.
template <class T>
void* lent(const std::shared_ptr<T>& target) {
  return new std::shared_ptr<T>(target);
}
// Takes the ownership back in the callback, which runs once.
template <class T>
std::shared_ptr<T> taken_back(void* lent) {
  const std::unique_ptr<std::shared_ptr<T>> owned(static_cast<std::shared_ptr<T>*>(lent));
  return *owned;
}

class Connection {
 public:
  Connection(const Library& library, Handle<api::AdapterImpl> adapter, const GpuOptions& options);
  Connection(const Library& library, api::Device adopted, const GpuOptions& options);
  ~Connection();

  const api::Functions& call;
  const GpuOptions options;
  AdapterInfo info;
  api::Device device() const { return device_.get(); }
  api::Queue queue() const { return queue_.get(); }
  bool adopted() const { return adopted_; }

  void check();  // throws reported errors
  void watch();  // check(), also for the loss of an adopted device
  bool is_lost() const { return reports_->is_lost(); }
  bool done(api::Future future);  // does not block

  // Calls `then` when the future has arrived: from poll(), or with an error if the device fails
  // before. Futures of the queue arrive in order.
  using Then = std::function<void(const std::exception_ptr& error)>;
  void when_queue(api::Future future, Then then) { queued_.push_back({future, std::move(then)}); }
  void when_object(api::Future future, Then then) { objects_.push_back({future, std::move(then)}); }
  // Runs the functions whose futures have arrived. If there is none, blocks for `longest` at most.
  bool poll(std::chrono::nanoseconds longest);
  // Ends everything that is under way with this error.
  void abort(const std::exception_ptr& error);

  // For the creation of objects: errors of this kind go to the matching end_scope(), whose
  // completion is their text, or empty.
  void begin_scope(api::ErrorFilter filter);
  Completion<std::string> end_scope();
  // For an adopted device, whose owner has the callback for errors: the next call throws the error.
  void report_end_of_scope();

  // The buffer can be used at once. The completion is an OutOfMemoryError if there was no memory;
  // commands that use the buffer are refused then. `what` names the buffer in the error.
  struct NewBuffer {
    Handle<api::BufferImpl> handle;
    Completion<Done> checked;
  };
  NewBuffer make_buffer(std::uint64_t bytes, std::uint64_t usage, std::string_view what);

  // Whether errors of a submission need a scope: an owner has the callback for errors, or a buffer
  // may turn out to have no memory, which is then the reason to report.
  bool needs_scope() const { return adopted_ || *unchecked_ > 0; }

  void inject(Fault fault);

 private:
  struct UnderWay {
    api::Future future;
    Then then;
  };

  void describe_device();
  bool run_arrived();
  bool end_if_failed();  // ends what is under way if an error was reported

  Handle<api::InstanceImpl> instance_;
  Handle<api::DeviceImpl> device_;
  Handle<api::QueueImpl> queue_;
  std::shared_ptr<Reports> reports_;
  bool adopted_ = false;
  bool buffer_fault_ = false;
  std::shared_ptr<int> unchecked_ = std::make_shared<int>(0);  // buffers whose check is under way
  api::Future lost_;
  std::deque<UnderWay> queued_, objects_;
  std::vector<api::Future> aborted_;  // their callbacks run when the device is destroyed
};

}  // namespace tensorgrad::webgpu
