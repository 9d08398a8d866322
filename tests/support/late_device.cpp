#include "tests/support/late_device.h"

#include <array>
#include <utility>

#include "runtime/cpu/cpu_device.h"
#include "tensorgrad/error.h"

namespace tensorgrad {

namespace {

// Some reads and buffers outlive their owner, as on a GPU.
class LateBuffer : public runtime::Buffer {
 public:
  LateBuffer(std::shared_ptr<runtime::Buffer> b, std::int64_t n)
      : buffer(std::move(b)), elements(n) {}
  const std::shared_ptr<runtime::Buffer> buffer;
  const std::int64_t elements;
};

const std::shared_ptr<runtime::Buffer>& of(const runtime::Buffer& buffer) {
  return static_cast<const LateBuffer&>(buffer).buffer;
}

std::exception_ptr loss() {
  return std::make_exception_ptr(DeviceError("late: the device was lost"));
}

}  // namespace

LateDevice::LateDevice(Pace pace) : cpu_(runtime::make_cpu_device(1)), pace_(pace) {}

LateDevice::~LateDevice() { lose(); }

void LateDevice::lose() {
  std::deque<Entry> entries;
  {
    const std::lock_guard lock(mutex_);
    lost_ = true;
    submitted_ = 0;
    entries.swap(entries_);
  }
  for (const Entry& entry : entries)
    if (entry.fail) entry.fail(loss());
}

void LateDevice::add(std::function<void()> execute,
                     std::function<void(const std::exception_ptr&)> fail) {
  const std::lock_guard lock(mutex_);
  if (lost_) std::rethrow_exception(loss());
  entries_.push_back({std::move(execute), std::move(fail)});
}

template <class T, class F>
Completion<T> LateDevice::later(F make) {
  const Completion<T> out;
  add(
      [out, make] {
        try {
          out.set(make());
        } catch (...) {
          out.set_error(std::current_exception());
        }
      },
      [out](const std::exception_ptr& error) { out.set_error(error); });
  return out;
}

std::size_t LateDevice::pump(std::size_t count) {
  const std::lock_guard one_after_the_other(pumping_);
  for (std::size_t pumped = 0; pumped < count; ++pumped) {
    std::unique_lock lock(mutex_);
    if (entries_.empty()) return pumped;
    const Entry entry = std::move(entries_.front());
    entries_.pop_front();
    lock.unlock();
    entry.execute();
  }
  return count;
}

std::size_t LateDevice::pump_all() {
  std::size_t all = 0;
  while (const std::size_t some = pump()) all += some;
  return all;
}

bool LateDevice::poll(std::chrono::nanoseconds) { return pace_ == Pace::by_poll && pump() > 0; }

Completion<std::shared_ptr<runtime::Buffer>> LateDevice::allocate(std::int64_t elements,
                                                                  std::string_view what) {
  return later<std::shared_ptr<runtime::Buffer>>(
      [this, elements, name = std::string(what)]() -> std::shared_ptr<runtime::Buffer> {
        if (std::exchange(no_memory_, false))
          throw OutOfMemoryError("late: out of memory: for " + name);
        return std::make_shared<LateBuffer>(cpu_->allocate(elements, name).get(), elements);
      });
}

void LateDevice::clear(runtime::Buffer& buffer) {
  add([this, to = of(buffer)] { cpu_->clear(*to); });
}

void LateDevice::upload(runtime::Buffer& buffer, std::int64_t offset,
                        std::span<const std::byte> bytes) {
  if (refuse_uploads_) throw DeviceError("late: refused");
  add([this, to = of(buffer), offset, copy = std::vector(bytes.begin(), bytes.end())] {
    cpu_->upload(*to, offset, copy);
  });
}

Completion<Done> LateDevice::read(const runtime::Buffer& buffer, std::int64_t offset,
                                  std::span<std::byte> to, std::shared_ptr<const void> owner) {
  return later<Done>([this, from = of(buffer), offset, to, owner] {
    if (owner.use_count() > 1) cpu_->read(*from, offset, to, nullptr).get();
    return Done{};
  });
}

Completion<std::shared_ptr<const runtime::Emitted>> LateDevice::emit(
    std::vector<ir::Kernel> kernels, int tag, CompileCallback progress) {
  return later<std::shared_ptr<const runtime::Emitted>>(
      [this, kernels, tag, progress] { return cpu_->emit(kernels, tag, progress).get(); });
}

Completion<std::shared_ptr<runtime::Loaded>> LateDevice::load(
    std::shared_ptr<const runtime::Emitted> emitted, CompileCallback progress,
    runtime::Combine combine) {
  return later<std::shared_ptr<runtime::Loaded>>(
      [this, emitted, progress, combine] { return cpu_->load(emitted, progress, combine).get(); });
}

// As on a GPU, a run computes while the buffer for bad ids contains one, and updates nothing.
void LateDevice::submit(const std::shared_ptr<runtime::Loaded>& loaded,
                        const runtime::Spaces& spaces) {
  {
    const std::lock_guard lock(mutex_);
    ++submitted_;
  }
  add([this, loaded, spaces] {
    {
      const std::lock_guard lock(mutex_);
      --submitted_;
    }
    runtime::Spaces own;
    for (std::size_t i = 0; i < spaces.space.size(); ++i)
      if (spaces[i]) own[i] = of(*spaces[i]);
    own.faults = of(*spaces.faults);
    std::array<std::byte, 4 * runtime::kFaultElements> faults{};
    cpu_->read(*own.faults, 0, faults, nullptr).get();
    if (!failure_in(faults)) return cpu_->submit(loaded, own);
    struct Saved {
      std::shared_ptr<runtime::Buffer> buffer;
      std::vector<std::byte> bytes;
    };
    std::vector<Saved> saved;
    for (const ir::Space space : {ir::Space::parameters, ir::Space::state}) {
      const auto& buffer = spaces[static_cast<std::size_t>(space)];
      if (!buffer) continue;
      const auto& late = static_cast<const LateBuffer&>(*buffer);
      saved.push_back(
          {late.buffer, std::vector<std::byte>(static_cast<std::size_t>(4 * late.elements))});
      cpu_->read(*late.buffer, 0, saved.back().bytes, nullptr).get();
    }
    cpu_->submit(loaded, own);
    for (const Saved& each : saved) cpu_->upload(*each.buffer, 0, each.bytes);
    cpu_->upload(*own.faults, 0, faults);
  });
}

Completion<Done> LateDevice::done() {
  return later<Done>([] { return Done{}; });
}

void LateDevice::profile(bool on) {
  add([this, on] { cpu_->profile(on); });
}

Completion<std::vector<LateDevice::Time>> LateDevice::take_times(runtime::Loaded& loaded) {
  return later<std::vector<Time>>([this, &loaded] { return cpu_->take_times(loaded).get(); });
}

namespace {

// Opens a device at the first poll.
class Opener : public Pollable {
 public:
  Completion<std::shared_ptr<runtime::Device>> device;

  bool poll(std::chrono::nanoseconds) override {
    if (device.ready()) return false;
    device.set(std::make_shared<LateDevice>(LateDevice::Pace::by_poll));
    return true;
  }
  std::chrono::seconds patience() const override { return std::chrono::seconds(60); }
};

}  // namespace

void add_late_device() {
  runtime::add_device("late", [](int) {
    const auto opener = std::make_shared<Opener>();
    return runtime::Opening(opener->device, opener);
  });
}

void add_late_device(const std::string& name, std::shared_ptr<LateDevice> device) {
  runtime::add_device(name, [device = std::move(device)](int) {
    return runtime::Opening(std::shared_ptr<runtime::Device>(device));
  });
}

}  // namespace tensorgrad
