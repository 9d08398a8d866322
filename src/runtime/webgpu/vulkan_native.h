// Whether Vulkan has any driver. Asked before Dawn is, because Dawn complains on stderr when there
// is none, and because the answer tells what to install.
#pragma once

namespace tensorgrad::webgpu {

class Vulkan {
 public:
  enum class State { no_loader, no_driver, ready };

  Vulkan();
  ~Vulkan();
  Vulkan(const Vulkan&) = delete;
  Vulkan& operator=(const Vulkan&) = delete;

  State state() const { return state_; }

 private:
  State state_ = State::no_loader;
  void* loader_ = nullptr;
  void* instance_ = nullptr;  // kept while Dawn makes its own, so that drivers are loaded once
};

}  // namespace tensorgrad::webgpu
