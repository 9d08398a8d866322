// Compute pipelines: compiled in parallel, shared if their specs are equal. Errors have the words
// of the shader compiler.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_map>

#include "runtime/webgpu/connection.h"

namespace tensorgrad::webgpu {

// The layout of a kernel's bindings; one per list of accesses.
struct Layout {
  std::vector<Access> accesses;
  Handle<api::BindGroupLayoutImpl> group;
  Handle<api::PipelineLayoutImpl> pipeline;
};

class Pipeline {
 public:
  Pipeline(Handle<api::ComputePipelineImpl> handle, std::shared_ptr<const Layout> layout)
      : handle_(std::move(handle)), layout_(std::move(layout)) {}
  api::ComputePipeline get() const { return handle_.get(); }
  const Layout& layout() const { return *layout_; }

 private:
  Handle<api::ComputePipelineImpl> handle_;
  std::shared_ptr<const Layout> layout_;
};

class BindGroup {
 public:
  explicit BindGroup(Handle<api::BindGroupImpl> handle) : handle_(std::move(handle)) {}
  api::BindGroup get() const { return handle_.get(); }

 private:
  Handle<api::BindGroupImpl> handle_;
};

class Pipelines {
 public:
  explicit Pipelines(Connection& connection) : connection_(connection) {}

  std::vector<std::shared_ptr<const Pipeline>> get(std::span<const PipelineSpec> specs,
                                                   const CompileCallback& progress);
  std::shared_ptr<const BindGroup> bind(const Pipeline& pipeline,
                                        std::span<const Binding> bindings);

 private:
  std::shared_ptr<const Layout> layout(const std::vector<Access>& accesses);
  Handle<api::ShaderModuleImpl> module(const PipelineSpec& spec);
  std::string compiler_lines(api::ShaderModule module, const std::string& wgsl);

  Connection& connection_;
  std::map<std::vector<Access>, std::shared_ptr<const Layout>> layouts_;
  std::unordered_map<std::string, std::weak_ptr<const Pipeline>> made_;
};

}  // namespace tensorgrad::webgpu
