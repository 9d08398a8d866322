// Packing lifetimes into memory.
#include "schedule/arena.h"

#include <gtest/gtest.h>

#include <random>

#include "schedule/layout.h"

namespace tensorgrad::schedule {
namespace {

void expect_valid(const std::vector<Block>& blocks, const Packing& packing) {
  ASSERT_EQ(packing.offsets.size(), blocks.size());
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    EXPECT_EQ(packing.offsets[i] % kAlignment, 0);
    EXPECT_LE(packing.offsets[i] + blocks[i].elements, packing.elements);
    for (std::size_t j = 0; j < i; ++j) {
      const bool meet = blocks[i].born <= blocks[j].dies && blocks[j].born <= blocks[i].dies;
      const bool overlap = packing.offsets[i] < packing.offsets[j] + blocks[j].elements &&
                           packing.offsets[j] < packing.offsets[i] + blocks[i].elements;
      EXPECT_FALSE(meet && overlap) << i << " and " << j;
    }
  }
}

TEST(Arena, SharesMemoryWhereLivesDoNotMeet) {
  const std::vector<Block> blocks{{64, 0, 1}, {64, 1, 2}, {64, 2, 3}, {64, 3, 4}};
  const Packing packing = pack(blocks);
  expect_valid(blocks, packing);
  EXPECT_EQ(packing.elements, 128);
  EXPECT_EQ(most_alive(blocks).elements, 128);
}

TEST(Arena, TriesMoreThanTheOrderOfBirth) {
  // In the order of creation, the small block is in the way of the large one.
  const std::vector<Block> blocks{{64, 0, 1}, {64, 0, 9}, {192, 2, 3}, {64, 2, 3}};
  const Packing packing = pack(blocks);
  expect_valid(blocks, packing);
  EXPECT_EQ(packing.elements, most_alive(blocks).elements);
}

// No block crosses a multiple of 128, and no more memory than that needs.
TEST(Arena, InPieces) {
  const std::vector<Block> blocks{{64, 0, 1}, {128, 0, 1}, {64, 1, 2}, {64, 2, 3}, {128, 3, 3}};
  const Packing packing = pack(blocks, 128);
  expect_valid(blocks, packing);
  for (std::size_t i = 0; i < blocks.size(); ++i)
    EXPECT_LE(packing.offsets[i] % 128 + blocks[i].elements, 128) << i;
  EXPECT_EQ(packing.elements, 256);
}

TEST(Arena, ABlockLongerThanAPieceStartsOne) {
  const std::vector<Block> blocks{{64, 0, 9}, {320, 0, 9}, {64, 0, 9}};
  const Packing packing = pack(blocks, 128);
  expect_valid(blocks, packing);
  EXPECT_EQ(packing.offsets[1] % 128, 0);
}

TEST(Arena, NothingNeedsNothing) {
  EXPECT_EQ(pack({}).elements, 0);
  EXPECT_EQ(most_alive({}).elements, 0);
}

TEST(Arena, RandomLivesNeverOverlapAndStayNearTheBound) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<Block> blocks;
    const int steps = 2 + static_cast<int>(random() % 30);
    for (int i = 0; i < 40; ++i) {
      const int born = static_cast<int>(random() % static_cast<unsigned>(steps));
      blocks.push_back({1 + static_cast<std::int64_t>(random() % 1000), born,
                        born + static_cast<int>(random() % 8)});
    }
    std::stable_sort(blocks.begin(), blocks.end(),
                     [](const Block& a, const Block& b) { return a.born < b.born; });
    const Packing packing = pack(blocks);
    expect_valid(blocks, packing);
    EXPECT_GE(packing.elements, most_alive(blocks).elements);
    const Packing pieces = pack(blocks, 1024);
    expect_valid(blocks, pieces);
    for (std::size_t i = 0; i < blocks.size(); ++i)
      EXPECT_EQ(pieces.offsets[i] / 1024, (pieces.offsets[i] + blocks[i].elements - 1) / 1024) << i;
    EXPECT_LE(packing.elements, 3 * most_alive(blocks).elements / 2);
  }
}

}  // namespace
}  // namespace tensorgrad::schedule
