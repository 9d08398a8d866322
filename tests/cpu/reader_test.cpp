// Readers of memory through views, and windows as a matrix, beside the index map itself, which
// looks up one element at a time. Memory around the result must not change.
#include "codegen/cpu/reader.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "codegen/cpu/window_matrix.h"
#include "support/bits.h"
#include "tests/cpu/each_target.h"

namespace tensorgrad::cpu {
namespace {

using ir::IndexMap;

constexpr float kGuard = -77.25f;

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  std::int64_t from(std::int64_t low, std::int64_t high) {  // inclusive
    return std::uniform_int_distribution<std::int64_t>(low, high)(engine_);
  }

 private:
  std::mt19937 engine_;
};

// A load of a tensor whose element i is i + 1, and its memory.
struct Viewed {
  Viewed(const Shape& shape, const IndexMap& map) : values(usize(shape.count())) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i + 1);
    load.elements = shape.count();
    load.map = map;
    memory.space[usize(load.place.space)] = values.data();
  }
  float at(std::int64_t linear) const {
    double fill = 0;
    const std::int64_t address = load.map.address_of_linear(linear, fill);
    return address < 0 ? static_cast<float>(fill) : values[usize(address)];
  }

  std::vector<float> values;
  ir::Load load;
  Memory memory;
};

// Expects that some ranges of the view are read as the map says.
void expect_read(const Viewed& viewed, Random& random) {
  const Reader reader(viewed.load);
  const std::int64_t count = viewed.load.map.shape().count();
  for (int i = 0; i < 4; ++i) {
    const std::int64_t begin = i == 0 ? 0 : random.from(0, count - 1);
    const std::int64_t n = i == 0 ? count : random.from(1, count - begin);
    std::vector<float> out(usize(n) + 1, kGuard);
    const float* const got = reader.read(viewed.memory, begin, static_cast<int>(n), out.data());
    for (std::int64_t j = 0; j < n; ++j)
      ASSERT_EQ(got[j], viewed.at(begin + j)) << viewed.load.map.text() << " at " << begin + j;
    EXPECT_EQ(out.back(), kGuard);
  }
}

TEST(Reader, PartsOfImages) {
  on_each_target([] {
    Random random(1);
    for (int i = 0; i < 300; ++i) {
      const Shape shape{random.from(1, 3), random.from(1, 9), random.from(1, 40)};
      IndexMap map = IndexMap::contiguous(shape);
      for (int axis = 1; axis < 3; ++axis) {
        const std::int64_t stride = random.from(1, 3), size = map.shape()[axis];
        if (size < stride) continue;
        map = map.windows(axis, 1, stride, 1);
        Shape flat = map.shape();
        flat.erase(-1);
        map = map.reshape(flat);
      }
      if (random.from(0, 3) == 0) map = map.permute({0, 2, 1});
      if (random.from(0, 3) == 0) map = map.flip(static_cast<int>(random.from(0, 2)));
      expect_read(Viewed(shape, map), random);
    }
  });
}

// Positions are computed: they have no memory whose address could be used.
TEST(Reader, PositionsInReverse) {
  on_each_target([] {
    const IndexMap map = IndexMap::contiguous({4, 7}).flip(1);
    ir::Load load;
    load.source = ir::Load::Source::iota;
    load.dtype = DType::i32;
    load.elements = 28;
    load.map = map;
    std::vector<float> out(28);
    const float* const got = Reader(load).read({}, 0, 28, out.data());
    for (std::int64_t i = 0; i < 28; ++i) {
      double fill = 0;
      EXPECT_EQ(bit_cast<std::int32_t>(got[i]), map.address_of_linear(i, fill)) << i;
    }
  });
}

// [B, C, H, W] -> [1, C * h * w, B * OH * OW]: the right operand of a convolution.
TEST(WindowMatrix, AnyPartOfAConvolution) {
  Random random(2);
  int matrices = 0;
  for (int i = 0; i < 400; ++i) {
    const std::int64_t B = random.from(1, 3), C = random.from(1, 3), h = random.from(1, 3),
                       w = random.from(1, 4), by_h = random.from(1, 2), by_w = random.from(1, 3),
                       apart = random.from(1, 2);
    const Shape shape{B, C, random.from(1, 7) + apart * (h - 1),
                      random.from(1, 9) + apart * (w - 1)};
    const IndexMap map = IndexMap::contiguous(shape)
                             .pad(2, random.from(0, 2), random.from(0, 2), 0)
                             .pad(3, random.from(0, 2), random.from(0, 2), 0)
                             .windows(2, h, by_h, apart)
                             .windows(3, w, by_w, apart);
    const std::int64_t OH = map.shape()[2], OW = map.shape()[3];
    const bool turned = random.from(0, 3) == 0;
    const IndexMap wide = map.permute({1, 4, 5, 0, 2, 3}).reshape({1, C * h * w, B * OH * OW});
    const Viewed viewed(shape, wide);
    const auto matrix = WindowMatrix::make(viewed.load, turned);
    if (!matrix) continue;
    ++matrices;
    const std::int64_t rows = turned ? B * OH * OW : C * h * w,
                       columns = turned ? C * h * w : B * OH * OW;
    for (int j = 0; j < 3; ++j) {
      const std::int64_t first = j == 0 ? 0 : random.from(0, columns - 1);
      const std::int64_t n = j == 0 ? columns : random.from(1, columns - first);
      WindowMatrix::Columns part;
      matrix->columns(0, first, n, part);
      for (std::int64_t row = 0; row < rows; ++row) {
        std::vector<float> out(usize(n) + 1, kGuard);
        matrix->read(viewed.memory, part, row, out.data());
        for (std::int64_t c = 0; c < n; ++c) {
          const std::int64_t column = first + c;
          const std::int64_t linear = turned ? column * rows + row : row * columns + column;
          ASSERT_EQ(out[usize(c)], viewed.at(linear))
              << wide.text() << ", row " << row << ", column " << column
              << (turned ? ", turned" : "");
        }
        ASSERT_EQ(out.back(), kGuard);
      }
    }
  }
  EXPECT_GT(matrices, 300);
}

}  // namespace
}  // namespace tensorgrad::cpu
