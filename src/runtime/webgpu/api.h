// The part of WebGPU's C interface that the runtime uses, as in Dawn of 2026. Declared here because
// the library comes without a header; assertions at the end check the sizes. Names are those of
// webgpu.h without the prefix, so that its documentation applies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tensorgrad::webgpu::api {

struct InstanceImpl;
struct AdapterImpl;
struct DeviceImpl;
struct QueueImpl;
struct BufferImpl;
struct ShaderModuleImpl;
struct BindGroupLayoutImpl;
struct PipelineLayoutImpl;
struct ComputePipelineImpl;
struct BindGroupImpl;
struct CommandEncoderImpl;
struct ComputePassEncoderImpl;
struct CommandBufferImpl;
struct QuerySetImpl;

using Bool = std::uint32_t;
using Instance = InstanceImpl*;
using Adapter = AdapterImpl*;
using Device = DeviceImpl*;
using Queue = QueueImpl*;
using Buffer = BufferImpl*;
using ShaderModule = ShaderModuleImpl*;
using BindGroupLayout = BindGroupLayoutImpl*;
using PipelineLayout = PipelineLayoutImpl*;
using ComputePipeline = ComputePipelineImpl*;
using BindGroup = BindGroupImpl*;
using CommandEncoder = CommandEncoderImpl*;
using ComputePassEncoder = ComputePassEncoderImpl*;
using CommandBuffer = CommandBufferImpl*;
using QuerySet = QuerySetImpl*;

// --- values -------------------------------------------------------------------------------------

enum class SType : std::uint32_t {
  shader_source_wgsl = 2,
  dawn_instance = 0x50006,
  dawn_toggles = 0x5000A,
  subgroup_matrix_configs = 0x5003B,
  dawn_fake_buffer_oom = 0x50040,
};
// The status of adapter, device, map, pipeline and compilation-info requests. The value for success
// is the same for all.
enum class Status : std::uint32_t { success = 1 };
enum class WaitStatus : std::uint32_t { success = 1, timed_out = 2 };
enum class CallbackMode : std::uint32_t { wait_any_only = 1, allow_spontaneous = 3 };
enum class ErrorType : std::uint32_t {
  none = 1,
  validation = 2,
  out_of_memory = 3,
  internal = 4,
  unknown = 5
};
enum class ErrorFilter : std::uint32_t { validation = 1, out_of_memory = 2, internal = 3 };
enum class LostReason : std::uint32_t { unknown = 1, destroyed = 2 };
enum class FeatureLevel : std::uint32_t { core = 2 };
enum class PowerPreference : std::uint32_t { none = 0, low_power = 1, high_performance = 2 };
enum class BackendType : std::uint32_t {
  undefined = 0,
  null = 1,
  webgpu = 2,
  d3d11 = 3,
  d3d12 = 4,
  metal = 5,
  vulkan = 6,
  opengl = 7,
  opengles = 8
};
enum class AdapterType : std::uint32_t { discrete = 1, integrated = 2, cpu = 3, unknown = 4 };
enum class InstanceFeatureName : std::uint32_t { timed_wait_any = 1 };
enum class FeatureName : std::uint32_t {
  timestamp_query = 9,
  shader_f16 = 11,
  subgroups = 18,
  subgroup_matrix = 0x50034,  // chromium-experimental-subgroup-matrix
};
enum class ComponentType : std::uint32_t { f32 = 1, f16 = 2, u32 = 3, i32 = 4, u8 = 5, i8 = 6 };
enum class BufferBindingType : std::uint32_t {
  not_used = 0,
  uniform = 2,
  storage = 3,
  read_only_storage = 4
};
enum class MessageType : std::uint32_t { error = 1, warning = 2, info = 3 };
enum class QueryType : std::uint32_t { timestamp = 2 };

constexpr std::uint64_t kMapRead = 0x1;
constexpr std::uint64_t kUsageMapRead = 0x1, kUsageCopySrc = 0x4, kUsageCopyDst = 0x8;
constexpr std::uint64_t kUsageUniform = 0x40, kUsageStorage = 0x80, kUsageQueryResolve = 0x200;
constexpr std::uint64_t kStageCompute = 0x4;

// --- structs ------------------------------------------------------------------------------------

struct StringView {
  const char* data = nullptr;
  std::size_t length =
      static_cast<std::size_t>(-1);  // with data: zero-terminated; without data: no string

  StringView() = default;
  StringView(std::string_view text) : data(text.data()), length(text.size()) {}
  std::string_view view() const {
    if (!data) return {};
    return length == static_cast<std::size_t>(-1) ? std::string_view(data)
                                                  : std::string_view(data, length);
  }
};

struct Chained {
  const Chained* next = nullptr;
  SType type{};
};

struct Future {
  std::uint64_t id = 0;
};

struct FutureWaitInfo {
  Future future;
  Bool completed = 0;
};

// F is the type of the callback, whose last arguments are the two user pointers.
template <class F>
struct CallbackInfo {
  const Chained* next = nullptr;
  CallbackMode mode = CallbackMode::wait_any_only;
  F callback = nullptr;
  void* userdata1 = nullptr;
  void* userdata2 = nullptr;
};

struct CompilationMessage {
  const Chained* next = nullptr;
  StringView message;
  MessageType type{};
  std::uint64_t line_num = 0, line_pos = 0, offset = 0, length = 0;
};

struct CompilationInfo {
  const Chained* next = nullptr;
  std::size_t message_count = 0;
  const CompilationMessage* messages = nullptr;
};

using RequestAdapterCallback = void (*)(Status, Adapter, StringView, void*, void*);
using RequestDeviceCallback = void (*)(Status, Device, StringView, void*, void*);
using BufferMapCallback = void (*)(Status, StringView, void*, void*);
using QueueWorkDoneCallback = void (*)(Status, StringView, void*, void*);
using PopErrorScopeCallback = void (*)(Status, ErrorType, StringView, void*, void*);
using CompilationInfoCallback = void (*)(Status, const CompilationInfo*, void*, void*);
using CreatePipelineCallback = void (*)(Status, ComputePipeline, StringView, void*, void*);
using DeviceLostCallback = void (*)(const Device*, LostReason, StringView, void*, void*);
using UncapturedErrorCallback = void (*)(const Device*, ErrorType, StringView, void*, void*);

struct UncapturedErrorCallbackInfo {
  const Chained* next = nullptr;
  UncapturedErrorCallback callback = nullptr;
  void* userdata1 = nullptr;
  void* userdata2 = nullptr;
};

struct InstanceLimits {
  Chained* next = nullptr;
  std::size_t timed_wait_any_max_count = 0;
};

struct InstanceDescriptor {
  const Chained* next = nullptr;
  std::size_t required_feature_count = 0;
  const InstanceFeatureName* required_features = nullptr;
  const InstanceLimits* required_limits = nullptr;
};

// A Dawn extension: log messages go to a callback instead of stderr.
struct DawnInstanceDescriptor {
  Chained chain{nullptr, SType::dawn_instance};
  const void* search_paths[2] = {};
  void* platform = nullptr;
  std::uint32_t backend_validation = 2;  // off
  std::uint32_t switches = 0;            // flags of one byte each
  const Chained* logging_next = nullptr;
  void (*logging_callback)(std::uint32_t type, StringView, void*, void*) = nullptr;
  void* logging_userdata1 = nullptr;
  void* logging_userdata2 = nullptr;
};

struct RequestAdapterOptions {
  const Chained* next = nullptr;
  FeatureLevel feature_level = FeatureLevel::core;
  PowerPreference power_preference = PowerPreference::none;
  Bool force_fallback_adapter = 0;
  BackendType backend_type = BackendType::undefined;
  void* compatible_surface = nullptr;
};

struct AdapterInfo {
  Chained* next = nullptr;
  StringView vendor, architecture, device, description;
  BackendType backend_type{};
  AdapterType adapter_type{};
  std::uint32_t vendor_id = 0, device_id = 0;
  std::uint32_t subgroup_min_size = 0, subgroup_max_size = 0;
};

struct Limits {
  Chained* next = nullptr;
  std::uint32_t max_texture_dimension_1d, max_texture_dimension_2d, max_texture_dimension_3d;
  std::uint32_t max_texture_array_layers;
  std::uint32_t max_bind_groups, max_bind_groups_plus_vertex_buffers, max_bindings_per_bind_group;
  std::uint32_t max_dynamic_uniform_buffers, max_dynamic_storage_buffers;
  std::uint32_t max_sampled_textures, max_samplers;
  std::uint32_t max_storage_buffers_per_stage, max_storage_textures, max_uniform_buffers_per_stage;
  std::uint64_t max_uniform_buffer_binding_size, max_storage_buffer_binding_size;
  std::uint32_t min_uniform_buffer_offset_alignment, min_storage_buffer_offset_alignment;
  std::uint32_t max_vertex_buffers;
  std::uint64_t max_buffer_size;
  std::uint32_t max_vertex_attributes, max_vertex_buffer_array_stride, max_inter_stage_variables;
  std::uint32_t max_color_attachments, max_color_attachment_bytes_per_sample;
  std::uint32_t max_compute_workgroup_storage_size, max_compute_invocations_per_workgroup;
  std::uint32_t max_compute_workgroup_size_x, max_compute_workgroup_size_y,
      max_compute_workgroup_size_z;
  std::uint32_t max_compute_workgroups_per_dimension;
  std::uint32_t max_immediate_size;
};

// One shape that the matrix units multiply: M x K of `component` by K x N, sums of `result`.
struct SubgroupMatrixConfig {
  ComponentType component{}, result{};
  std::uint32_t M = 0, N = 0, K = 0;
  std::uint32_t subgroup_min_size = 0, subgroup_max_size = 0;
};

// Chained to AdapterInfo.
struct SubgroupMatrixConfigs {
  Chained chain{nullptr, SType::subgroup_matrix_configs};
  std::size_t count = 0;
  const SubgroupMatrixConfig* configs = nullptr;
};

struct DawnToggles {
  Chained chain{nullptr, SType::dawn_toggles};
  std::size_t enabled_count = 0;
  const char* const* enabled = nullptr;
  std::size_t disabled_count = 0;
  const char* const* disabled = nullptr;
};

// Makes the creation of one buffer fail with an out-of-memory error.
struct DawnFakeBufferOom {
  Chained chain{nullptr, SType::dawn_fake_buffer_oom};
  Bool at_wire_client_map = 0, at_native_map = 0, at_device = 0;
};

struct DeviceDescriptor {
  const Chained* next = nullptr;
  StringView label;
  std::size_t required_feature_count = 0;
  const FeatureName* required_features = nullptr;
  const Limits* required_limits = nullptr;
  const Chained* queue_next = nullptr;
  StringView queue_label;
  CallbackInfo<DeviceLostCallback> device_lost;
  UncapturedErrorCallbackInfo uncaptured_error;
};

struct BufferDescriptor {
  const Chained* next = nullptr;
  StringView label;
  std::uint64_t usage = 0;
  std::uint64_t size = 0;
  Bool mapped_at_creation = 0;
};

struct ShaderSourceWgsl {
  Chained chain{nullptr, SType::shader_source_wgsl};
  StringView code;
};

// A descriptor with only a name: of shader modules (whose text is chained), command encoders and
// command buffers.
struct LabelDescriptor {
  const Chained* next = nullptr;
  StringView label;
};

struct BindGroupLayoutEntry {
  const Chained* next = nullptr;
  std::uint32_t binding = 0;
  std::uint64_t visibility = kStageCompute;
  Bool binding_array_size = 0;
  struct {
    const Chained* next = nullptr;
    BufferBindingType type = BufferBindingType::not_used;
    Bool has_dynamic_offset = 0;
    std::uint64_t min_binding_size = 0;
  } buffer;
  std::uint64_t sampler[2] = {};  // other kinds of binding, all zero: not used
  std::uint64_t texture[3] = {};
  std::uint64_t storage_texture[3] = {};
};

struct BindGroupLayoutDescriptor {
  const Chained* next = nullptr;
  StringView label;
  std::size_t entry_count = 0;
  const BindGroupLayoutEntry* entries = nullptr;
};

struct PipelineLayoutDescriptor {
  const Chained* next = nullptr;
  StringView label;
  std::size_t layout_count = 0;
  const BindGroupLayout* layouts = nullptr;
  std::uint32_t immediate_size = 0;
};

struct ConstantEntry {
  const Chained* next = nullptr;
  StringView key;
  double value = 0;
};

struct ComputePipelineDescriptor {
  const Chained* next = nullptr;
  StringView label;
  PipelineLayout layout = nullptr;
  const Chained* compute_next = nullptr;
  ShaderModule module = nullptr;
  StringView entry_point;
  std::size_t constant_count = 0;
  const ConstantEntry* constants = nullptr;
};

struct BindGroupEntry {
  const Chained* next = nullptr;
  std::uint32_t binding = 0;
  Buffer buffer = nullptr;
  std::uint64_t offset = 0, size = 0;
  void* sampler = nullptr;
  void* texture_view = nullptr;
};

struct BindGroupDescriptor {
  const Chained* next = nullptr;
  StringView label;
  BindGroupLayout layout = nullptr;
  std::size_t entry_count = 0;
  const BindGroupEntry* entries = nullptr;
};

struct PassTimestampWrites {
  const Chained* next = nullptr;
  QuerySet query_set = nullptr;
  std::uint32_t begin_index = 0, end_index = 0;
};

struct ComputePassDescriptor {
  const Chained* next = nullptr;
  StringView label;
  const PassTimestampWrites* timestamps = nullptr;
};

struct QuerySetDescriptor {
  const Chained* next = nullptr;
  StringView label;
  QueryType type = QueryType::timestamp;
  std::uint32_t count = 0;
};

// --- what the library was compiled with ---------------------------------------------------------

static_assert(sizeof(void*) != 8 ||
              (sizeof(StringView) == 16 && sizeof(CallbackInfo<void (*)()>) == 40 &&
               sizeof(CompilationMessage) == 64 && sizeof(InstanceDescriptor) == 32));
static_assert(sizeof(void*) != 8 ||
              (sizeof(RequestAdapterOptions) == 32 && sizeof(AdapterInfo) == 96 &&
               sizeof(DawnToggles) == 48 && sizeof(DeviceDescriptor) == 144));
static_assert(sizeof(void*) != 8 ||
              (sizeof(SubgroupMatrixConfig) == 28 && sizeof(SubgroupMatrixConfigs) == 32 &&
               sizeof(DawnInstanceDescriptor) == 80 && sizeof(InstanceLimits) == 16));
static_assert(sizeof(void*) != 8 ||
              (offsetof(Limits, max_uniform_buffer_binding_size) == 64 &&
               offsetof(Limits, max_buffer_size) == 96 && sizeof(Limits) == 152));
static_assert(sizeof(void*) != 8 ||
              (sizeof(BufferDescriptor) == 48 && sizeof(BindGroupLayoutEntry) == 120 &&
               sizeof(BindGroupEntry) == 56 && sizeof(PipelineLayoutDescriptor) == 48));
static_assert(sizeof(void*) != 8 ||
              (sizeof(ComputePipelineDescriptor) == 80 && sizeof(ConstantEntry) == 32 &&
               sizeof(PassTimestampWrites) == 24 && sizeof(QuerySetDescriptor) == 32));

}  // namespace tensorgrad::webgpu::api
