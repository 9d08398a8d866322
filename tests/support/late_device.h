// A device on which everything arrives late: the CPU behind a queue. Each call is an entry of the
// queue, and nothing happens before the entry is pumped.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "runtime/device.h"

namespace tensorgrad {

class LateDevice : public runtime::Device {
 public:
  // by_poll: each poll() pumps one entry. by_hand: only pump() does.
  enum class Pace { by_poll, by_hand };

  explicit LateDevice(Pace pace);
  ~LateDevice() override;  // what is queued fails

  // Executes the next entries; returns how many there were.
  std::size_t pump(std::size_t count = 1);
  std::size_t pump_all();
  // How many entries are queued.
  std::size_t queued() const {
    const std::lock_guard lock(mutex_);
    return entries_.size();
  }
  // From now on, everything fails.
  void lose();
  // The next allocation fails.
  void run_out_of_memory() { no_memory_ = true; }
  // Calls of upload() throw.
  void refuse_uploads(bool refuse) { refuse_uploads_ = refuse; }

  std::string name() const override { return "late"; }
  int threads() const override { return cpu_->threads(); }
  const ir::DeviceModel& model() const override { return cpu_->model(); }
  std::int64_t largest_buffer() const override { return cpu_->largest_buffer(); }
  Completion<std::shared_ptr<runtime::Buffer>> allocate(std::int64_t elements,
                                                        std::string_view what) override;
  void clear(runtime::Buffer& buffer) override;
  void upload(runtime::Buffer& buffer, std::int64_t offset,
              std::span<const std::byte> bytes) override;
  Completion<Done> read(const runtime::Buffer& buffer, std::int64_t offset, std::span<std::byte> to,
                        std::shared_ptr<const void> owner) override;
  Completion<std::shared_ptr<const runtime::Emitted>> emit(std::vector<ir::Kernel> kernels, int tag,
                                                           CompileCallback progress) override;
  Completion<std::shared_ptr<runtime::Loaded>> load(std::shared_ptr<const runtime::Emitted> emitted,
                                                    CompileCallback progress,
                                                    runtime::Combine combine) override;
  void submit(const std::shared_ptr<runtime::Loaded>& loaded,
              const runtime::Spaces& spaces) override;
  bool immediate() const override { return false; }
  bool full() override {
    const std::lock_guard lock(mutex_);
    return submitted_ >= kMost;
  }
  Completion<Done> done() override;
  void profile(bool on) override;
  Completion<std::vector<Time>> take_times(runtime::Loaded& loaded) override;
  bool poll(std::chrono::nanoseconds longest) override;
  std::chrono::seconds patience() const override { return std::chrono::seconds(60); }

  static constexpr int kMost = 3;  // submitted runs before it is full

 private:
  struct Entry {
    std::function<void()> execute;
    std::function<void(const std::exception_ptr&)> fail;
  };

  void add(std::function<void()> execute, std::function<void(const std::exception_ptr&)> fail = {});
  template <class T, class F>
  Completion<T> later(F make);

  std::shared_ptr<runtime::Device> cpu_;
  Pace pace_;
  std::mutex pumping_;        // held while an entry is executed
  mutable std::mutex mutex_;  // of the following
  std::deque<Entry> entries_;
  int submitted_ = 0;
  bool lost_ = false, no_memory_ = false, refuse_uploads_ = false;
};

// Makes "late" a name for a new LateDevice, which opens late, too.
void add_late_device();
// The next program on `name` gets this device.
void add_late_device(const std::string& name, std::shared_ptr<LateDevice> device);

}  // namespace tensorgrad
