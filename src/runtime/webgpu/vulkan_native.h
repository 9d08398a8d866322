// Checks whether Vulkan has any driver. Runs before Dawn, because Dawn prints to stderr when there
// is none, and because the answer tells users what to install.
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
  void* instance_ = nullptr;  // kept while Dawn creates its own, so that drivers are loaded once
};

}  // namespace tensorgrad::webgpu
