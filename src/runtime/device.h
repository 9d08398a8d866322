// Device: what a backend offers. Small on purpose: allocate, upload, load, submit, read.
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
#include "tensorgrad/device.h"
#include "tensorgrad/progress.h"

namespace tensorgrad::runtime {

class Buffer {
 public:
  virtual ~Buffer() = default;
};

// A kernel met an id outside its range. What it and later kernels would have written is undefined,
// but for parameters and state: updates come last and were not made.
struct IndexFailure {
  int tag = 0;  // of the kernels, as load() was given it
  ir::NodeId node = -1;
  std::int64_t value = 0;
};

// Kernels as the code that a device runs.
class Emitted {
 public:
  virtual ~Emitted() = default;
  virtual std::string text() const = 0;
};

// Code made ready to run.
class Loaded {
 public:
  virtual ~Loaded() = default;
  virtual std::string text() const = 0;  // what is submitted for a run
  // What the device is given each time they run.
  virtual std::int64_t dispatches() const = 0;
  virtual std::int64_t passes() const { return 0; }
  virtual std::int64_t submits() const { return 0; }
};

// The memory of a run: the spaces of its kernels, and a place for bad ids.
struct Spaces {
  std::array<Buffer*, ir::kSpaces> space{};
  Buffer* faults = nullptr;  // kFaultElements

  Buffer*& operator[](std::size_t i) { return space[i]; }
  Buffer* operator[](std::size_t i) const { return space[i]; }
};
inline constexpr std::int64_t kFaultElements = 4;

// Bytes as they were when they were asked for.
class Pending {
 public:
  virtual ~Pending() = default;
  virtual bool ready() = 0;                       // never waits
  virtual std::span<const std::byte> wait() = 0;  // valid as long as this lives
};

class Device {
 public:
  virtual ~Device() = default;
  virtual std::string name() const = 0;
  virtual int threads() const = 0;
  // What kernels for this device are lowered with.
  virtual const ir::DeviceModel& model() const = 0;

  // Elements that allocate() gives at most in one piece, if memory lasts.
  virtual std::int64_t largest_buffer() const = 0;
  // Zeroed memory for that many elements of four bytes; `what` names it when it does not fit, in an
  // OutOfMemoryError.
  virtual std::unique_ptr<Buffer> allocate(std::int64_t elements, std::string_view what) = 0;
  virtual void clear(Buffer& buffer) = 0;  // all zeros again
  // Things happen in the order of the calls. Offsets are in elements.
  virtual void upload(Buffer& buffer, std::int64_t offset, std::span<const std::byte> bytes) = 0;
  virtual void read(const Buffer& buffer, std::int64_t offset, std::span<std::byte> bytes) = 0;
  virtual std::unique_ptr<Pending> read_later(const Buffer& buffer, std::int64_t offset,
                                              std::int64_t bytes) = 0;
  // `tag` (0 to 63) tells the kernels that share one place for bad ids apart.
  virtual std::shared_ptr<const Emitted> emit(const std::vector<ir::Kernel>& kernels, int tag = 0,
                                              const CompileCallback& progress = {}) = 0;
  // `emitted` is this device's. `progress` may be called by submit() too: by the first one, where
  // the driver compiles only then, and for profile().
  virtual std::shared_ptr<Loaded> load(std::shared_ptr<const Emitted> emitted,
                                       const CompileCallback& progress = {}) = 0;
  // Runs the kernels in order, or sees to it that they will. `loaded` and the buffers outlive the
  // run.
  virtual void submit(Loaded& loaded, const Spaces& spaces) = 0;
  // Whether submit() returns when all is done.
  virtual bool immediate() const = 0;
  // Until everything that was submitted is done.
  virtual void wait() = 0;
  // From now on, how long each dispatch takes is noted; a DeviceError where the device cannot tell.
  virtual void profile(bool on) = 0;
  struct Time {
    std::int64_t kernel = 0;  // its place among those of load()
    std::string name;
    double microseconds = 0;
  };
  // Of the last run of `loaded`; waits.
  virtual std::vector<Time> take_times(Loaded& loaded) = 0;
  // What the bytes of a place for bad ids say. As long as they say something, no run that shares
  // the place changes parameters or state.
  static std::optional<IndexFailure> failure_in(std::span<const std::byte> faults);
};

// What is noted there for a bad id.
std::array<std::int32_t, 2> fault_words(const IndexFailure& failure);

// "auto" or a name from devices(); a UserError otherwise. Devices are shared between programs.
std::shared_ptr<Device> open_device(const std::string& name, int threads);
// The same, shared with nobody: so that several threads do not wait for each other's kernels to
// compile.
std::shared_ptr<Device> open_own_device(const std::string& name, int threads);

}  // namespace tensorgrad::runtime
