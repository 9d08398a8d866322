// An open device: its handles, its error reports, and waits with a time limit.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "runtime/webgpu/gpu.h"

namespace tensorgrad::webgpu {

// Written by callbacks on any thread; read by Connection::check.
class Reports {
 public:
  void error(api::ErrorType type, std::string_view message);
  void lost(std::string_view message);
  void raise();  // throws the first error once; throws the loss of the device every time
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
  void report(api::ErrorType type, std::string_view message) { reports_->error(type, message); }
  bool done(api::Future future);                    // does not block
  void wait(api::Future future, const char* what);  // throws if the device is lost or hangs

  // For the creation of objects: errors of this kind go to the matching end_scope(), which returns
  // their text.
  void begin_scope(api::ErrorFilter filter);
  std::string end_scope();

  // `what` names the buffer in an out-of-memory error.
  Handle<api::BufferImpl> make_buffer(std::uint64_t bytes, std::uint64_t usage,
                                      std::string_view what);

  void inject(Fault fault);

 private:
  void describe_device();

  Handle<api::InstanceImpl> instance_;
  Handle<api::DeviceImpl> device_;
  Handle<api::QueueImpl> queue_;
  std::shared_ptr<Reports> reports_;
  bool adopted_ = false;
  bool buffer_fault_ = false;
  api::Future lost_;
};

}  // namespace tensorgrad::webgpu
