// Descriptions of adapters, and the lists that others ask for.
#include "runtime/webgpu/adapters.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "support/fail.h"

namespace tensorgrad::webgpu {

namespace {

const char* backend_name(api::BackendType type) {
  switch (type) {
    case api::BackendType::webgpu:
      return "webgpu";
    case api::BackendType::d3d11:
      return "d3d11";
    case api::BackendType::d3d12:
      return "d3d12";
    case api::BackendType::metal:
      return "metal";
    case api::BackendType::vulkan:
      return "vulkan";
    case api::BackendType::opengl:
      return "opengl";
    case api::BackendType::opengles:
      return "opengles";
    default:
      return "null";
  }
}

const char* type_name(api::AdapterType type) {
  switch (type) {
    case api::AdapterType::discrete:
      return "discrete";
    case api::AdapterType::integrated:
      return "integrated";
    case api::AdapterType::cpu:
      return "software";
    default:
      return "unknown";
  }
}

std::optional<MatrixComponent> component(api::ComponentType type) {
  switch (type) {
    case api::ComponentType::f32:
      return MatrixComponent::float32;
    case api::ComponentType::f16:
      return MatrixComponent::float16;
    case api::ComponentType::u32:
      return MatrixComponent::uint32;
    case api::ComponentType::i32:
      return MatrixComponent::int32;
    case api::ComponentType::u8:
      return MatrixComponent::uint8;
    case api::ComponentType::i8:
      return MatrixComponent::int8;
  }
  return {};
}

// Returns no shapes if one has an unknown type: the experimental struct of another version of Dawn
// may have another layout.
std::vector<MatrixShape> matrix_shapes(const Library& library, api::Adapter adapter) {
  if (!library.call.AdapterHasFeature(adapter, api::FeatureName::subgroup_matrix)) return {};
  api::SubgroupMatrixConfigs found;
  api::AdapterInfo info;
  info.next = &found.chain;
  library.call.AdapterGetInfo(adapter, &info);
  std::vector<MatrixShape> shapes;
  bool known = true;
  for (const api::SubgroupMatrixConfig& c : std::span(found.configs, found.count)) {
    const auto of = component(c.component), result = component(c.result);
    known = known && of && result;
    if (known)
      shapes.push_back(
          {*of, *result, static_cast<int>(c.M), static_cast<int>(c.N), static_cast<int>(c.K)});
  }
  library.call.AdapterInfoFreeMembers(info);
  library.call.AdapterPropertiesSubgroupMatrixConfigsFreeMembers(found);
  return known ? shapes : std::vector<MatrixShape>();
}

}  // namespace

Limits limits_from(const api::Limits& from) {
  Limits limits;
  limits.buffer_bytes = from.max_buffer_size;
  limits.binding_bytes = from.max_storage_buffer_binding_size;
  limits.uniform_bytes = from.max_uniform_buffer_binding_size;
  limits.binding_alignment =
      std::max(from.min_storage_buffer_offset_alignment, from.min_uniform_buffer_offset_alignment);
  limits.storage_buffers = from.max_storage_buffers_per_stage;
  limits.workgroup_bytes = from.max_compute_workgroup_storage_size;
  limits.workgroup_invocations = from.max_compute_invocations_per_workgroup;
  limits.workgroup_size[0] = from.max_compute_workgroup_size_x;
  limits.workgroup_size[1] = from.max_compute_workgroup_size_y;
  limits.workgroup_size[2] = from.max_compute_workgroup_size_z;
  limits.workgroups = from.max_compute_workgroups_per_dimension;
  return limits;
}

AdapterInfo describe(const Library& library, api::Adapter adapter) {
  const api::Functions& call = library.call;
  AdapterInfo info;
  api::AdapterInfo said;
  call.AdapterGetInfo(adapter, &said);
  info.name = said.device.view();
  info.vendor = said.vendor.view();
  info.driver = said.description.view();
  info.backend = backend_name(said.backend_type);
  info.type = type_name(said.adapter_type);
  info.subgroup_min = said.subgroup_min_size;
  info.subgroup_max = said.subgroup_max_size;
  call.AdapterInfoFreeMembers(said);
  // OpenGL drivers do not report their type.
  info.software = info.type == "software" || info.name.find("llvmpipe") != std::string::npos ||
                  info.name.find("SwiftShader") != std::string::npos;
  if (info.software) info.type = "software";
  info.subgroups = call.AdapterHasFeature(adapter, api::FeatureName::subgroups);
  if (!info.subgroups) info.subgroup_min = info.subgroup_max = 0;
  info.timestamps = call.AdapterHasFeature(adapter, api::FeatureName::timestamp_query);
  info.shader_f16 = call.AdapterHasFeature(adapter, api::FeatureName::shader_f16);
  info.matrix_shapes = matrix_shapes(library, adapter);
  api::Limits limits{};
  call.AdapterGetLimits(adapter, &limits);
  info.limits = limits_from(limits);
  return info;
}

std::vector<AdapterInfo> adapters() {
  std::vector<AdapterInfo> infos;
  for (FoundAdapter& found : find_adapters(library())) infos.push_back(std::move(found.info));
  return infos;
}

Handle<api::AdapterImpl> adapter_at(const Library& library, std::size_t index) {
  std::vector<FoundAdapter> found = find_adapters(library);
  if (index >= found.size()) return {nullptr, library.call.AdapterRelease};
  return std::move(found[index].adapter);
}

std::optional<std::size_t> first_hardware() {
  try {
    const auto found = adapters();
    for (std::size_t i = 0; i < found.size(); ++i)
      if (!found[i].software) return i;
  } catch (const DeviceError&) {  // no library: no GPU
  }
  return {};
}

DeviceInfo info_of(const AdapterInfo& adapter, std::string name) {
  DeviceInfo info;
  info.name = std::move(name);
  info.description = fmt::format("{}, {}, {}", adapter.name, adapter.type, adapter.backend);
  info.available = true;
  info.backend = adapter.backend;
  info.software = adapter.software;
  info.max_buffer_bytes = static_cast<std::int64_t>(adapter.limits.buffer_bytes);
  info.max_binding_bytes = static_cast<std::int64_t>(adapter.limits.binding_bytes);
  info.shader_f16 = adapter.shader_f16;
  info.subgroups = adapter.subgroups;
  info.subgroup_min = static_cast<int>(adapter.subgroup_min);
  info.subgroup_max = static_cast<int>(adapter.subgroup_max);
  info.matrix_shapes = adapter.matrix_shapes;
  info.timestamps = adapter.timestamps;
  return info;
}

}  // namespace tensorgrad::webgpu
