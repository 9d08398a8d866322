// Which variant each model chooses, by shape. The tables are what was measured to be good: a change
// here changes speed, and where parts or splits change, it changes bits.
#include "kernels/variants.h"

#include <gtest/gtest.h>

#include "kernels/blocks.h"
#include "kernels/tiles.h"
#include "schedule/fuse.h"

namespace tensorgrad {
namespace {

using ir::cpu_model;
using ir::DeviceModel;
using ir::gpu_model;

template <class Core>
auto variant_of(const Core& core, const DeviceModel& model) {
  ir::Kernel kernel;
  kernel.core = core;
  kernels::choose_variants(kernel, model);
  return kernel.get_if<Core>()->variant;
}

ir::RowsKernel rows(std::int64_t lines, std::int64_t length, bool reduces = true) {
  ir::RowsKernel out;
  out.lines = lines, out.length = length;
  const ir::Reg x = out.program.load(0, DType::f32);
  if (reduces)
    out.program.push({.op = ir::ScalarOp::reduce,
                      .dtype = DType::f32,
                      .a = x,
                      .combine = ir::Combine::add,
                      .line = true});
  return out;
}

TEST(Variants, Rows) {
  using Walk = ir::RowsVariant::Walk;
  const struct {
    std::int64_t lines, length;
    ir::RowsVariant gpu, cpu;
  } table[] = {
      {1000, 0, {Walk::rows, 1, 0}, {Walk::rows, 1, 0}},
      {1000, 3, {Walk::rows, 1, 0}, {Walk::rows, 1, 0}},
      {1000, 7, {Walk::rows, 8, 0}, {Walk::rows, 1, 0}},
      {1000, 16, {Walk::rows, 1, 0}, {Walk::rows, 1, 0}},  // four quads
      {1000, 20, {Walk::rows, 8, 0}, {Walk::rows, 1, 0}},
      {128, 384, {Walk::rows, 128, 0}, {Walk::rows, 1, 0}},
      {128, 4096, {Walk::rows, 256, 0}, {Walk::rows, 1, 0}},
      {1, 4097, {Walk::parts, 256, 1024}, {Walk::parts, 1, 16384}},
      {64, 4097, {Walk::rows, 256, 0}, {Walk::parts, 1, 16384}},
      {63, 16384, {Walk::rows, 256, 0}, {Walk::parts, 1, 16384}},
      {63, 16388, {Walk::parts, 256, 1024}, {Walk::parts, 1, 16384}},
      {1, 1 << 22, {Walk::parts, 256, 4096}, {Walk::parts, 1, 16384}},
  };
  for (const auto& row : table) {
    SCOPED_TRACE(testing::Message() << row.lines << " x " << row.length);
    for (const bool gpu : {true, false}) {
      const ir::RowsVariant got =
          variant_of(rows(row.lines, row.length), gpu ? gpu_model() : cpu_model());
      const ir::RowsVariant& want = gpu ? row.gpu : row.cpu;
      EXPECT_EQ(got.walk, want.walk);
      EXPECT_EQ(got.threads, want.threads);
      EXPECT_EQ(got.part, want.part);
    }
    for (const DeviceModel* model : {&gpu_model(), &cpu_model()})
      EXPECT_EQ(variant_of(rows(row.lines, row.length, false), *model).walk, Walk::elements);
  }
  // Stage `fuse` lets rows up to this be stored, so that they must not be cut.
  EXPECT_EQ(cpu_model().rows.longest, schedule::kLongestRow);
}

TEST(Variants, Columns) {
  const auto columns = [](std::int64_t length, std::int64_t lines, const DeviceModel& model) {
    ir::ColumnsKernel kernel;
    kernel.lines = lines, kernel.length = length;
    return variant_of(kernel, model);
  };
  EXPECT_EQ(columns(16, 100, gpu_model()), (ir::ColumnsVariant{true, 8}));
  EXPECT_EQ(columns(17, 100, gpu_model()), (ir::ColumnsVariant{false, 8}));
  EXPECT_EQ(columns(17, 65536, gpu_model()), (ir::ColumnsVariant{true, 8}));
  EXPECT_EQ(columns(16, 100, cpu_model()), (ir::ColumnsVariant{false, 256}));
  EXPECT_EQ(columns(17, 65536, cpu_model()), (ir::ColumnsVariant{false, 256}));
}

TEST(Variants, Scan) {
  const auto alone = [](std::int64_t length, const DeviceModel& model) {
    ir::ScanKernel kernel;
    kernel.length = length;
    return variant_of(kernel, model).alone;
  };
  EXPECT_TRUE(alone(32, gpu_model()));
  EXPECT_FALSE(alone(33, gpu_model()));
  EXPECT_TRUE(alone(1 << 20, cpu_model()));
}

TEST(Variants, SegmentSum) {
  const auto sum = [](std::int64_t P, std::int64_t D, std::int64_t V, const DeviceModel& model) {
    ir::SegmentSumKernel kernel;
    kernel.length = P, kernel.lines = D, kernel.extent = V;
    return variant_of(kernel, model);
  };
  EXPECT_EQ(sum(100, 8, 1024, gpu_model()), (ir::SegmentSumVariant{true, 1}));
  EXPECT_EQ(sum(0, 8, 1024, gpu_model()), (ir::SegmentSumVariant{false, 1}));
  EXPECT_EQ(sum(2048, 64, 65, gpu_model()), (ir::SegmentSumVariant{false, 1}));
  EXPECT_EQ(sum(4096, 64, 65, gpu_model()), (ir::SegmentSumVariant{false, 8}));
  EXPECT_EQ(sum(1 << 20, 64, 65, gpu_model()), (ir::SegmentSumVariant{false, 31}));
  EXPECT_EQ(sum(1 << 20, 512, 512, gpu_model()), (ir::SegmentSumVariant{false, 1}));
  EXPECT_EQ(sum(4096, 0, 65, gpu_model()), (ir::SegmentSumVariant{false, 1}));
  EXPECT_EQ(sum(1 << 20, 64, 65536, cpu_model()), (ir::SegmentSumVariant{false, 1}));
}

TEST(Variants, Attention) {
  const auto attention = [](std::int64_t B, std::int64_t H, std::int64_t G, std::int64_t T,
                            std::int64_t S, std::int64_t D, const DeviceModel& model) {
    ir::AttentionGradientKernel kernel;
    kernel.shape = {.B = B, .H = H, .G = G, .T = T, .S = S, .D = D, .V = D};
    return variant_of(kernel, model);
  };
  EXPECT_EQ(attention(2, 4, 4, 16, 16, 32, gpu_model()), (ir::AttentionVariant{true, 16, 16}));
  EXPECT_EQ(attention(2, 4, 4, 16, 17, 32, gpu_model()), (ir::AttentionVariant{false, 16, 17}));
  EXPECT_EQ(attention(2, 4, 4, 16, 16, 33, gpu_model()), (ir::AttentionVariant{false, 16, 16}));
  EXPECT_EQ(attention(4, 4, 4, 300, 300, 32, cpu_model()), (ir::AttentionVariant{false, 300, 300}));
  EXPECT_EQ(attention(2, 4, 4, 300, 300, 32, cpu_model()), (ir::AttentionVariant{false, 128, 150}));
  EXPECT_EQ(attention(4, 4, 2, 300, 300, 32, cpu_model()), (ir::AttentionVariant{false, 300, 150}));
  EXPECT_EQ(attention(1, 1, 1, 100, 4096, 8, cpu_model()), (ir::AttentionVariant{false, 100, 256}));
}

struct MatmulRow {
  std::int64_t batches, M, K, N;
  const char* tiles;
  std::int64_t splits;        // on a GPU
  ir::MatmulUnit unit;        // where both are there
  std::int64_t parts, depth;  // of k, on that unit
  std::int64_t vector_parts, vector_depth;
};
constexpr ir::MatmulUnit kVectors = ir::MatmulUnit::vectors, kAmx = ir::MatmulUnit::amx;
constexpr MatmulRow kMatmuls[] = {
    {1, 512, 512, 512, "32x32x64", 1, kAmx, 1, 128, 1, 256},
    {1, 1024, 1024, 1024, "128x64x16", 1, kAmx, 1, 128, 1, 344},
    {1, 4096, 4096, 4096, "128x64x16", 1, kAmx, 1, 128, 1, 376},
    {1, 128, 16, 128, "direct", 1, kVectors, 1, 16, 1, 16},
    {1, 4096, 128, 4, "direct", 1, kVectors, 1, 128, 1, 128},
    {1, 4096, 300, 4, "32x32x64", 1, kVectors, 1, 304, 1, 304},
    {1, 1024, 64, 64, "32x32x64", 1, kVectors, 1, 64, 1, 64},
    {1, 2048, 256, 1024, "128x64x16", 1, kAmx, 1, 128, 1, 256},
    {1, 128, 4096, 128, "64x64x32", 32, kAmx, 16, 128, 16, 256},
    {1, 384, 16384, 384, "128x64x16", 32, kAmx, 8, 128, 8, 344},
    {1, 65, 4096, 128, "32x32x64", 16, kAmx, 16, 128, 16, 256},
    {64, 256, 64, 256, "128x64x16", 1, kAmx, 1, 64, 1, 64},
    {1, 1, 1024, 1024, "32x32x64", 4, kVectors, 1, 344, 1, 344},
    {1, 4096, 128, 1, "direct", 1, kVectors, 1, 128, 1, 128},
    {1, 64, 65536, 64, "32x32x64", 32, kAmx, 16, 128, 16, 376},
};

ir::MatmulKernel matmul(const MatmulRow& row) {
  ir::MatmulKernel out;
  out.batches = row.batches, out.M = row.M, out.K = row.K;
  out.parts.resize(1);
  out.parts[0].N = row.N;
  out.parts[0].epilogue.push({.op = ir::ScalarOp::accumulator});
  return out;
}

TEST(Variants, Matmul) {
  for (const MatmulRow& row : kMatmuls) {
    SCOPED_TRACE(testing::Message()
                 << row.batches << " x " << row.M << " x " << row.K << " x " << row.N);
    const ir::MatmulKernel kernel = matmul(row);
    const auto tiles = std::get<ir::MatmulTiles>(variant_of(kernel, gpu_model()));
    EXPECT_EQ(ir::text(tiles), row.tiles);
    EXPECT_EQ(tiles.splits, row.splits);
    const auto vectors = std::get<ir::MatmulBlocks>(variant_of(kernel, cpu_model()));
    EXPECT_EQ(vectors.unit, kVectors);
    EXPECT_EQ(vectors.splits, row.vector_parts);
    EXPECT_EQ(vectors.depth, row.vector_depth);
    const auto best =
        std::get<ir::MatmulBlocks>(variant_of(kernel, cpu_model(ir::CpuUnits::vectors_and_amx)));
    EXPECT_EQ(best.unit, row.unit);
    EXPECT_EQ(best.splits, row.parts);
    EXPECT_EQ(best.depth, row.depth);
    EXPECT_EQ(std::get<ir::MatmulBlocks>(variant_of(kernel, cpu_model(ir::CpuUnits::amx))).unit,
              kAmx);
  }
}

// Column sums are computed while tiles of the right operand are in workgroup memory.
TEST(Variants, MatmulWithColumnSumsHasTiles) {
  ir::MatmulKernel kernel = matmul(kMatmuls[3]);
  kernel.parts[0].column_sums = ir::Store{};
  EXPECT_FALSE(std::get<ir::MatmulTiles>(variant_of(kernel, gpu_model())).direct);
}

// The unit and the parts of k decide the bits, and an epilogue does not change them.
TEST(Variants, AnEpilogueDoesNotChangeTheOrderOfAdditions) {
  for (const MatmulRow& row : kMatmuls) {
    const auto blocks = [&](bool epilogues) {
      return kernels::choose_blocks({row.batches, row.M, row.K, std::span(&row.N, 1), epilogues},
                                    cpu_model(ir::CpuUnits::vectors_and_amx).blocks);
    };
    EXPECT_EQ(blocks(true).unit, blocks(false).unit);
    EXPECT_EQ(blocks(true).splits, blocks(false).splits);
    EXPECT_EQ(blocks(true).depth, blocks(false).depth);
  }
}

// A matrix times a column: where the matrix is strided memory, the CPU computes a row instead.
TEST(Variants, AColumnIsComputedAsARow) {
  ir::Kernel kernel;
  ir::MatmulKernel core = matmul({1, 4096, 128, 1, "", 1, kVectors, 1, 1, 1, 1});
  kernel.loads = {{.map = ir::IndexMap::contiguous({1, 4096, 128})}};
  core.a.load(0, DType::f32);
  const auto transposed = [&] {
    kernel.core = core;
    kernels::choose_variants(kernel, cpu_model());
    return std::get<ir::MatmulBlocks>(kernel.get_if<ir::MatmulKernel>()->variant).transposed;
  };
  EXPECT_TRUE(transposed());
  core.parts[0].column_sums = ir::Store{};
  EXPECT_FALSE(transposed());
  core.parts[0].column_sums.reset();
  core.a.unary(ir::ScalarOp::exp, 0);
  EXPECT_FALSE(transposed());
}

TEST(Variants, AlternativesAddInTheSameOrder) {
  for (const MatmulRow& row : kMatmuls) {
    const std::vector<ir::MatmulTiles> all = kernels::alternatives(matmul(row), gpu_model());
    EXPECT_EQ(all[0], kernels::choose_tiles(matmul(row), gpu_model()));
    EXPECT_EQ(all.size() == 1, all[0].direct || all[0].slices > 1);
    for (const ir::MatmulTiles& tiles : all) {
      EXPECT_EQ(tiles.splits, all[0].splits);
      EXPECT_EQ(tiles.slices, all[0].slices);
    }
  }
}

TEST(TileSize, IsPrintedAndParsed) {
  for (const ir::TileCandidate& candidate : gpu_model().tiles.candidates) {
    const ir::TileSize size = candidate.tiles.size();
    EXPECT_EQ(ir::parse_tile_size(ir::text(size)), size);
  }
  EXPECT_EQ(ir::text(ir::TileSize{128, 64, 16}), "128x64x16");
  EXPECT_EQ(ir::text(ir::MatmulTiles{.direct = true}), "direct");
  for (const char* wrong :
       {"", "direct", "128", "128x64", "128x64x", "128x64x16x", "128x64x16 ", "x64x16",
        "128x-64x16", "128x0x16", "1e2x64x16", "128X64X16", "99999999999x64x16"})
    EXPECT_FALSE(ir::parse_tile_size(wrong)) << wrong;
}

}  // namespace
}  // namespace tensorgrad
