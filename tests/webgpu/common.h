// One open GPU for the tests that do not break it, and small kernels to run on it.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "runtime/webgpu/gpu.h"
#include "tensorgrad/error.h"
#include "tests/support/gpu_test.h"

namespace tensorgrad::webgpu {

inline Gpu& shared_gpu() {
  static const std::unique_ptr<Gpu> gpu = Gpu::open();
  return *gpu;
}

// y[i] = a * x[i] + b, 64 elements per workgroup.
inline PipelineSpec line_kernel(const std::string& name, const std::string& a,
                                const std::string& b) {
  return {.name = name,
          .wgsl =
              "@group(0) @binding(0) var<storage, read> x: array<f32>;\n"
              "@group(0) @binding(1) var<storage, read_write> y: array<f32>;\n"
              "@compute @workgroup_size(64)\n"
              "fn main(@builtin(global_invocation_id) id: vec3u) {\n"
              "  if (id.x < arrayLength(&y)) { y[id.x] = " +
              a + " * x[id.x] + " + b +
              "; }\n"
              "}\n",
          .accesses = {Access::read, Access::write}};
}

inline std::span<const std::byte> bytes_of(const std::vector<float>& values) {
  return std::as_bytes(std::span(values));
}

inline std::vector<float> floats_of(std::span<const std::byte> bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

inline std::shared_ptr<Buffer> make_buffer(Gpu& gpu, std::uint64_t bytes, std::string_view what) {
  return wait_for(gpu, gpu.buffer(bytes, what), "a buffer");
}

inline Gpu::PipelineList make_pipelines(Gpu& gpu, std::span<const PipelineSpec> specs,
                                        const CompileCallback& progress = {}) {
  return wait_for(gpu, gpu.pipelines(specs, progress), "compiling a kernel");
}

inline std::shared_ptr<const Pipeline> make_pipeline(Gpu& gpu, const PipelineSpec& spec) {
  return make_pipelines(gpu, {&spec, 1})[0];
}

inline void finish(Gpu& gpu) { wait_for(gpu, gpu.done(), "a run"); }

// A read that is under way. Copies share it.
class Read {
 public:
  Read(Gpu& gpu, std::shared_ptr<const Buffer> from, std::uint64_t offset, std::uint64_t bytes)
      : gpu_(gpu), bytes_(std::make_shared<std::vector<std::byte>>(bytes)) {
    done_ = gpu.read(std::move(from), offset, *bytes_, bytes_);
  }
  bool ready() const { return done_.ready(); }
  std::vector<float> wait() const {
    wait_for(gpu_, done_, "a read");
    return floats_of(*bytes_);
  }

 private:
  Gpu& gpu_;
  std::shared_ptr<std::vector<std::byte>> bytes_;
  Completion<Done> done_;
};

inline std::vector<float> read_floats(Gpu& gpu, const std::shared_ptr<Buffer>& buffer) {
  return Read(gpu, buffer, 0, buffer->bytes()).wait();
}

// The text of the DeviceError that the call throws.
inline std::string device_error(const std::function<void()>& call) {
  try {
    call();
  } catch (const DeviceError& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "an error of another kind: " << error.what();
    return "";
  }
  ADD_FAILURE() << "no error";
  return "";
}

}  // namespace tensorgrad::webgpu
