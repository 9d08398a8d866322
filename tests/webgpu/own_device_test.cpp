// A WGPUDevice of the program, used by Gpu and by whole programs.
#include <dlfcn.h>
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "runtime/blocking.h"
#include "runtime/webgpu/dawn_node_native.h"
#include "runtime/webgpu/webgpu_device.h"
#include "tensorgrad/tensorgrad.h"
#include "tensorgrad/webgpu.h"
#include "tests/support/run_tool.h"
#include "tests/webgpu/common.h"

namespace tensorgrad::webgpu {
namespace {

using GpuAdopted = GpuTest;
using GpuOwnDevice = GpuTest;

const api::Functions& call() { return library().call; }

// A program with its own device, an instance without timed waits, and its own callbacks.
class Owner {
 public:
  Owner() : instance_(call().CreateInstance(nullptr), call().InstanceRelease) {
    api::Adapter adapter = nullptr;
    api::CallbackInfo<api::RequestAdapterCallback> found;
    found.callback = [](api::Status, api::Adapter given, api::StringView, void* result, void*) {
      *static_cast<api::Adapter*>(result) = given;
    };
    found.userdata1 = &adapter;
    const api::RequestAdapterOptions wish;
    wait(call().InstanceRequestAdapter(instance_.get(), &wish, found));
    const Handle<api::AdapterImpl> owned(adapter, call().AdapterRelease);

    api::DeviceDescriptor descriptor;
    descriptor.device_lost.mode = api::CallbackMode::allow_spontaneous;
    descriptor.device_lost.callback = [](const api::Device*, api::LostReason, api::StringView,
                                         void* count,
                                         void*) { ++*static_cast<std::atomic<int>*>(count); };
    descriptor.device_lost.userdata1 = &losses;
    descriptor.uncaptured_error.callback = [](const api::Device*, api::ErrorType, api::StringView,
                                              void* count,
                                              void*) { ++*static_cast<std::atomic<int>*>(count); };
    descriptor.uncaptured_error.userdata1 = &errors;
    api::CallbackInfo<api::RequestDeviceCallback> made;
    made.callback = [](api::Status, api::Device given, api::StringView, void* result, void*) {
      *static_cast<api::Device*>(result) = given;
    };
    made.userdata1 = &device;
    wait(call().AdapterRequestDevice(adapter, &descriptor, made));
  }
  ~Owner() { release(); }
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;

  void release() {
    if (device) call().DeviceRelease(std::exchange(device, nullptr));
  }

  // Work of the program itself: sends a value through the queue and back.
  float echo(float value) {
    const Handle<api::QueueImpl> queue(call().DeviceGetQueue(device), call().QueueRelease);
    const auto from = buffer(api::kUsageCopySrc | api::kUsageCopyDst),
               to = buffer(api::kUsageMapRead | api::kUsageCopyDst);
    call().QueueWriteBuffer(queue.get(), from.get(), 0, &value, sizeof value);
    const Handle<api::CommandEncoderImpl> encoder(
        call().DeviceCreateCommandEncoder(device, nullptr), call().CommandEncoderRelease);
    call().CommandEncoderCopyBufferToBuffer(encoder.get(), from.get(), 0, to.get(), 0,
                                            sizeof value);
    const Handle<api::CommandBufferImpl> commands(
        call().CommandEncoderFinish(encoder.get(), nullptr), call().CommandBufferRelease);
    const api::CommandBuffer list[] = {commands.get()};
    call().QueueSubmit(queue.get(), 1, list);
    api::CallbackInfo<api::BufferMapCallback> mapped;
    mapped.callback = [](api::Status, api::StringView, void*, void*) {};
    wait(call().BufferMapAsync(to.get(), api::kMapRead, 0, sizeof value, mapped));
    const void* bytes = call().BufferGetConstMappedRange(to.get(), 0, sizeof value);
    float out = std::nanf("");
    if (bytes) std::memcpy(&out, bytes, sizeof out);
    return out;
  }

  api::Device device = nullptr;
  std::atomic<int> losses = 0, errors = 0;  // reported to its callbacks

 private:
  Handle<api::BufferImpl> buffer(std::uint64_t usage) {
    api::BufferDescriptor descriptor;
    descriptor.usage = usage;
    descriptor.size = 16;
    return {call().DeviceCreateBuffer(device, &descriptor), call().BufferRelease};
  }

  void wait(api::Future future) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    api::FutureWaitInfo info{future};
    while (!info.completed && std::chrono::steady_clock::now() < end)
      call().InstanceWaitAny(instance_.get(), 1, &info, 0);
  }

  Handle<api::InstanceImpl> instance_;
};

TEST_F(GpuAdopted, ComputesWithTheLimitsItHasAndStaysAlive) {
  Owner own;
  ASSERT_TRUE(own.device);
  for (int round = 0; round < 2; ++round) {
    const auto gpu = Gpu::adopt(own.device, library());
    EXPECT_EQ(gpu->info().limits.storage_buffers, 8u);
    EXPECT_FALSE(gpu->info().timestamps);
    EXPECT_EQ(device_error([&] { gpu->profile(true); }),
              "webgpu: " + gpu->info().name + " has no timestamps");
    const auto x = make_buffer(*gpu, 256, "x"), y = make_buffer(*gpu, 256, "y");
    const auto add = make_pipeline(*gpu, line_kernel("add", "1", "1"));
    const Binding xy[] = {{x.get()}, {y.get()}}, both[] = {{x.get()}, {x.get()}};
    gpu->dispatch(*add, *gpu->bind(*add, xy), 1);
    EXPECT_EQ(read_floats(*gpu, y), std::vector<float>(64, 1.0f));
    gpu->dispatch(*add, *gpu->bind(*add, both), 1);
    expect_starts_with(device_error([&] { gpu->submit(); }), "webgpu: a command was refused: ");
    EXPECT_EQ(read_floats(*gpu, y), std::vector<float>(64, 1.0f));
    expect_starts_with(device_error([&] { make_pipeline(*gpu, line_kernel("bad", "1", "wrong")); }),
                       "webgpu: the shader of kernel 'bad' was refused:");
    gpu->inject(Fault::buffer_memory);
    expect_starts_with(device_error([&] { make_buffer(*gpu, 256, "z"); }),
                       "webgpu: out of memory: ");
  }
  EXPECT_EQ(own.errors, 0) << "what tensorgrad causes is not told to the program's callback";
  EXPECT_EQ(own.losses, 0);
}

// ---- whole programs

struct Mlp {
  Linear l1{3, 16}, l2{16, 2};
};

Tensor loss_of(const Mlp& m, const Inputs& in) {
  return mse_loss(m.l2(gelu(m.l1(in["x"]))), in["y"]);
}

Training<Mlp> compile_on(const std::string& device) {
  return compile(Mlp{},
                 {.inputs = {{"x", {32, 3}}, {"y", {32, 2}}},
                  .optimizer = AdamW{.lr = 0.01},
                  .clip_grad_norm = 1,
                  .seed = 5,
                  .device = device},
                 loss_of);
}

Result step(Training<Mlp>& train, int i) {
  const auto wave = [&](std::size_t count, float phase) {
    std::vector<float> out;
    for (std::size_t k = 0; k < count; ++k)
      out.push_back(std::sin(0.7f * static_cast<float>(k) + phase));
    return out;
  };
  const auto phase = 0.3f * static_cast<float>(i);
  return train.step({{"x", wave(96, phase)}, {"y", wave(64, 2 * phase)}});
}

TEST_F(GpuOwnDevice, TrainsAsTheCpuDoesAndIsGivenBack) {
  Owner own;
  ASSERT_TRUE(own.device);
  {
    auto cpu = compile_on("cpu"),
         gpu = compile_on(WebGpuDevice(own.device).name());  // the program keeps it alive
    expect_starts_with(gpu.device(), "webgpu:own");
    for (int i = 0; i < 20; ++i) {
      const Result a = step(cpu, i), b = step(gpu, i);
      EXPECT_EQ(own.echo(static_cast<float>(i)),
                static_cast<float>(i));  // before the step is read
      EXPECT_NEAR(a.loss(), b.loss(), 1e-5 * (1 + std::abs(a.loss()))) << i;
    }
    auto second = compile_on(gpu.device());  // shares it
    EXPECT_EQ(second.device(), gpu.device());
  }
  EXPECT_EQ(own.echo(7), 7.0f) << "it is not destroyed";
  EXPECT_EQ(own.losses, 0);
  EXPECT_EQ(own.errors, 0);
  own.release();
  EXPECT_EQ(own.losses, 1) << "that was the last reference: it is gone now";
}

TEST_F(GpuOwnDevice, IsDescribedAsItIs) {
  Owner own;
  const WebGpuDevice gpu(own.device), again(own.device);
  const DeviceInfo info = gpu.info();
  EXPECT_EQ(info.name, gpu.name());
  EXPECT_NE(gpu.name(), again.name());
  EXPECT_TRUE(info.available);
  EXPECT_EQ(info.max_buffer_bytes, 256 << 20);  // nobody asked for more
  EXPECT_EQ(info.max_binding_bytes, 128 << 20);
  EXPECT_FALSE(info.timestamps);
  for (const DeviceInfo& listed : devices())
    EXPECT_NE(listed.name, gpu.name()) << "auto does not choose among them";
}

std::string memory_error(const std::function<void()>& call) {
  try {
    call();
  } catch (const OutOfMemoryError& error) {
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

struct Wide {
  Linear l{16, 1 << 15};
};

struct Large {
  Param w{{20, 1 << 20}, init::zeros()};
};

// Its limits are the same everywhere, and so are the messages.
TEST_F(GpuOwnDevice, WhatDoesNotFitIsNamedWithNeedAndLimit) {
  Owner own;
  const WebGpuDevice gpu(own.device);
  const std::string name =
      runtime::gpu_under(*runtime::blocking::open_device(gpu.name(), 0)).info().name;
  const std::string allows = " in one binding; " + name + " allows 128.0 MiB\n",
                    batch_hint = "  hint: a smaller batch, or a device with more room";
  int line = 0;
  const auto at = [&](int where) { return "own_device_test.cpp:" + std::to_string(where) + "\n"; };
  const auto wide = [&](std::int64_t batch, bool summed) {
    return [&, batch, summed] {
      compile_forward(Wide{}, {.inputs = {{"x", {batch, 16}}}, .device = gpu.name()},
                      [&](const Wide& m, const Inputs& in) {
                        line = __LINE__ + 1;
                        const Tensor y = m.l(in["x"]);
                        const Tensor sums = cumsum(y, 0);  // named, so that it is the first
                        return summed ? sum(softmax(y) * sums) : y;
                      });
    };
  };
  const std::string activations = memory_error(wide(2048, true));
  EXPECT_EQ(activations, "webgpu: too large: 256.0 MiB for activations" + allows +
                             "  largest: 256.0 MiB for f32[2048,32768] of Linear in l, at " +
                             at(line) + "           256.0 MiB for f32[2048,32768] of cumsum, at " +
                             at(line + 1) +
                             "  the program needs 514.3 MiB: parameters 2.1 MiB, inputs 0.1 MiB, "
                             "activations 512.0 MiB\n" +
                             batch_hint);
  EXPECT_EQ(
      memory_error(wide(2048, false)),
      "webgpu: too large: 256.0 MiB for outputs" + allows +
          "  largest: 256.0 MiB for output:out f32[2048,32768]\n"
          "  the program needs 258.2 MiB: parameters 2.1 MiB, inputs 0.1 MiB, outputs 256.0 MiB\n" +
          batch_hint);
  EXPECT_EQ(memory_error([&] {
              compile_forward(
                  Mlp{}, {.inputs = {{"x", {64, 1 << 20}}}, .device = gpu.name()},
                  [](const Mlp& m, const Inputs& in) { return sum(in["x"]) + sum(m.l1.W); });
            }),
            "webgpu: too large: 256.0 MiB for inputs" + allows +
                "  largest: 256.0 MiB for x f32[64,1048576]\n"
                "  the program needs 256.0 MiB: inputs 256.0 MiB\n" +
                batch_hint);
  EXPECT_EQ(memory_error([&] {
              compile(Large{}, {.device = gpu.name()},
                      [](const Large& m, const Inputs&) { return sum(square(m.w)); });
            }),
            "webgpu: too large: 160.0 MiB for optimizer state" + allows +
                "  largest: 80.0 MiB for w f32[20,1048576]\n"
                "  the program needs 320.0 MiB: parameters 80.0 MiB, gradients 80.0 MiB, optimizer "
                "state 160.0 MiB\n"
                "  hint: a smaller model, or a device with more room");
  EXPECT_EQ(own.errors, 0);
}

// Two tensors of 80 MiB that are alive at once; a binding has 128 MiB.
TEST_F(GpuOwnDevice, TemporariesMayNeedMoreThanOneBinding) {
  Owner own;
  const WebGpuDevice gpu(own.device);
  const auto loss_on = [](const std::string& device) {
    auto forward =
        compile_forward(Wide{}, {.inputs = {{"x", {640, 16}}}, .seed = 3, .device = device},
                        [](const Wide& m, const Inputs& in) {
                          const Tensor y = m.l(in["x"]);
                          return sum(softmax(y) * cumsum(y, 0));
                        });
    EXPECT_GT(forward.counts().arena_bytes, 128 << 20);
    std::vector<float> x;
    for (int i = 0; i < 640 * 16; ++i) x.push_back(static_cast<float>(i % 7) / 7);
    return forward.run({{"x", x}}).output().item();
  };
  const double cpu = loss_on("cpu");
  EXPECT_NEAR(loss_on(gpu.name()), cpu, 1e-4 * std::abs(cpu));
}

TEST_F(GpuOwnDevice, FunctionsMayComeFromWhereTheProgramSays) {
  Owner own;
  void* get_proc_address = nullptr;
  if (is_node_addon(library().path)) {
    get_proc_address = load_dawn_node(library().path)("wgpuGetProcAddress");
  } else if (void* loaded = dlopen(library().path.c_str(), RTLD_NOW | RTLD_NOLOAD)) {
    get_proc_address = dlsym(loaded, "wgpuGetProcAddress");
    dlclose(loaded);
  }
  ASSERT_TRUE(get_proc_address);
  for (const WebGpuOptions& options : {WebGpuOptions{.library = library().path},
                                       WebGpuOptions{.get_proc_address = get_proc_address}}) {
    const WebGpuDevice gpu(own.device, options);
    auto train = compile_on(gpu.name());
    EXPECT_TRUE(std::isfinite(step(train, 0).loss()));
  }
}

TEST_F(GpuOwnDevice, ItsLossIsNoticed) {
  Owner own;
  const WebGpuDevice gpu(own.device);
  auto train = compile_on(gpu.name());
  const Result read = step(train, 0);
  const float loss = read.loss();
  const Result unread = step(train, 1);
  call().DeviceDestroy(own.device);
  const std::string text =
      "webgpu: the device was lost: its owner knows why\n  hint: open it again and continue from "
      "the last checkpoint";
  EXPECT_EQ(own.losses, 1);
  EXPECT_EQ(device_error([&] { unread.loss(); }), text);
  EXPECT_EQ(device_error([&] { step(train, 2).loss(); }), text);
  EXPECT_EQ(device_error([&] { train.download(); }), text);
  EXPECT_EQ(device_error([&] { compile_on(gpu.name()); }), text);
  EXPECT_EQ(device_error([&] { WebGpuDevice{own.device}; }), text);
  EXPECT_EQ(read.loss(), loss) << "what was read before stays";
}

std::string user_error_of(const std::function<void()>& make) {
  try {
    make();
  } catch (const UserError& error) {
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

TEST(OwnDevice, ANullOneIsRefused) {
  EXPECT_EQ(user_error_of([] { WebGpuDevice(nullptr); }),
            "WebGpuDevice: the device is null\n  hint: did wgpuAdapterRequestDevice succeed?");
}

TEST(OwnDevice, ANameThatIsGoneIsRefused) {
  EXPECT_EQ(user_error_of([] { compile_on("webgpu:own99"); }),
            "device: there is no 'webgpu:own99'\n"
            "  hint: the name exists as long as its WebGpuDevice or a program on it");
}

// Its functions would get an object of another library.
TEST_F(GpuOwnDevice, OneOfAnotherLibraryIsRefused) {
  const void* object[] = {stdout};  // an address in libc
  Dl_info libc{};
  ASSERT_TRUE(dladdr(stdout, &libc));
  EXPECT_EQ(
      user_error_of([&] { WebGpuDevice{object}; }),
      fmt::format("WebGpuDevice: the device belongs to the library {}, but the functions are those "
                  "of {}\n  hint: set .library or .get_proc_address to those of the device",
                  libc.dli_fname, file_of(library())));
}

void* knows_nothing(api::StringView) { return nullptr; }

TEST(OwnDevice, FunctionsThatAreMissingAreNamed) {
  const void* object[] = {nullptr};
  expect_contains(device_error([&] {
                    WebGpuDevice(object,
                                 {.get_proc_address = reinterpret_cast<void*>(&knows_nothing)});
                  }),
                  " is another library or an old version: it has no wgpuCreateInstance\n");
  expect_contains(
      device_error([&] { WebGpuDevice(object, {.library = "libm.so.6"}); }),
      "webgpu: libm.so.6 is another library or an old version: it has no wgpuCreateInstance\n");
}

}  // namespace
}  // namespace tensorgrad::webgpu
