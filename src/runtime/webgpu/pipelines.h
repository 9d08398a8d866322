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

  Completion<Gpu::PipelineList> get(std::span<const PipelineSpec> specs,
                                    const CompileCallback& progress);
  std::shared_ptr<const BindGroup> bind(const Pipeline& pipeline,
                                        std::span<const Binding> bindings);

 private:
  // The pipelines of one call.
  struct Job {
    PipelineSpec spec;
    std::string key;
    std::shared_ptr<api::ShaderModuleImpl> module;
    std::shared_ptr<const Layout> layout;
    std::shared_ptr<const Pipeline> made;
  };
  struct Build {
    std::vector<std::string> keys;  // of the result
    Gpu::PipelineList result;       // null: made by the job of that key
    std::vector<std::shared_ptr<Job>> jobs;
    CompileCallback progress;
    std::int64_t done = 0;
    void report() const;
  };

  std::shared_ptr<const Layout> layout(const std::vector<Access>& accesses);
  Completion<Done> check_shader(Job& job);
  Completion<std::string> compiler_lines(api::ShaderModule module, const std::string& wgsl);
  Completion<Done> compile(Job& job);
  Gpu::PipelineList finish(Build& build);

  Connection& connection_;
  std::map<std::vector<Access>, std::shared_ptr<const Layout>> layouts_;
  std::unordered_map<std::string, std::weak_ptr<const Pipeline>> made_;
};

}  // namespace tensorgrad::webgpu
