// Device: what a backend offers. Small on purpose: allocate, upload, load, submit, read.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/kernel.h"
#include "tensorgrad/device.h"

namespace tensorgrad::runtime {

class Buffer {
 public:
  virtual ~Buffer() = default;
};

// Kernels made ready to run.
class Loaded {
 public:
  virtual ~Loaded() = default;
  virtual std::int64_t dispatches() const = 0;
};

using Spaces = std::array<Buffer*, ir::kSpaces>;

// A kernel met an id outside its range. Everything it and later kernels would have written is
// undefined, except that updates, which come last, were not made.
struct IndexFailure {
  ir::NodeId node = -1;
  std::int64_t value = 0, extent = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual std::string name() const = 0;
  virtual int threads() const = 0;

  // Zeroed memory for that many elements of four bytes.
  virtual std::unique_ptr<Buffer> allocate(std::int64_t elements) = 0;
  virtual void upload(Buffer& buffer, std::int64_t offset, std::span<const std::byte> bytes) = 0;
  virtual void read(const Buffer& buffer, std::int64_t offset, std::span<std::byte> bytes) = 0;
  virtual std::unique_ptr<Loaded> load(const std::vector<ir::Kernel>& kernels) = 0;
  // Runs the kernels in order. May throw IndexFailure.
  virtual void submit(const Loaded& loaded, const Spaces& spaces) = 0;
};

// "auto" or a name from devices(); a UserError otherwise. Devices are shared between programs.
std::shared_ptr<Device> open_device(const std::string& name, int threads);

}  // namespace tensorgrad::runtime
