// An open device: its handles, what it reports, and waiting with an end.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "runtime/webgpu/gpu.h"

namespace tensorgrad::webgpu {

// Filled by callbacks, on any thread; emptied by Connection::check.
class Reports {
 public:
  void error(api::ErrorType type, std::string_view message);
  void lost(std::string_view message);
  void raise();  // the first error, once; the loss of the device, always
  bool is_lost() {
    std::lock_guard lock(mutex_);
    return !lost_.empty();
  }

 private:
  std::atomic<bool> any_ = false;
  std::mutex mutex_;
  std::string error_, lost_;
};

// What a callback is given to write to. It may be called after its caller gave up waiting, at the
// end of the instance at the latest, so it holds a share until then.
template <class T>
void* lent(const std::shared_ptr<T>& target) {
  return new std::shared_ptr<T>(target);
}
// In the callback, which is called once.
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

  void check();  // raises what was reported
  void watch();  // the same, and asks whether an adopted device is lost
  bool is_lost() const { return reports_->is_lost(); }
  void report(api::ErrorType type, std::string_view message) { reports_->error(type, message); }
  bool done(api::Future future);                    // never waits
  void wait(api::Future future, const char* what);  // raises when the device is lost or hangs

  // For what is created: errors of this kind go to the matching end_scope, which returns their
  // text.
  void begin_scope(api::ErrorFilter filter);
  std::string end_scope();

  // `what` is for the message when there is no memory.
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
