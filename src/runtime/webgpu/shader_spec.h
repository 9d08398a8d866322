// Converts a shader of codegen/wgsl to a PipelineSpec.
#pragma once

#include "codegen/wgsl/shader.h"
#include "runtime/webgpu/gpu.h"

namespace tensorgrad::webgpu {

inline PipelineSpec spec_of(const wgsl::Shader& shader) {
  PipelineSpec out{
      .name = shader.name, .wgsl = shader.wgsl, .accesses = {}, .entry = "main", .overrides = {}};
  for (const wgsl::Binding& b : shader.bindings)
    out.accesses.push_back(b.writable ? Access::write : Access::read);
  return out;
}

}  // namespace tensorgrad::webgpu
