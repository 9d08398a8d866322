// What stage `emit` makes for WebGPU: the shaders of a program, in the order they are dispatched.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "codegen/wgsl/shader.h"
#include "runtime/device.h"

namespace tensorgrad::runtime {

class EmittedShaders : public Emitted {
 public:
  // `target` has the tag of the kernels, which are tuned.
  EmittedShaders(std::vector<ir::Kernel> own, const wgsl::Target& target)
      : kernels(std::move(own)),
        tag(target.tag),
        guarded(std::any_of(kernels.begin(), kernels.end(), wgsl::checks_ids)),
        shaders(wgsl::emit(kernels, target, guarded)) {}

  std::string text() const override {
    std::string out;
    for (const wgsl::Shader& shader : shaders)
      out += fmt::format("// {} x {} workgroups\n{}\n", shader.workgroups[0], shader.workgroups[1],
                         shader.wgsl);
    return out;
  }

  const std::vector<ir::Kernel> kernels;
  const int tag;
  const bool guarded;  // some kernel checks ids
  const std::vector<wgsl::Shader> shaders;
};

}  // namespace tensorgrad::runtime
