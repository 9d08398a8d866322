#include "runtime/webgpu/vulkan_native.h"

#include <dlfcn.h>

#include <cstdint>

namespace tensorgrad::webgpu {

namespace {

// VkInstanceCreateInfo without layers or extensions.
struct InstanceCreateInfo {
  std::uint32_t type = 1;
  const void* next = nullptr;
  std::uint32_t flags = 0;
  const void* application = nullptr;
  std::uint32_t layer_count = 0;
  const void* layers = nullptr;
  std::uint32_t extension_count = 0;
  const void* extensions = nullptr;
};

}  // namespace

Vulkan::Vulkan() {
  loader_ = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!loader_) return;
  state_ = State::no_driver;
  const auto create = reinterpret_cast<int (*)(const InstanceCreateInfo*, const void*, void**)>(
      dlsym(loader_, "vkCreateInstance"));
  const InstanceCreateInfo info;
  if (create && create(&info, nullptr, &instance_) == 0 && instance_) state_ = State::ready;
}

Vulkan::~Vulkan() {
  if (instance_) {
    const auto destroy =
        reinterpret_cast<void (*)(void*, const void*)>(dlsym(loader_, "vkDestroyInstance"));
    if (destroy) destroy(instance_, nullptr);
  }
  if (loader_) dlclose(loader_);
}

}  // namespace tensorgrad::webgpu
