// Matmul tiles: all choices of a device give the same bits.
#include <optional>
#include <random>

#include "kernels/lower.h"
#include "kernels/tiles.h"
#include "runtime/blocking.h"
#include "tests/support/gpu_test.h"
#include "tests/webgpu/products.h"

namespace tensorgrad {
namespace {

namespace blocking = runtime::blocking;

// The outputs as raw memory.
std::vector<std::byte> run(runtime::Device& device, const schedule::Plan& plan,
                           const std::vector<ir::Kernel>& kernels) {
  const auto loaded = blocking::load(device, blocking::emit(device, kernels));
  std::array<std::shared_ptr<runtime::Buffer>, ir::kSpaces> buffers;
  runtime::Spaces spaces;
  for (std::size_t s = 0; s < buffers.size(); ++s) {
    buffers[s] = blocking::allocate(device, plan.elements[s], "memory");
    spaces[s] = buffers[s];
  }
  std::mt19937 random(3);
  std::vector<float> values;
  for (std::int64_t i = 0; i < plan.elements[static_cast<std::size_t>(ir::Space::inputs)]; ++i)
    values.push_back(static_cast<float>(random()) / 4294967296.0f - 0.5f);
  device.upload(*buffers[static_cast<std::size_t>(ir::Space::inputs)], 0,
                std::as_bytes(std::span(values)));
  device.submit(loaded, spaces);
  std::vector<std::byte> out(static_cast<std::size_t>(plan.bytes(ir::Space::outputs)));
  blocking::read(device, *buffers[static_cast<std::size_t>(ir::Space::outputs)], 0, out);
  return out;
}

class GpuTiles : public GpuTest, public testing::WithParamInterface<Product> {};

TEST_P(GpuTiles, AlternativesGiveTheSameBits) {
  const auto device = runtime::blocking::open_device("webgpu", 0);
  const schedule::Plan plan = plan_of(GetParam().graph);
  std::vector<ir::Kernel> kernels = kernels::lower(plan, ir::gpu_model());
  ASSERT_EQ(kernels.size(), 1u) << plan.text();
  std::optional<std::vector<std::byte>> first;
  int tried = 0;
  auto& matmul = *kernels[0].get_if<ir::MatmulKernel>();
  for (const ir::MatmulTiles& tiles : kernels::alternatives(matmul, ir::gpu_model())) {
    matmul.variant = tiles;
    const auto bits = run(*device, plan, kernels);
    if (!first) first = bits;
    EXPECT_TRUE(bits == *first) << ir::text(tiles);
    ++tried;
  }
  EXPECT_GE(tried, 3);
}

INSTANTIATE_TEST_SUITE_P(Webgpu, GpuTiles, testing::ValuesIn(kProducts),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace tensorgrad
