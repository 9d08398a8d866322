// The C interface does not list adapters; it returns the best one for a request. The requests here
// find a fast GPU, a low-power GPU and a fallback. Of two equal cards they find only the first.
#include "runtime/webgpu/adapters.h"

#include <algorithm>
#include <mutex>

#include "runtime/webgpu/vulkan_native.h"
#include "support/fail.h"

namespace tensorgrad::webgpu {

namespace {

// Dawn offers f16 and matrices on NVIDIA only with these. Other adapters and versions ignore them.
constexpr const char* kAdapterToggles[] = {"vulkan_enable_f16_on_nvidia",
                                           "use_vulkan_memory_model"};

Handle<api::AdapterImpl> request(const Library& library, api::RequestAdapterOptions wish) {
  api::DawnToggles toggles;
  toggles.enabled_count = std::size(kAdapterToggles);
  toggles.enabled = kAdapterToggles;
  wish.next = &toggles.chain;
  api::Adapter adapter = nullptr;
  api::CallbackInfo<api::RequestAdapterCallback> done;
  done.callback = [](api::Status status, api::Adapter given, api::StringView, void* result, void*) {
    if (status == api::Status::success) *static_cast<api::Adapter*>(result) = given;
  };
  done.userdata1 = &adapter;
  api::FutureWaitInfo wait{library.call.InstanceRequestAdapter(instance(library), &wish, done)};
  library.call.InstanceWaitAny(instance(library), 1, &wait, 0);  // completes at once
  return {adapter, library.call.AdapterRelease};
}

}  // namespace

std::vector<FoundAdapter> find_adapters(const Library& library) {
  std::vector<FoundAdapter> found;
  const Vulkan vulkan;
  if (vulkan.state() != Vulkan::State::ready) return found;
  api::RequestAdapterOptions fast, saving, fallback;
  fast.power_preference = api::PowerPreference::high_performance;
  saving.power_preference = api::PowerPreference::low_power;
  fallback.force_fallback_adapter = 1;
  for (const api::RequestAdapterOptions& wish : {fast, saving, fallback}) {
    FoundAdapter one{request(library, wish), {}};
    if (!one.adapter) continue;
    one.info = describe(library, one.adapter.get());
    // Dawn's null backend accepts everything and computes nothing.
    if (one.info.backend == "null") continue;
    const bool known = std::any_of(found.begin(), found.end(), [&](const FoundAdapter& other) {
      return other.info.name == one.info.name && other.info.backend == one.info.backend;
    });
    if (!known) found.push_back(std::move(one));
  }
  std::stable_sort(found.begin(), found.end(), [](const FoundAdapter& a, const FoundAdapter& b) {
    return a.info.software < b.info.software;
  });
  return found;
}

api::Instance instance(const Library& library) {
  static std::mutex mutex;
  static api::Instance made = nullptr;
  std::lock_guard lock(mutex);
  if (!made) {
    const char* const unsafe[] = {"allow_unsafe_apis"};  // matrices are an experiment of Dawn's
    api::DawnToggles toggles;
    toggles.enabled_count = std::size(unsafe);
    toggles.enabled = unsafe;
    api::DawnInstanceDescriptor quiet;
    quiet.chain.next = &toggles.chain;
    quiet.logging_callback = [](std::uint32_t, api::StringView, void*, void*) {};
    const api::InstanceFeatureName timed_wait = api::InstanceFeatureName::timed_wait_any;
    api::InstanceDescriptor descriptor;
    descriptor.next = &quiet.chain;
    descriptor.required_feature_count = library.call.HasInstanceFeature(timed_wait) ? 1 : 0;
    descriptor.required_features = &timed_wait;
    made = library.call.CreateInstance(&descriptor);
    if (!made) throw DeviceError(fmt::format("webgpu: {} created no instance", library.path));
  }
  return made;
}

std::string why_no_adapter() {
  if (Vulkan().state() == Vulkan::State::no_loader) {
    return "the Vulkan loader libvulkan.so.1 is missing\n"
           "  hint: run ./tg webgpu in tensorgrad's source tree, or: sudo apt-get install "
           "libvulkan1";
  }
  return "WebGPU found no usable GPU driver\n"
         "  hint: install the Vulkan driver of the GPU's vendor; or, to try things out without a "
         "GPU: "
         "./tg webgpu --software";
}

}  // namespace tensorgrad::webgpu
