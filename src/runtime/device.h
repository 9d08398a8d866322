// Device: the interface of a backend. Small on purpose: allocate, upload, load, submit, read.
//
// No call waits. What takes time returns a completion, which poll() completes: its functions run
// with no lock of the device held. An error that is known at once is thrown instead.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/device_model.h"
#include "ir/kernel.h"
#include "support/wait.h"
#include "tensorgrad/completion.h"
#include "tensorgrad/device.h"
#include "tensorgrad/progress.h"

namespace tensorgrad::runtime {

class Buffer {
 public:
  virtual ~Buffer() = default;
};

// A kernel found an id out of range. The results of this kernel and of later ones are undefined.
// Parameters and state are intact, because updates come last and were skipped.
struct IndexFailure {
  int tag = 0;  // of the kernels, as passed to emit()
  ir::NodeId node = -1;
  std::int64_t value = 0;
};

// Kernels as code for a device.
class Emitted {
 public:
  virtual ~Emitted() = default;
  virtual std::string text() const = 0;
};

// Code that is ready to run.
class Loaded {
 public:
  virtual ~Loaded() = default;
  virtual std::string text() const = 0;  // the code that is submitted for a run
  // The number of dispatches, passes and submits per run.
  virtual std::int64_t dispatches() const = 0;
  virtual std::int64_t passes() const { return 0; }
  virtual std::int64_t submits() const { return 0; }
};

// The memory of a run: the spaces of its kernels, and a buffer for bad ids.
struct Spaces {
  std::array<std::shared_ptr<Buffer>, ir::kSpaces> space{};
  std::shared_ptr<Buffer> faults;  // kFaultElements

  std::shared_ptr<Buffer>& operator[](std::size_t i) { return space[i]; }
  const std::shared_ptr<Buffer>& operator[](std::size_t i) const { return space[i]; }
};
inline constexpr std::int64_t kFaultElements = 4;

// How load() combines kernels: apart gives each kernel its own dispatches, to measure them.
enum class Combine : std::uint8_t { together, apart };

class Device : public Pollable {
 public:
  virtual std::string name() const = 0;
  virtual int threads() const = 0;
  // The model that kernels for this device are lowered with.
  virtual const ir::DeviceModel& model() const = 0;

  // Maximum elements of one allocate() call, if there is enough memory.
  virtual std::int64_t largest_buffer() const = 0;
  // Allocates zeroed memory for that many elements of four bytes. The error is an OutOfMemoryError
  // with the name `what` if it does not fit.
  virtual Completion<std::shared_ptr<Buffer>> allocate(std::int64_t elements,
                                                       std::string_view what) = 0;
  virtual void clear(Buffer& buffer) = 0;  // sets all elements to zero
  // The device executes operations in the order of the calls. Offsets are in elements.
  virtual void upload(Buffer& buffer, std::int64_t offset, std::span<const std::byte> bytes) = 0;
  // Reads the bytes as they are after the operations so far. `owner` keeps `to` alive; if nobody
  // else holds it when the bytes arrive, they are dropped. A read of more than kSnapshot bytes goes
  // piece by piece: leave the buffer unchanged until it is done.
  static constexpr std::int64_t kSnapshot = 16 << 20;
  virtual Completion<Done> read(const Buffer& buffer, std::int64_t offset, std::span<std::byte> to,
                                std::shared_ptr<const void> owner) = 0;
  // `tag` (0 to 63) identifies these kernels among all kernels that share a buffer for bad ids.
  // An exception of `progress` is the error.
  virtual Completion<std::shared_ptr<const Emitted>> emit(std::vector<ir::Kernel> kernels,
                                                          int tag = 0,
                                                          CompileCallback progress = {}) = 0;
  // `emitted` must come from this device. The first run reports to `progress` too, if the driver
  // compiles only then.
  virtual Completion<std::shared_ptr<Loaded>> load(std::shared_ptr<const Emitted> emitted,
                                                   CompileCallback progress = {},
                                                   Combine combine = Combine::together) = 0;
  // Runs the kernels in order, or enqueues them. A device that runs them later keeps `loaded` and
  // the buffers until then.
  virtual void submit(const std::shared_ptr<Loaded>& loaded, const Spaces& spaces) = 0;
  // Whether a run has finished when submit() returns.
  virtual bool immediate() const = 0;
  // Whether so much is enqueued that a program which can wait should wait.
  virtual bool full() = 0;
  // Ready when all submitted work has finished.
  virtual Completion<Done> done() = 0;
  // Starts or stops recording the time of each dispatch. Throws a DeviceError if the device cannot
  // measure it.
  virtual void profile(bool on) = 0;
  struct Time {
    std::int64_t kernel = 0;  // index among the loaded kernels
    std::string name;
    double microseconds = 0;
  };
  // The times of the last run of `loaded`, which has its kernels apart.
  virtual Completion<std::vector<Time>> take_times(Loaded& loaded) = 0;
  // Decodes the bytes of a buffer for bad ids. While it contains a failure, no run that shares the
  // buffer changes parameters or state.
  static std::optional<IndexFailure> failure_in(std::span<const std::byte> faults);
};

// Encodes a failure for the buffer for bad ids.
std::array<std::int32_t, 2> fault_words(const IndexFailure& failure);

// A device that is being opened.
struct Opening {
  Completion<std::shared_ptr<Device>> device;
  std::shared_ptr<Pollable> source;  // completes it while it is polled; null once it is there

  Opening(std::shared_ptr<Device> open) : device(std::move(open)) {}
  Opening(Completion<std::shared_ptr<Device>> later, std::shared_ptr<Pollable> by)
      : device(std::move(later)), source(std::move(by)) {}
};

// `name` is "auto" or a name from devices(); otherwise throws a UserError. Programs share devices.
Opening open_device(const std::string& name, int threads);
// The same, but not shared, so that several threads do not wait for each other's kernels to
// compile.
Opening open_own_device(const std::string& name, int threads);

// From now on, open_device() opens this device by this name. For tests.
using OpenDevice = std::function<Opening(int threads)>;
void add_device(const std::string& name, OpenDevice open);

}  // namespace tensorgrad::runtime
