// A GPU in normal operation: adapters, buffers, kernels, reads, counts, times.
#include <cmath>
#include <numeric>

#include "tests/support/event_loop.h"
#include "tests/webgpu/common.h"

namespace tensorgrad::webgpu {
namespace {

using GpuAdapters = GpuTest;
using GpuBuffers = GpuTest;
using GpuKernels = GpuTest;
using GpuReads = GpuTest;
using GpuTimes = GpuTest;

TEST_F(GpuAdapters, AreDescribed) {
  bool software_seen = false;
  for (const AdapterInfo& info : adapters()) {
    EXPECT_NE(info.name, "");
    EXPECT_NE(info.backend, "null");
    EXPECT_EQ(info.type == "software", info.software);
    EXPECT_TRUE(info.software || !software_seen) << "hardware comes first";
    software_seen = software_seen || info.software;
    // The limits that WebGPU guarantees.
    EXPECT_GE(info.limits.buffer_bytes, 256u << 20);
    EXPECT_GE(info.limits.binding_bytes, 128u << 20);
    EXPECT_GE(info.limits.storage_buffers, 8u);
    EXPECT_GE(info.limits.workgroup_bytes, 16u << 10);
    EXPECT_GE(info.limits.workgroup_invocations, 256u);
    EXPECT_GE(info.limits.workgroups, 65535u);
    EXPECT_LE(info.limits.binding_alignment, 256u);
    EXPECT_EQ(info.subgroups, info.subgroup_min > 0 && info.subgroup_max >= info.subgroup_min);
  }
}

TEST_F(GpuAdapters, AnOpenOneHasItsMaximalLimitsAndFeatures) {
  const AdapterInfo offered = adapters()[0], open = shared_gpu().info();
  EXPECT_EQ(open.name, offered.name);
  EXPECT_EQ(open.limits.buffer_bytes, offered.limits.buffer_bytes);
  EXPECT_EQ(open.limits.binding_bytes, offered.limits.binding_bytes);
  EXPECT_EQ(open.limits.storage_buffers, offered.limits.storage_buffers);
  EXPECT_EQ(open.limits.workgroup_bytes, offered.limits.workgroup_bytes);
  EXPECT_EQ(open.limits.workgroup_invocations, offered.limits.workgroup_invocations);
  EXPECT_EQ(open.subgroups, offered.subgroups);
  EXPECT_EQ(open.timestamps, offered.timestamps);
}

TEST_F(GpuBuffers, StartAsZeros) {
  const auto buffer = make_buffer(shared_gpu(), 4000, "zeros");
  EXPECT_EQ(buffer->bytes(), 4000u);
  EXPECT_EQ(read_floats(shared_gpu(), buffer), std::vector<float>(1000));
}

TEST_F(GpuBuffers, GiveBackWhatWasWritten) {
  Gpu& gpu = shared_gpu();
  const auto buffer = make_buffer(gpu, 12, "three");
  gpu.write(*buffer, 0, bytes_of({1, 2, 3}));
  gpu.write(*buffer, 4, bytes_of({5}));
  EXPECT_EQ(read_floats(gpu, buffer), (std::vector<float>{1, 5, 3}));
  gpu.clear(*buffer, 8, 4);
  EXPECT_EQ(read_floats(gpu, buffer), (std::vector<float>{1, 5, 0}));
  const auto other = make_buffer(gpu, 8, "two");
  gpu.copy(*buffer, 0, *other, 4, 4);
  EXPECT_EQ(read_floats(gpu, other), (std::vector<float>{0, 1}));
}

// Larger than the pieces of a transfer, and not a multiple of them.
TEST_F(GpuBuffers, LargeOnesTravelInPieces) {
  Gpu& gpu = shared_gpu();
  std::vector<float> values((40u << 20) / 4 + 3);
  std::iota(values.begin(), values.end(), 0.0f);
  const auto buffer = make_buffer(gpu, values.size() * 4, "large");
  gpu.write(*buffer, 0, bytes_of(values));
  EXPECT_EQ(read_floats(gpu, buffer), values);
}

TEST_F(GpuBuffers, NoBytesAreNoWork) {
  Gpu& gpu = shared_gpu();
  const auto buffer = make_buffer(gpu, 0, "nothing");
  gpu.write(*buffer, 0, {});
  EXPECT_TRUE(gpu.read(buffer, 0, {}, nullptr).ready());
  EXPECT_EQ(buffer->bytes(), 0u);
}

TEST_F(GpuKernels, RunInOrderInOnePass) {
  Gpu& gpu = shared_gpu();
  const auto a = make_buffer(gpu, 4000, "a"), b = make_buffer(gpu, 4000, "b");
  const auto twice = make_pipeline(gpu, line_kernel("twice", "2", "1"));
  const Binding ab[] = {{a.get()}, {b.get()}}, ba[] = {{b.get()}, {a.get()}};
  const auto forth = gpu.bind(*twice, ab), back = gpu.bind(*twice, ba);
  finish(gpu);
  const Counts before = gpu.counts();
  for (int i = 0; i < 5; ++i) {
    gpu.dispatch(*twice, *forth, 16);
    gpu.dispatch(*twice, *back, 16);
  }
  const auto last = Read(gpu, a, 0, 4);
  gpu.submit();
  const Counts after = gpu.counts();
  EXPECT_EQ(after.dispatches - before.dispatches, 10);
  EXPECT_EQ(after.passes - before.passes, 1);
  EXPECT_EQ(after.copies - before.copies, 1);
  EXPECT_EQ(after.submits - before.submits, 1);
  EXPECT_EQ(last.wait()[0], 1023.0f);  // ten times x -> 2x + 1, from 0
  EXPECT_EQ(gpu.counts().submits, after.submits) << "waiting submits only what is not submitted";
  gpu.submit();
  EXPECT_EQ(gpu.counts().submits, after.submits) << "nothing is recorded";
}

TEST_F(GpuKernels, WritesComeAfterWhatWasRecorded) {
  Gpu& gpu = shared_gpu();
  const auto a = make_buffer(gpu, 256, "a"), b = make_buffer(gpu, 256, "b");
  const auto copy = make_pipeline(gpu, line_kernel("copy", "1", "0"));
  const Binding ab[] = {{a.get()}, {b.get()}};
  const auto group = gpu.bind(*copy, ab);
  gpu.write(*a, 0, bytes_of({7}));
  gpu.dispatch(*copy, *group, 1);
  gpu.write(*a, 0, bytes_of({8}));
  EXPECT_EQ(read_floats(gpu, b)[0], 7.0f);
  EXPECT_EQ(read_floats(gpu, a)[0], 8.0f);
}

TEST_F(GpuKernels, SeePartsOfBuffersUniformsAndOverrides) {
  Gpu& gpu = shared_gpu();
  const auto data = make_buffer(gpu, 4 * 256, "data"), out = make_buffer(gpu, 256, "out"),
             scale = make_buffer(gpu, 16, "scale");
  std::vector<float> values(256);
  std::iota(values.begin(), values.end(), 0.0f);
  gpu.write(*data, 0, bytes_of(values));
  gpu.write(*scale, 0, bytes_of({10, 0, 0, 0}));
  const auto pipeline = make_pipeline(
      gpu,
      {.name = "scaled",
       .wgsl = "override shift: f32 = 0;\n"
               "@group(0) @binding(0) var<storage, read> x: array<f32>;\n"
               "@group(0) @binding(1) var<uniform> scale: vec4f;\n"
               "@group(0) @binding(2) var<storage, read_write> y: array<f32>;\n"
               "@compute @workgroup_size(4) fn scaled(@builtin(local_invocation_index) i: u32) {\n"
               "  y[i] = scale.x * x[i] + shift + f32(arrayLength(&x));\n"
               "}\n",
       .accesses = {Access::read, Access::uniform, Access::write},
       .entry = "scaled",
       .overrides = {{"shift", 0.5}}});
  const Binding bindings[] = {{data.get(), 256, 16}, {scale.get()}, {out.get()}};
  gpu.dispatch(*pipeline, *gpu.bind(*pipeline, bindings), 1);
  const auto got = read_floats(gpu, out);
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(got[static_cast<std::size_t>(i)], 10.0f * static_cast<float>(64 + i) + 4.5f);
}

TEST_F(GpuKernels, EqualTextsShareAPipeline) {
  Gpu& gpu = shared_gpu();
  PipelineSpec spec = line_kernel("first", "3", "4");
  const auto one = make_pipeline(gpu, spec);
  spec.name = "another name";
  const PipelineSpec specs[] = {spec, line_kernel("other", "3", "5"), spec};
  const auto more = make_pipelines(gpu, specs);
  EXPECT_EQ(more[0], one);
  EXPECT_EQ(more[2], one);
  EXPECT_NE(more[1], one);
  spec.overrides = {};
  spec.accesses = {Access::write, Access::write};
  spec.wgsl.replace(spec.wgsl.find("storage, read>"), 14, "storage, read_write>");
  EXPECT_NE(make_pipeline(gpu, spec), one);
}

TEST_F(GpuReads, AreAsOfTheirPlaceInTheStream) {
  Gpu& gpu = shared_gpu();
  const auto buffer = make_buffer(gpu, 4, "value");
  std::vector<Read> reads;
  for (int i = 0; i < 10; ++i) {
    gpu.write(*buffer, 0, bytes_of({static_cast<float>(i)}));
    reads.push_back(Read(gpu, buffer, 0, 4));
    EXPECT_FALSE(reads.back().ready()) << "not submitted";
  }
  for (int i = 9; i >= 0; --i)
    EXPECT_EQ(reads[static_cast<std::size_t>(i)].wait()[0], static_cast<float>(i));
  EXPECT_TRUE(reads[0].ready());
}

TEST_F(GpuReads, BecomeReadyWithoutWaiting) {
  Gpu& gpu = shared_gpu();
  const auto buffer = make_buffer(gpu, 4, "value");
  const auto read = Read(gpu, buffer, 0, 4);
  gpu.submit();
  while (!read.ready()) {  // ctest has a time limit
    run_event_loop();
    gpu.poll(std::chrono::nanoseconds(0));
  }
  EXPECT_EQ(read.wait()[0], 0.0f);
}

// More steps and more bytes in flight than there should be: the caller waits for the oldest.
TEST_F(GpuReads, ManyAreUnderWayInBoundedMemory) {
  const auto gpu = Gpu::open(0, {.max_in_flight = 3, .staging_bytes = 4096});
  const auto x = make_buffer(*gpu, 256, "x"), y = make_buffer(*gpu, 256, "y");
  const auto add = make_pipeline(*gpu, line_kernel("add", "1", "1"));
  const Binding xy[] = {{x.get()}, {y.get()}};
  const auto group = gpu->bind(*add, xy);
  std::vector<Read> kept;
  constexpr int kSteps = 500;
  for (int i = 0; i < kSteps; ++i) {
    gpu->dispatch(*add, *group, 1);
    gpu->copy(*y, 0, *x, 0, 256);
    const auto read = Read(*gpu, y, 0, 4);
    if (i % 2 == 0) kept.push_back(read);  // the others are dropped unread
    gpu->submit();
    if (gpu->full())
      wait_until(
          *gpu, [&] { return !gpu->full(); }, "a run");
  }
  for (std::size_t i = 0; i < kept.size(); ++i)
    EXPECT_EQ(kept[i].wait()[0], static_cast<float>(2 * i + 1));
  EXPECT_EQ(gpu->counts().submits, kSteps);
  EXPECT_EQ(gpu->counts().passes, kSteps);
}

// Without a submit. None is refused.
TEST_F(GpuReads, ManyMayBeRecordedAtOnce) {
  const auto gpu = Gpu::open(0, {.staging_bytes = 1024});
  const auto buffer = make_buffer(*gpu, 4, "value");
  gpu->write(*buffer, 0, bytes_of({3}));
  std::vector<Read> kept;
  for (int i = 0; i < 20; ++i) {
    kept.push_back(Read(*gpu, buffer, 0, 4));
    Read(*gpu, buffer, 0, 4);  // dropped before it is submitted
  }
  for (const auto& read : kept) EXPECT_EQ(read.wait()[0], 3.0f);
  EXPECT_LT(gpu->counts().submits, 40);
}

TEST_F(GpuReads, MayOutliveTheDevice) {
  auto gpu = Gpu::open();
  const auto buffer = make_buffer(*gpu, 4, "value");
  const auto done = Read(*gpu, buffer, 0, 4);
  done.wait();
  const auto never = Read(*gpu, buffer, 0, 4);
  gpu.reset();
  EXPECT_EQ(done.wait()[0], 0.0f);
  EXPECT_EQ(device_error([&] { never.wait(); }),
            "webgpu: the device was closed before the work finished");
}

TEST_F(GpuTimes, EachDispatchHasItsOwn) {
  const auto gpu = Gpu::open();
  if (!gpu->info().timestamps) GTEST_SKIP() << gpu->info().name << " has no timestamps";
  const auto x = make_buffer(*gpu, 4 << 20, "x"), y = make_buffer(*gpu, 4 << 20, "y");
  const auto add = make_pipeline(*gpu, line_kernel("add", "1", "1"));
  const Binding xy[] = {{x.get()}, {y.get()}};
  const auto group = gpu->bind(*add, xy);
  gpu->dispatch(*add, *group, 16);
  gpu->profile(true);
  constexpr std::size_t kDispatches = 2100;  // more than fit one set of queries
  for (std::size_t i = 0; i < kDispatches; ++i) gpu->dispatch(*add, *group, i == 5 ? 16384 : 1);
  const auto times = wait_for(*gpu, gpu->take_times(), "times");
  ASSERT_EQ(times.size(), kDispatches);
  std::vector<std::uint64_t> took;
  for (std::size_t i = 0; i < times.size(); ++i) {
    EXPECT_GE(times[i].end_ns, times[i].begin_ns) << i;
    if (i > 0) {
      EXPECT_GE(times[i].begin_ns, times[i - 1].begin_ns) << i;
    }
    took.push_back(times[i].end_ns - times[i].begin_ns);
  }
  const std::uint64_t large = took[5];
  std::sort(took.begin(), took.end());
  EXPECT_GT(large, took[took.size() / 2]) << "a million elements take longer than 64 mostly do";
  gpu->profile(false);
  gpu->dispatch(*add, *group, 1);
  EXPECT_TRUE(wait_for(*gpu, gpu->take_times(), "times").empty());
}

}  // namespace
}  // namespace tensorgrad::webgpu
