// The Library of a web page. Its functions unpack their descriptors and call browser.js, which
// works on the page's GPUDevice. The page opened the device before it made this instance, so that
// an adapter and a device are there at once. What arrives later calls webgpu_arrived(). Handles are
// numbers of browser.js. Devices, buffers and shader modules are structs here, because they know
// what they wait for; all devices use the same GPUDevice.
//
// Functions for devices of the program (Gpu::adopt) are null: a page passes its device on instead.
#include <emscripten/em_macros.h>

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/webgpu/browser.h"
#include "runtime/webgpu/library.h"

namespace tensorgrad::webgpu {

namespace api {

// An open device.
struct DeviceImpl {
  CallbackInfo<DeviceLostCallback> on_lost;
  UncapturedErrorCallbackInfo on_error;
  bool told_lost = false;

  void lose(LostReason reason, std::string_view message) {
    if (std::exchange(told_lost, true)) return;
    const Device self = this;
    on_lost.callback(&self, reason, message, on_lost.userdata1, on_lost.userdata2);
  }
  void error(ErrorType type, std::string_view message) const {
    const Device self = const_cast<Device>(this);
    on_error.callback(&self, type, message, on_error.userdata1, on_error.userdata2);
  }
};

struct BufferImpl {
  Device device;
  int number;
  void* mapped = nullptr;  // a copy, because the page's memory is not ours
};

struct ShaderModuleImpl {
  Device device;
  int number;
};

}  // namespace api

namespace {

template <class Object>
Object handle(int number) {
  return reinterpret_cast<Object>(static_cast<std::uintptr_t>(number));
}
template <class Object>
int number(Object* handle) {
  return static_cast<int>(reinterpret_cast<std::uintptr_t>(handle));
}

// A request that the page answers later. Whoever waits for its future takes the answer.
struct Request {
  struct Message {
    api::MessageType type;
    int line, column;
    std::string text;
  };
  api::Device device = nullptr;
  std::function<void(const Request&)> deliver;
  bool arrived = false;
  api::Status status{};
  int value = 0;  // a handle or an ErrorType
  std::string text;
  std::vector<Message> messages;
};

struct Page {
  std::map<int, Request> requests;
  int last_request = 0;
  std::vector<api::Device> devices;  // the open ones
  std::string lost;                  // why the GPUDevice is gone; empty: it is not
};

Page& page() {
  static Page page;
  return page;
}

constexpr api::Status kFailed{4};

// Registers a request. `start` asks the page for it.
template <class Start>
api::Future request(api::Device device, std::function<void(const Request&)> deliver, Start start) {
  const int id = ++page().last_request;
  page().requests.emplace(id, Request{device, std::move(deliver), false, {}, 0, {}, {}});
  start(id);
  return {static_cast<std::uint64_t>(id)};
}

// The text that browser.js allocated.
std::string taken(char* text) {
  std::string out = text ? text : "";
  std::free(text);
  return out;
}

int length(std::string_view text) { return static_cast<int>(text.size()); }

// --- instance, adapter, device ------------------------------------------------------------------

// Never blocks: a page cannot wait.
api::WaitStatus InstanceWaitAny(api::Instance, std::size_t count, api::FutureWaitInfo* infos,
                                std::uint64_t) {
  bool any = false;
  for (std::size_t i = 0; i < count; ++i) {
    const auto found = page().requests.find(static_cast<int>(infos[i].future.id));
    if (found != page().requests.end()) {
      if (!found->second.arrived) continue;
      const Request answer = std::move(found->second);
      page().requests.erase(found);
      answer.deliver(answer);
    }
    infos[i].completed = 1;
    any = true;
  }
  return any ? api::WaitStatus::success : api::WaitStatus::timed_out;
}

// A text of the page that lives until AdapterInfoFreeMembers.
api::StringView info_text(const char* key) {
  api::StringView view;
  view.data = webgpu_info_text(key);
  return view;
}

api::Status AdapterGetInfo(api::Adapter, api::AdapterInfo* info) {
  info->vendor = info_text("vendor");
  info->architecture = info_text("architecture");
  info->device = info_text("name");
  info->description = info_text("description");
  info->backend_type = api::BackendType::webgpu;
  info->adapter_type = webgpu_info_number("isFallbackAdapter") != 0 ? api::AdapterType::cpu
                                                                    : api::AdapterType::unknown;
  info->subgroup_min_size = static_cast<std::uint32_t>(webgpu_info_number("subgroupMinSize"));
  info->subgroup_max_size = static_cast<std::uint32_t>(webgpu_info_number("subgroupMaxSize"));
  return api::Status::success;
}

void AdapterInfoFreeMembers(api::AdapterInfo info) {
  for (const api::StringView& text :
       {info.vendor, info.architecture, info.device, info.description})
    std::free(const_cast<char*>(text.data));
}

// Only the limits that the runtime reads.
api::Status get_limits(int opened, api::Limits* limits) {
  const auto whole = [&](const char* key, std::uint64_t& to) {
    to = static_cast<std::uint64_t>(webgpu_limit(opened, key));
  };
  const auto word = [&](const char* key, std::uint32_t& to) {
    to = static_cast<std::uint32_t>(webgpu_limit(opened, key));
  };
  whole("maxBufferSize", limits->max_buffer_size);
  whole("maxStorageBufferBindingSize", limits->max_storage_buffer_binding_size);
  whole("maxUniformBufferBindingSize", limits->max_uniform_buffer_binding_size);
  word("minStorageBufferOffsetAlignment", limits->min_storage_buffer_offset_alignment);
  word("minUniformBufferOffsetAlignment", limits->min_uniform_buffer_offset_alignment);
  word("maxStorageBuffersPerShaderStage", limits->max_storage_buffers_per_stage);
  word("maxComputeWorkgroupStorageSize", limits->max_compute_workgroup_storage_size);
  word("maxComputeInvocationsPerWorkgroup", limits->max_compute_invocations_per_workgroup);
  word("maxComputeWorkgroupSizeX", limits->max_compute_workgroup_size_x);
  word("maxComputeWorkgroupSizeY", limits->max_compute_workgroup_size_y);
  word("maxComputeWorkgroupSizeZ", limits->max_compute_workgroup_size_z);
  word("maxComputeWorkgroupsPerDimension", limits->max_compute_workgroups_per_dimension);
  return api::Status::success;
}

api::Bool has_feature(int opened, api::FeatureName feature) {
  switch (feature) {
    case api::FeatureName::timestamp_query:
      return webgpu_feature(opened, "timestamp-query") != 0;
    case api::FeatureName::shader_f16:
      return webgpu_feature(opened, "shader-f16") != 0;
    case api::FeatureName::subgroups:  // some browsers do not report their sizes
      return webgpu_feature(opened, "subgroups") != 0 && webgpu_info_number("subgroupMinSize") > 0;
    default:
      return 0;
  }
}

api::Future AdapterRequestDevice(api::Adapter, const api::DeviceDescriptor* wanted,
                                 api::CallbackInfo<api::RequestDeviceCallback> done) {
  const auto device = page().lost.empty()
                          ? new api::DeviceImpl{wanted->device_lost, wanted->uncaptured_error}
                          : nullptr;
  if (device) page().devices.push_back(device);
  const auto deliver = [device, done](const Request& answer) {
    done.callback(answer.status, device, std::string_view(answer.text), done.userdata1,
                  done.userdata2);
  };
  return request(device, deliver, [&](int id) {
    Request& self = page().requests.at(id);
    self.arrived = true;
    self.status = device ? api::Status::success : kFailed;
    if (!device) self.text = "it was lost: " + page().lost;
  });
}

// The GPUDevice stays open, because it is the page's. What this device waits for ends.
void DeviceDestroy(api::Device device) {
  std::erase(page().devices, device);
  for (auto& [id, each] : page().requests)
    if (each.device == device && !each.arrived) {
      each.arrived = true;
      each.status = kFailed;
      each.text = "the device was closed";
    }
  device->lose(api::LostReason::destroyed, "the device was closed");
}

void DeviceRelease(api::Device device) {
  if (!device) return;
  std::erase(page().devices, device);
  delete device;
}

// --- objects ------------------------------------------------------------------------------------

api::Future DevicePopErrorScope(api::Device device,
                                api::CallbackInfo<api::PopErrorScopeCallback> done) {
  const auto deliver = [done](const Request& answer) {
    done.callback(answer.status, api::ErrorType{static_cast<std::uint32_t>(answer.value)},
                  std::string_view(answer.text), done.userdata1, done.userdata2);
  };
  return request(device, deliver, webgpu_pop_error_scope);
}

api::Buffer DeviceCreateBuffer(api::Device device, const api::BufferDescriptor* wanted) {
  const std::string_view label = wanted->label.view();
  return new api::BufferImpl{
      device, webgpu_create_buffer(label.data(), length(label), static_cast<int>(wanted->usage),
                                   static_cast<double>(wanted->size), wanted->next != nullptr)};
}

api::ShaderModule DeviceCreateShaderModule(api::Device device, const api::LabelDescriptor* wanted) {
  const std::string_view label = wanted->label.view();
  const std::string_view code =
      reinterpret_cast<const api::ShaderSourceWgsl*>(wanted->next)->code.view();
  return new api::ShaderModuleImpl{
      device, webgpu_create_shader_module(label.data(), length(label), code.data(), length(code))};
}

api::Future ShaderModuleGetCompilationInfo(api::ShaderModule module,
                                           api::CallbackInfo<api::CompilationInfoCallback> done) {
  const auto deliver = [done](const Request& answer) {
    std::vector<api::CompilationMessage> messages;
    for (const Request::Message& each : answer.messages) {
      api::CompilationMessage& message = messages.emplace_back();
      message.message = std::string_view(each.text);
      message.type = each.type;
      message.line_num = static_cast<std::uint64_t>(each.line);
      message.line_pos = static_cast<std::uint64_t>(each.column);
    }
    const api::CompilationInfo info{nullptr, messages.size(), messages.data()};
    done.callback(answer.status, &info, done.userdata1, done.userdata2);
  };
  return request(module->device, deliver,
                 [module](int id) { webgpu_compilation_info(id, module->number); });
}

api::BindGroupLayout DeviceCreateBindGroupLayout(api::Device,
                                                 const api::BindGroupLayoutDescriptor* wanted) {
  std::vector<std::uint32_t> types;
  for (std::size_t i = 0; i < wanted->entry_count; ++i)
    types.push_back(static_cast<std::uint32_t>(wanted->entries[i].buffer.type));
  return handle<api::BindGroupLayout>(
      webgpu_create_bind_group_layout(types.data(), static_cast<int>(types.size())));
}

api::PipelineLayout DeviceCreatePipelineLayout(api::Device,
                                               const api::PipelineLayoutDescriptor* wanted) {
  return handle<api::PipelineLayout>(webgpu_create_pipeline_layout(number(wanted->layouts[0])));
}

api::Future DeviceCreateComputePipelineAsync(api::Device device,
                                             const api::ComputePipelineDescriptor* wanted,
                                             api::CallbackInfo<api::CreatePipelineCallback> done) {
  const auto deliver = [done](const Request& answer) {
    done.callback(answer.status, handle<api::ComputePipeline>(answer.value),
                  std::string_view(answer.text), done.userdata1, done.userdata2);
  };
  return request(device, deliver, [&](int id) {
    for (std::size_t i = 0; i < wanted->constant_count; ++i) {
      const std::string_view key = wanted->constants[i].key.view();
      webgpu_pipeline_constant(key.data(), length(key), wanted->constants[i].value);
    }
    const std::string_view label = wanted->label.view(), entry = wanted->entry_point.view();
    webgpu_create_pipeline(id, label.data(), length(label), number(wanted->layout),
                           wanted->module->number, entry.data(), length(entry));
  });
}

api::BindGroup DeviceCreateBindGroup(api::Device, const api::BindGroupDescriptor* wanted) {
  std::vector<double> entries;  // handle, offset, size
  for (std::size_t i = 0; i < wanted->entry_count; ++i) {
    const api::BindGroupEntry& entry = wanted->entries[i];
    entries.insert(entries.end(),
                   {static_cast<double>(entry.buffer->number), static_cast<double>(entry.offset),
                    static_cast<double>(entry.size)});
  }
  return handle<api::BindGroup>(webgpu_create_bind_group(number(wanted->layout), entries.data(),
                                                         static_cast<int>(wanted->entry_count)));
}

// --- queue and reads ----------------------------------------------------------------------------

void QueueSubmit(api::Queue, std::size_t count, const api::CommandBuffer* commands) {
  webgpu_submit(count == 0 ? 0 : number(commands[0]));
}

api::Future QueueOnSubmittedWorkDone(api::Queue queue,
                                     api::CallbackInfo<api::QueueWorkDoneCallback> done) {
  const auto deliver = [done](const Request& answer) {
    done.callback(answer.status, std::string_view(answer.text), done.userdata1, done.userdata2);
  };
  // The queue is the device itself.
  return request(reinterpret_cast<api::Device>(queue), deliver, webgpu_work_done);
}

api::Future BufferMapAsync(api::Buffer buffer, std::uint64_t, std::size_t, std::size_t size,
                           api::CallbackInfo<api::BufferMapCallback> done) {
  const auto deliver = [done](const Request& answer) {
    done.callback(answer.status, std::string_view(answer.text), done.userdata1, done.userdata2);
  };
  return request(buffer->device, deliver,
                 [&](int id) { webgpu_map(id, buffer->number, static_cast<double>(size)); });
}

const void* BufferGetConstMappedRange(api::Buffer buffer, std::size_t, std::size_t size) {
  std::free(buffer->mapped);
  buffer->mapped = std::malloc(size);
  if (!buffer->mapped ||
      !webgpu_copy_mapped(buffer->number, buffer->mapped, static_cast<double>(size)))
    return nullptr;
  return buffer->mapped;
}

void BufferUnmap(api::Buffer buffer) {
  std::free(std::exchange(buffer->mapped, nullptr));
  webgpu_unmap(buffer->number);
}

void BufferRelease(api::Buffer buffer) {
  if (!buffer) return;
  std::free(buffer->mapped);
  webgpu_release(buffer->number);
  delete buffer;
}

void ShaderModuleRelease(api::ShaderModule module) {
  if (!module) return;
  webgpu_release(module->number);
  delete module;
}

template <class Object>
void release(Object object) {
  webgpu_release(number(object));
}

// --- commands -----------------------------------------------------------------------------------

api::ComputePassEncoder CommandEncoderBeginComputePass(api::CommandEncoder encoder,
                                                       const api::ComputePassDescriptor* wanted) {
  const api::PassTimestampWrites* times = wanted->timestamps;
  return handle<api::ComputePassEncoder>(
      webgpu_begin_pass(number(encoder), times ? number(times->query_set) : 0,
                        times ? static_cast<int>(times->begin_index) : 0,
                        times ? static_cast<int>(times->end_index) : 0));
}

Library page_library() {
  Library library;
  library.path = "the page's WebGPU";
  api::Functions& call = library.call;
  call.InstanceWaitAny = InstanceWaitAny;
  call.InstanceAddRef = [](api::Instance) {};
  call.InstanceRelease = [](api::Instance) {};
  call.AdapterGetInfo = AdapterGetInfo;
  call.AdapterInfoFreeMembers = AdapterInfoFreeMembers;
  call.AdapterGetLimits = [](api::Adapter, api::Limits* limits) { return get_limits(0, limits); };
  call.AdapterHasFeature = [](api::Adapter, api::FeatureName name) { return has_feature(0, name); };
  call.AdapterRequestDevice = AdapterRequestDevice;
  call.AdapterRelease = [](api::Adapter) {};
  call.DeviceRelease = DeviceRelease;
  call.DeviceDestroy = DeviceDestroy;
  call.DeviceForceLoss = [](api::Device device, api::LostReason reason, api::StringView message) {
    device->lose(reason, message.view());
  };
  call.DeviceInjectError = [](api::Device device, api::ErrorType type, api::StringView message) {
    device->error(type, message.view());
  };
  call.DeviceGetLimits = [](api::Device, api::Limits* limits) { return get_limits(1, limits); };
  call.DeviceHasFeature = [](api::Device, api::FeatureName name) { return has_feature(1, name); };
  call.DeviceGetQueue = [](api::Device device) { return reinterpret_cast<api::Queue>(device); };
  call.DevicePushErrorScope = [](api::Device, api::ErrorFilter filter) {
    webgpu_push_error_scope(static_cast<int>(filter));
  };
  call.DevicePopErrorScope = DevicePopErrorScope;
  call.DeviceCreateBuffer = DeviceCreateBuffer;
  call.DeviceCreateShaderModule = DeviceCreateShaderModule;
  call.DeviceCreateBindGroupLayout = DeviceCreateBindGroupLayout;
  call.DeviceCreatePipelineLayout = DeviceCreatePipelineLayout;
  call.DeviceCreateComputePipelineAsync = DeviceCreateComputePipelineAsync;
  call.DeviceCreateBindGroup = DeviceCreateBindGroup;
  call.DeviceCreateCommandEncoder = [](api::Device, const api::LabelDescriptor*) {
    return handle<api::CommandEncoder>(webgpu_create_encoder());
  };
  call.DeviceCreateQuerySet = [](api::Device, const api::QuerySetDescriptor* wanted) {
    return handle<api::QuerySet>(webgpu_create_query_set(static_cast<int>(wanted->count)));
  };
  call.QueueSubmit = QueueSubmit;
  call.QueueWriteBuffer = [](api::Queue, api::Buffer buffer, std::uint64_t offset,
                             const void* bytes, std::size_t size) {
    webgpu_write(buffer->number, static_cast<double>(offset), bytes, static_cast<double>(size));
  };
  call.QueueOnSubmittedWorkDone = QueueOnSubmittedWorkDone;
  call.QueueRelease = [](api::Queue) {};
  call.BufferMapAsync = BufferMapAsync;
  call.BufferGetConstMappedRange = BufferGetConstMappedRange;
  call.BufferUnmap = BufferUnmap;
  call.BufferRelease = BufferRelease;
  call.ShaderModuleGetCompilationInfo = ShaderModuleGetCompilationInfo;
  call.ShaderModuleRelease = ShaderModuleRelease;
  call.BindGroupLayoutRelease = release;
  call.PipelineLayoutRelease = release;
  call.ComputePipelineRelease = release;
  call.BindGroupRelease = release;
  call.QuerySetRelease = release;
  call.CommandEncoderBeginComputePass = CommandEncoderBeginComputePass;
  call.CommandEncoderCopyBufferToBuffer = [](api::CommandEncoder encoder, api::Buffer from,
                                             std::uint64_t from_offset, api::Buffer to,
                                             std::uint64_t to_offset, std::uint64_t bytes) {
    webgpu_copy(number(encoder), from->number, static_cast<double>(from_offset), to->number,
                static_cast<double>(to_offset), static_cast<double>(bytes));
  };
  call.CommandEncoderClearBuffer = [](api::CommandEncoder encoder, api::Buffer buffer,
                                      std::uint64_t offset, std::uint64_t bytes) {
    webgpu_clear(number(encoder), buffer->number, static_cast<double>(offset),
                 static_cast<double>(bytes));
  };
  call.CommandEncoderResolveQuerySet = [](api::CommandEncoder encoder, api::QuerySet set,
                                          std::uint32_t first, std::uint32_t count, api::Buffer to,
                                          std::uint64_t offset) {
    webgpu_resolve(number(encoder), number(set), static_cast<int>(first), static_cast<int>(count),
                   to->number, static_cast<double>(offset));
  };
  call.CommandEncoderFinish = [](api::CommandEncoder encoder, const api::LabelDescriptor*) {
    return handle<api::CommandBuffer>(webgpu_finish(number(encoder)));
  };
  call.CommandEncoderRelease = release;
  call.CommandBufferRelease = release;
  call.ComputePassEncoderSetPipeline = [](api::ComputePassEncoder pass, api::ComputePipeline of) {
    webgpu_set_pipeline(number(pass), number(of));
  };
  call.ComputePassEncoderSetBindGroup =
      [](api::ComputePassEncoder pass, std::uint32_t, api::BindGroup group, std::size_t,
         const std::uint32_t*) { webgpu_set_bind_group(number(pass), number(group)); };
  call.ComputePassEncoderDispatchWorkgroups = [](api::ComputePassEncoder pass, std::uint32_t x,
                                                 std::uint32_t y, std::uint32_t z) {
    webgpu_dispatch(number(pass), static_cast<int>(x), static_cast<int>(y), static_cast<int>(z));
  };
  call.ComputePassEncoderEnd = [](api::ComputePassEncoder pass) { webgpu_end_pass(number(pass)); };
  call.ComputePassEncoderRelease = release;
  return library;
}

}  // namespace

const Library& library() {
  static const Library library = page_library();
  return library;
}

std::string page_text(const char* key) { return taken(webgpu_info_text(key)); }

}  // namespace tensorgrad::webgpu

// --- called by browser.js -----------------------------------------------------------------------

using namespace tensorgrad::webgpu;

EMSCRIPTEN_KEEPALIVE void webgpu_message(int id, int type, int line, int column, char* text) {
  std::string own = taken(text);
  if (const auto found = page().requests.find(id); found != page().requests.end())
    found->second.messages.push_back(
        {api::MessageType{static_cast<std::uint32_t>(type)}, line, column, std::move(own)});
}

EMSCRIPTEN_KEEPALIVE int webgpu_arrived(int id, int ok, int value, char* text) {
  std::string own = taken(text);
  const auto found = page().requests.find(id);
  if (found == page().requests.end() || found->second.arrived) return 0;
  Request& self = found->second;
  self.arrived = true;
  self.status = ok ? api::Status::success : kFailed;
  self.value = value;
  self.text = std::move(own);
  return 1;
}

EMSCRIPTEN_KEEPALIVE void webgpu_reported(int type, char* text) {
  const std::string own = taken(text);
  for (const api::Device device : page().devices)
    device->error(api::ErrorType{static_cast<std::uint32_t>(type)}, own);
}

EMSCRIPTEN_KEEPALIVE void webgpu_lost(char* text) {
  page().lost = taken(text);
  if (page().lost.empty()) page().lost = "no reason given";
  const std::vector<api::Device> devices = page().devices;
  for (const api::Device device : devices) device->lose(api::LostReason::unknown, page().lost);
}
