// The functions of WebGPU's C interface that the runtime calls.
#pragma once

#include "runtime/webgpu/api.h"

namespace tensorgrad::webgpu::api {

// F(name without wgpu, result, arguments): each is a member of Functions and a symbol to look up.
// A library that lacks one is refused by the first that it lacks. HasInstanceFeature comes early:
// an older Dawn, whose structs have another layout, does not have it.
// clang-format off
#define TENSORGRAD_WEBGPU_FUNCTIONS(F)                                                              \
  F(CreateInstance, Instance, (const InstanceDescriptor*))                                          \
  F(HasInstanceFeature, Bool, (InstanceFeatureName))                                                \
  F(InstanceRequestAdapter, Future,                                                                 \
    (Instance, const RequestAdapterOptions*, CallbackInfo<RequestAdapterCallback>))                 \
  F(InstanceWaitAny, WaitStatus, (Instance, std::size_t, FutureWaitInfo*, std::uint64_t ns))        \
  F(InstanceAddRef, void, (Instance))                                                               \
  F(InstanceRelease, void, (Instance))                                                              \
  F(AdapterGetInfo, Status, (Adapter, AdapterInfo*))                                                \
  F(AdapterInfoFreeMembers, void, (AdapterInfo))                                                    \
  F(AdapterPropertiesSubgroupMatrixConfigsFreeMembers, void, (SubgroupMatrixConfigs))               \
  F(AdapterGetInstance, Instance, (Adapter))                                                        \
  F(AdapterGetLimits, Status, (Adapter, Limits*))                                                   \
  F(AdapterHasFeature, Bool, (Adapter, FeatureName))                                                \
  F(AdapterRequestDevice, Future,                                                                   \
    (Adapter, const DeviceDescriptor*, CallbackInfo<RequestDeviceCallback>))                        \
  F(AdapterRelease, void, (Adapter))                                                                \
  F(DeviceAddRef, void, (Device))                                                                   \
  F(DeviceRelease, void, (Device))                                                                  \
  F(DeviceDestroy, void, (Device))                                                                  \
  F(DeviceForceLoss, void, (Device, LostReason, StringView))                                        \
  F(DeviceInjectError, void, (Device, ErrorType, StringView))                                       \
  F(DeviceGetAdapter, Adapter, (Device))                                                            \
  F(DeviceGetLimits, Status, (Device, Limits*))                                                     \
  F(DeviceHasFeature, Bool, (Device, FeatureName))                                                  \
  F(DeviceGetLostFuture, Future, (Device))                                                          \
  F(DeviceGetQueue, Queue, (Device))                                                                \
  F(DevicePushErrorScope, void, (Device, ErrorFilter))                                              \
  F(DevicePopErrorScope, Future, (Device, CallbackInfo<PopErrorScopeCallback>))                     \
  F(DeviceCreateBuffer, Buffer, (Device, const BufferDescriptor*))                                  \
  F(DeviceCreateShaderModule, ShaderModule, (Device, const LabelDescriptor*))                       \
  F(DeviceCreateBindGroupLayout, BindGroupLayout, (Device, const BindGroupLayoutDescriptor*))       \
  F(DeviceCreatePipelineLayout, PipelineLayout, (Device, const PipelineLayoutDescriptor*))          \
  F(DeviceCreateComputePipelineAsync, Future,                                                       \
    (Device, const ComputePipelineDescriptor*, CallbackInfo<CreatePipelineCallback>))               \
  F(DeviceCreateBindGroup, BindGroup, (Device, const BindGroupDescriptor*))                         \
  F(DeviceCreateCommandEncoder, CommandEncoder, (Device, const LabelDescriptor*))                   \
  F(DeviceCreateQuerySet, QuerySet, (Device, const QuerySetDescriptor*))                            \
  F(QueueSubmit, void, (Queue, std::size_t, const CommandBuffer*))                                  \
  F(QueueWriteBuffer, void, (Queue, Buffer, std::uint64_t, const void*, std::size_t))               \
  F(QueueOnSubmittedWorkDone, Future, (Queue, CallbackInfo<QueueWorkDoneCallback>))                 \
  F(QueueRelease, void, (Queue))                                                                    \
  F(BufferMapAsync, Future,                                                                         \
    (Buffer, std::uint64_t mode, std::size_t, std::size_t, CallbackInfo<BufferMapCallback>))        \
  F(BufferGetConstMappedRange, const void*, (Buffer, std::size_t, std::size_t))                     \
  F(BufferUnmap, void, (Buffer))                                                                    \
  F(BufferRelease, void, (Buffer))                                                                  \
  F(ShaderModuleGetCompilationInfo, Future, (ShaderModule, CallbackInfo<CompilationInfoCallback>))  \
  F(ShaderModuleRelease, void, (ShaderModule))                                                      \
  F(BindGroupLayoutRelease, void, (BindGroupLayout))                                                \
  F(PipelineLayoutRelease, void, (PipelineLayout))                                                  \
  F(ComputePipelineRelease, void, (ComputePipeline))                                                \
  F(BindGroupRelease, void, (BindGroup))                                                            \
  F(QuerySetRelease, void, (QuerySet))                                                              \
  F(CommandEncoderBeginComputePass, ComputePassEncoder,                                             \
    (CommandEncoder, const ComputePassDescriptor*))                                                 \
  F(CommandEncoderCopyBufferToBuffer, void,                                                         \
    (CommandEncoder, Buffer, std::uint64_t, Buffer, std::uint64_t, std::uint64_t))                  \
  F(CommandEncoderClearBuffer, void, (CommandEncoder, Buffer, std::uint64_t, std::uint64_t))        \
  F(CommandEncoderResolveQuerySet, void,                                                            \
    (CommandEncoder, QuerySet, std::uint32_t, std::uint32_t, Buffer, std::uint64_t))                \
  F(CommandEncoderFinish, CommandBuffer, (CommandEncoder, const LabelDescriptor*))                  \
  F(CommandEncoderRelease, void, (CommandEncoder))                                                  \
  F(CommandBufferRelease, void, (CommandBuffer))                                                    \
  F(ComputePassEncoderSetPipeline, void, (ComputePassEncoder, ComputePipeline))                     \
  F(ComputePassEncoderSetBindGroup, void,                                                           \
    (ComputePassEncoder, std::uint32_t, BindGroup, std::size_t, const std::uint32_t*))              \
  F(ComputePassEncoderDispatchWorkgroups, void,                                                     \
    (ComputePassEncoder, std::uint32_t, std::uint32_t, std::uint32_t))                              \
  F(ComputePassEncoderEnd, void, (ComputePassEncoder))                                              \
  F(ComputePassEncoderRelease, void, (ComputePassEncoder))
// clang-format on

struct Functions {
#define TENSORGRAD_WEBGPU_MEMBER(name, result, arguments) result(*name) arguments = nullptr;
  TENSORGRAD_WEBGPU_FUNCTIONS(TENSORGRAD_WEBGPU_MEMBER)
#undef TENSORGRAD_WEBGPU_MEMBER
};

}  // namespace tensorgrad::webgpu::api
