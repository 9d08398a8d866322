// Calls of a Device that wait for their completions, for programs that may wait.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "runtime/device.h"
#include "support/wait.h"

namespace tensorgrad::runtime::blocking {

inline std::shared_ptr<Device> wait_for_open(const Opening& opening) {
  if (!opening.source) return opening.device.get();
  return wait_for(*opening.source, opening.device, "opening the device");
}

inline std::shared_ptr<Device> open_device(const std::string& name, int threads) {
  return wait_for_open(runtime::open_device(name, threads));
}

inline std::shared_ptr<Device> open_own_device(const std::string& name, int threads) {
  return wait_for_open(runtime::open_own_device(name, threads));
}

inline std::shared_ptr<Buffer> allocate(Device& device, std::int64_t elements,
                                        std::string_view what) {
  return wait_for(device, device.allocate(elements, what), "allocating memory");
}

inline std::shared_ptr<const Emitted> emit(Device& device, std::vector<ir::Kernel> kernels,
                                           int tag = 0, CompileCallback progress = {}) {
  return wait_for(device, device.emit(std::move(kernels), tag, std::move(progress)),
                  "choosing tiles");
}

inline std::shared_ptr<Loaded> load(Device& device, std::shared_ptr<const Emitted> emitted,
                                    CompileCallback progress = {},
                                    Combine combine = Combine::together) {
  return wait_for(device, device.load(std::move(emitted), std::move(progress), combine),
                  "compiling kernels");
}

// Waits while the device is full.
inline void submit(Device& device, const std::shared_ptr<Loaded>& loaded, const Spaces& spaces) {
  if (device.full())
    wait_until(
        device, [&] { return !device.full(); }, "an earlier run");
  device.submit(loaded, spaces);
}

inline void read(Device& device, const Buffer& buffer, std::int64_t offset,
                 std::span<std::byte> bytes) {
  // If the wait throws, the bytes that arrive later have no owner and are dropped.
  const auto owner = std::make_shared<Done>();
  wait_for(device, device.read(buffer, offset, bytes, owner), "reading");
}

inline void finish(Device& device) { wait_for(device, device.done(), "a run"); }

}  // namespace tensorgrad::runtime::blocking
