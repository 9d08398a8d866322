// Errors of a GPU, with injected faults where they cannot be caused.
#include <fmt/format.h>

#include <chrono>

#include "tests/support/run_tool.h"
#include "tests/webgpu/common.h"

namespace tensorgrad::webgpu {
namespace {

using GpuErrors = GpuTest;
using GpuLost = GpuTest;

TEST_F(GpuErrors, ThereIsNoSuchAdapter) {
  EXPECT_EQ(device_error([] { Gpu::open(99); }),
            "webgpu: there is no adapter 99\n  hint: tg devices lists them");
}

TEST_F(GpuErrors, ARefusedShaderIsShownWithTheCompilersLines) {
  PipelineSpec spec = line_kernel("softmax_rows", "2", "wrong");
  EXPECT_EQ(device_error([&] { make_pipeline(shared_gpu(), spec); }),
            "webgpu: the shader of kernel 'softmax_rows' was refused:\n"
            "  line 5, column 57: unresolved value 'wrong'\n"
            "       3 | @compute @workgroup_size(64)\n"
            "       4 | fn main(@builtin(global_invocation_id) id: vec3u) {\n"
            "  >    5 |   if (id.x < arrayLength(&y)) { y[id.x] = 2 * x[id.x] + wrong; }\n"
            "       6 | }");
  // The device still works.
  EXPECT_TRUE(make_pipeline(shared_gpu(), line_kernel("right", "2", "2")));
}

TEST_F(GpuErrors, ARefusedPipelineIsShownWithItsText) {
  PipelineSpec spec = line_kernel("big", "2", "1");
  spec.wgsl.replace(spec.wgsl.find("(64)"), 4, "(64, 1000)");
  const PipelineSpec specs[] = {line_kernel("small", "9", "9"), spec};
  const std::string text = device_error([&] { make_pipelines(shared_gpu(), specs); });
  expect_starts_with(text, "webgpu: kernel 'big' was refused: ");
  expect_contains(text, "64000");
  expect_contains(text, "3 | @compute @workgroup_size(64, 1000)\n");
}

TEST_F(GpuErrors, BuffersAndBindingsOverTheLimitAreNamed) {
  const auto& info = shared_gpu().info();
  const auto mib = [](std::uint64_t bytes) {
    return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
  };
  const std::uint64_t buffer = info.limits.buffer_bytes + (1 << 20),
                      binding = info.limits.binding_bytes + (1 << 20);
  EXPECT_EQ(device_error([&] { make_buffer(shared_gpu(), buffer, "the arena"); }),
            fmt::format("webgpu: too large: {} for the arena in one buffer; {} allows {}",
                        mib(buffer), info.name, mib(info.limits.buffer_bytes)));
  EXPECT_EQ(device_error([&] { shared_gpu().check_binding(binding, "layers.0.W"); }),
            fmt::format("webgpu: too large: {} for layers.0.W in one binding; {} allows {}",
                        mib(binding), info.name, mib(info.limits.binding_bytes)));
  EXPECT_NO_THROW(shared_gpu().check_binding(info.limits.binding_bytes, "layers.0.W"));
}

TEST_F(GpuErrors, ABufferWithoutMemoryIsNamed) {
  const auto gpu = Gpu::open();
  gpu->inject(Fault::buffer_memory);
  expect_starts_with(
      device_error([&] { make_buffer(*gpu, 8 << 20, "the arena"); }),
      "webgpu: out of memory: 8.0 MiB for the arena on " + gpu->info().name + "\n  the driver: ");
  const auto arena = make_buffer(*gpu, 8 << 20, "the arena");
  gpu->inject(Fault::buffer_memory);
  expect_starts_with(device_error([&] { Read(*gpu, arena, 0, 8 << 20).wait(); }),
                     "webgpu: out of memory: 8.0 MiB for a read on ");
}

TEST_F(GpuErrors, LateReportsAreRaisedOnceByTheNextCall) {
  const auto gpu = Gpu::open();
  const auto buffer = make_buffer(*gpu, 4, "value");
  gpu->inject(Fault::out_of_memory);
  expect_starts_with(device_error([&] { gpu->write(*buffer, 0, bytes_of({1})); }),
                     "webgpu: out of memory: injected");
  EXPECT_NO_THROW(gpu->write(*buffer, 0, bytes_of({1})));
  gpu->inject(Fault::validation);
  expect_starts_with(device_error([&] { gpu->submit(); }),
                     "webgpu: a command was refused: injected");
  EXPECT_EQ(read_floats(*gpu, buffer)[0], 1.0f);
}

// A read that failed has no destination any more.
TEST_F(GpuErrors, AReadThatFailedLeavesNothingBehind) {
  const auto gpu = Gpu::open(0, {.staging_bytes = 256});
  const auto buffer = make_buffer(*gpu, 256, "both"), other = make_buffer(*gpu, 256, "other");
  const auto add = make_pipeline(*gpu, line_kernel("add", "1", "1"));
  const Binding both[] = {{buffer.get()}, {buffer.get()}};
  gpu->dispatch(*add, *gpu->bind(*add, both), 1);
  expect_starts_with(device_error([&] { read_floats(*gpu, buffer); }),
                     "webgpu: a command was refused: ");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(read_floats(*gpu, other), std::vector<float>(64));
}

// A real error: one dispatch binds a buffer for reading and for writing.
TEST_F(GpuErrors, ARefusedCommandIsRaised) {
  const auto gpu = Gpu::open();
  const auto buffer = make_buffer(*gpu, 256, "both");
  const auto add = make_pipeline(*gpu, line_kernel("add", "1", "1"));
  const Binding both[] = {{buffer.get()}, {buffer.get()}};
  gpu->dispatch(*add, *gpu->bind(*add, both), 1);
  const std::string text = device_error([&] { gpu->submit(); });
  expect_starts_with(text, "webgpu: a command was refused: ");
  expect_contains(text, "both");
}

TEST_F(GpuLost, EveryCallSaysSoAndNoneHangs) {
  const auto gpu = Gpu::open();
  const auto x = make_buffer(*gpu, 256, "x"), y = make_buffer(*gpu, 256, "y");
  const auto add = make_pipeline(*gpu, line_kernel("add", "1", "1"));
  const Binding xy[] = {{x.get()}, {y.get()}};
  const auto group = gpu->bind(*add, xy);
  const auto early = Read(*gpu, x, 0, 4);
  early.wait();
  gpu->dispatch(*add, *group, 1);
  const auto submitted = Read(*gpu, y, 0, 4);
  gpu->submit();
  const auto recorded = Read(*gpu, y, 0, 4);
  gpu->inject(Fault::lost);
  const std::string text = device_error([&] { gpu->profile(false); });
  expect_starts_with(text, "webgpu: the device was lost: injected");
  expect_contains(text, "\n  hint: open it again and continue from the last checkpoint");
  std::vector<float> values(64);
  EXPECT_EQ(device_error([&] { gpu->submit(); }), text);
  EXPECT_EQ(device_error([&] { gpu->dispatch(*add, *group, 1); }), text);
  EXPECT_EQ(device_error([&] { finish(*gpu); }), text);
  EXPECT_EQ(device_error([&] { recorded.wait(); }), text);
  EXPECT_EQ(device_error([&] { make_buffer(*gpu, 4, "z"); }), text);
  EXPECT_EQ(device_error([&] { gpu->write(*x, 0, bytes_of(values)); }), text);
  EXPECT_EQ(device_error([&] { Read(*gpu, x, 0, 256); }), text);
  EXPECT_EQ(device_error([&] { make_pipeline(*gpu, line_kernel("new", "1", "1")); }), text);
  EXPECT_EQ(device_error([&] { gpu->bind(*add, xy); }), text);
  EXPECT_EQ(device_error([&] { gpu->profile(true); }), text);
  EXPECT_EQ(early.wait()[0], 0.0f) << "what was read before stays";
  // The read may have finished in time; otherwise the loss is the reason.
  try {
    EXPECT_EQ(submitted.wait()[0], 1.0f);
  } catch (const DeviceError& error) {
    EXPECT_EQ(error.what(), text);
  }
  // Another one can be opened beside it.
  EXPECT_EQ(read_floats(shared_gpu(), make_buffer(shared_gpu(), 4, "w"))[0], 0.0f);
}

TEST_F(GpuLost, AWaitHasAnEnd) {
  const auto gpu = Gpu::open(0, {.patience = std::chrono::seconds(0)});
  // Long, and not in the cache of any driver.
  std::string sum =
      std::to_string(std::chrono::steady_clock::now().time_since_epoch().count() % 1000003);
  for (int i = 2; i < 100; ++i) sum += fmt::format(" + sin(x[id.x / {}u])", i);
  EXPECT_EQ(device_error([&] { make_pipeline(*gpu, line_kernel("patience", "0.5", sum)); }),
            "webgpu: the device hangs: compiling a kernel took longer than 0 s");
}

}  // namespace
}  // namespace tensorgrad::webgpu
