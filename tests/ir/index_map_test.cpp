// IndexMap: simple cases, one by one.
#include "ir/index_map.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ir/split_axes.h"
#include "tests/ir/plain_view.h"

namespace tensorgrad::ir {
namespace {

TEST(IndexMap, ContiguousIsRowMajor) {
  const IndexMap map = IndexMap::contiguous({2, 3, 4});
  EXPECT_TRUE(map.is_contiguous());
  EXPECT_EQ(map.stride(0), 12);
  EXPECT_EQ(map.stride(1), 4);
  EXPECT_EQ(map.stride(2), 1);
  EXPECT_EQ(map.text(), "[2,3,4](12,4,1)+0");
}

TEST(IndexMap, ReshapeOfContiguousIsContiguous) {
  Both both({2, 6, 4});
  both.reshape({3, 16}).reshape({48}).reshape({4, 1, 12});
  both.check();
  EXPECT_TRUE(both.map.is_contiguous()) << both.map.text();
}

TEST(IndexMap, ReshapeOfPermutedNeedsASecondLayer) {
  Both both({2, 3});
  both.permute({1, 0});
  EXPECT_TRUE(both.map.is_strided());
  EXPECT_FALSE(both.map.is_contiguous());
  both.reshape({6});
  EXPECT_EQ(both.map.layers().size(), 2u);
  EXPECT_FALSE(both.map.is_strided());
  EXPECT_EQ(both.map.text(), "[6](1)+0 then [3,2](1,3)+0");
  both.check();
}

TEST(IndexMap, ReshapeThatSplitsAPermutedAxisStaysStrided) {
  Both both({4, 6});
  both.permute({1, 0}).reshape({2, 3, 2, 2});
  both.check();
  EXPECT_EQ(both.map.text(), "[2,3,2,2](3,1,12,6)+0");
  both.reshape({6, 1, 4});
  EXPECT_EQ(both.map.text(), "[6,1,4](1,0,6)+0");
  both.check();
}

TEST(IndexMap, ReshapeOfPaddedKeepsTheGuardWhereItCan) {
  Both both({2, 3});
  both.pad(1, 0, 1, -1).reshape({2, 2, 2});
  EXPECT_EQ(both.map.layers().size(), 1u);
  EXPECT_EQ(both.map.text(), "[2,2,2](3,2,1)+0 if (0,2,1)+0<3 else -1");
  both.check();
  both.reshape({8});
  EXPECT_EQ(both.map.layers().size(), 2u);
  both.check();
}

TEST(IndexMap, PermuteOfPermuteComesBack) {
  const IndexMap map = IndexMap::contiguous({2, 3, 4});
  EXPECT_EQ(map.permute({2, 0, 1}).permute({1, 2, 0}), map);
}

TEST(IndexMap, LaterPadDecidesItsOwnFill) {
  Both both({1});
  both.pad(0, 1, 1, -1).pad(0, 1, 1, -2);
  both.check();
  EXPECT_EQ(both.plain.values, (std::vector<double>{-2, -1, 1, -1, -2}));
  EXPECT_EQ(both.map.layers()[0].guards.size(), 2u);

  Both corner({1, 1});  // where two pads cross, the later one wins
  corner.pad(0, 1, 0, -1).pad(1, 1, 0, -2);
  corner.check();
  EXPECT_EQ(corner.plain.values, (std::vector<double>{-2, -1, -2, 1}));
}

TEST(IndexMap, GuardsDropWhenNarrowedAway) {
  Both both({4});
  both.pad(0, 2, 2, -1).pad(0, 1, 1, -2);
  EXPECT_EQ(both.map.layers()[0].guards.size(), 2u);
  both.narrow(0, 1, 8);
  EXPECT_EQ(both.map.layers()[0].guards.size(), 1u);
  both.check();
  both.narrow(0, 2, 4);
  EXPECT_TRUE(both.map.is_contiguous());
  both.check();
}

TEST(IndexMap, PadOfNothingAddsNoGuard) {
  EXPECT_EQ(IndexMap::contiguous({3}).pad(0, 0, 0, 7), IndexMap::contiguous({3}));
}

TEST(IndexMap, BroadcastHasStrideZero) {
  Both both({3, 1});
  both.broadcast({2, 3, 4});
  EXPECT_EQ(both.map.text(), "[2,3,4](0,1,0)+0");
  EXPECT_FALSE(both.map.is_contiguous());
  both.check();
  both.reshape({6, 4});  // the first two axes do not merge
  EXPECT_EQ(both.map.layers().size(), 2u);
  both.check();
}

TEST(IndexMap, FlipStartsAtTheEnd) {
  Both both({2, 3});
  both.flip(1);
  EXPECT_EQ(both.map.text(), "[2,3](3,-1)+2");
  both.check();
  both.flip(1);
  EXPECT_EQ(both.map, IndexMap::contiguous({2, 3}));
}

TEST(IndexMap, WindowsOverlap) {
  Both both({2, 7});
  both.windows(1, 3, 2, 1);
  EXPECT_EQ(both.map.text(), "[2,3,3](7,2,1)+0");
  both.check();
  Both padded({5});
  padded.pad(0, 2, 2, -1).windows(0, 3, 1, 2);
  padded.check();
}

TEST(IndexMap, ZeroSizes) {
  Both both({2, 0, 3});
  EXPECT_TRUE(both.map.is_contiguous());
  both.check();
  both.permute({1, 2, 0}).flip(0).reshape({3, 0});
  both.check();
  both.pad(1, 1, 1, -5);  // nothing but fill
  both.check();
  EXPECT_EQ(both.plain.values, std::vector<double>(6, -5));

  Both narrowed({4});
  narrowed.narrow(0, 4, 0).pad(0, 2, 0, -1).broadcast({3, 2});
  narrowed.check();
}

TEST(IndexMap, RankZero) {
  Both both(Shape{});
  EXPECT_TRUE(both.map.is_contiguous());
  EXPECT_EQ(both.map.text(), "[]()+0");
  both.check();
  both.reshape({1, 1}).broadcast({2, 3});
  both.check();
  both.narrow(0, 1, 1).narrow(1, 2, 1).reshape({});
  both.check();
  EXPECT_EQ(both.plain.values, std::vector<double>{1});
}

// A fold reads its windows with a skew: output i of a convolution's gradient takes window i - k,
// element k. The guard of the pad handles positions outside.
TEST(IndexMap, SkewMovesAnAxisByAnother) {
  const std::int64_t windows = 4, size = 3;
  const IndexMap map =
      IndexMap::contiguous({windows, size}).pad(0, 2, 2, -1).narrow(0, 2, windows + 2);
  const IndexMap skewed = map.skew(0, 1, 1);
  for (std::int64_t i = 0; i < windows + 2; ++i)
    for (std::int64_t k = 0; k < size; ++k) {
      const std::int64_t position[] = {i, k};
      double fill = 0;
      const bool inside = i - k >= 0 && i - k < windows;
      EXPECT_EQ(skewed.address(position, fill), inside ? (i - k) * size + k : -1);
      EXPECT_EQ(fill, inside ? 0 : -1);
    }
}

// The windows of a convolution, as its matmul reads them: merged channels and kernel sizes by
// merged rows and columns.
TEST(SplitAxes, WindowsOfAConvolutionAreOneLayer) {
  IndexMap map = IndexMap::contiguous({2, 4, 5, 5});
  for (const int axis : {2, 3}) map = map.pad(axis, 1, 1, 0);
  map = map.windows(2, 3, 1, 1).windows(3, 3, 1, 1).permute({1, 4, 5, 0, 2, 3});
  map = map.reshape({36, 50});
  ASSERT_GT(map.layers().size(), 1u);
  const auto split = split_axes(map);
  ASSERT_TRUE(split);
  std::string digits;
  for (const auto& [axis, size] : split->digits) digits += fmt::format(" {}:{}", axis, size);
  EXPECT_EQ(digits, " 0:4 0:3 0:3 1:2 1:5 1:5");
  EXPECT_EQ(split->address.coef, (std::vector<std::int64_t>{25, 5, 1, 100, 5, 1}));
  EXPECT_EQ(split->guards.size(), 2u);
  EXPECT_EQ(joined_layers(map).size(), 1u);
}

TEST(SplitAxes, SomeMergedAxesNeedADivision) {
  EXPECT_FALSE(
      split_axes(IndexMap::contiguous({2, 6}).permute({1, 0}).reshape({3, 4}).reshape({4, 3})));
  EXPECT_EQ(
      joined_layers(IndexMap::contiguous({3, 5}).permute({1, 0}).reshape({15}).narrow(0, 1, 9))
          .size(),
      2u);
}

}  // namespace
}  // namespace tensorgrad::ir
