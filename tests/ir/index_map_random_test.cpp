// Random chains of views, on an IndexMap and on plain arrays.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "ir/split_axes.h"
#include "tests/ir/plain_view.h"

namespace tensorgrad::ir {
namespace {

class RandomChain {
 public:
  explicit RandomChain(unsigned seed) : random_(seed) {}

  // Applies up to eight views and checks the result; a failure prints the chain.
  void run() {
    Both both(random_shape());
    std::string chain = "contiguous " + both.plain.shape.text();
    for (std::int64_t length = below(8) + 1; length > 0; --length) chain += step(both);
    SCOPED_TRACE(chain);
    both.check();
    check_split(both.map);
    layers = both.map.layers().size();
    guards = both.map.layers()[0].guards.size();
  }

  std::size_t layers = 0, guards = 0;
  bool split = false;

 private:
  // One layer over digits has the addresses and fills of the map.
  void check_split(const IndexMap& map) {
    const auto one = split_axes(map);
    split = one.has_value();
    if (!split) return;
    std::int64_t count = 1;
    for (const SplitMap::Digit& digit : one->digits) count *= digit.size;
    ASSERT_EQ(count, map.shape().count());
    for (std::int64_t i = 0; i < count; ++i) {
      std::vector<std::int64_t> position(one->digits.size());
      std::int64_t rest = i;
      for (std::size_t d = position.size(); d-- > 0;) {
        position[d] = rest % one->digits[d].size;
        rest /= one->digits[d].size;
      }
      const auto value = [&](const SplitMap::Form& form) {
        return std::inner_product(position.begin(), position.end(), form.coef.begin(), form.offset);
      };
      std::int64_t address = -1;
      double fill = 0, wanted_fill = 0;
      const auto outside = [&](const SplitMap::Guard& guard) {
        const std::int64_t v = value(guard.form);
        return v < 0 || v >= guard.extent;
      };
      const auto guard = std::find_if(one->guards.begin(), one->guards.end(), outside);
      if (guard == one->guards.end())
        address = value(one->address);
      else
        fill = guard->fill;
      ASSERT_EQ(address, map.address_of_linear(i, wanted_fill)) << "element " << i;
      ASSERT_TRUE(address >= 0 || fill == wanted_fill) << "element " << i;
    }
  }

  static constexpr std::int64_t kMostElements = 1500;

  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(random_()) % n; }

  Shape random_shape() {
    Shape shape;
    for (std::int64_t rank = below(5); rank > 0; --rank)
      shape.push_back(below(20) == 0 ? 0 : below(5) + 1);
    return shape;
  }

  // A shape with as many elements: distributes the prime factors over new axes.
  Shape reshaped(const Shape& from) {
    std::int64_t count = from.count();
    Shape shape;
    for (std::int64_t rank = below(5) + 1; rank > 0; --rank) shape.push_back(1);
    const auto some_axis = [&] { return static_cast<int>(below(shape.rank())); };
    if (count == 0) {
      for (int d = 0; d < shape.rank(); ++d) shape[d] = below(4) + 1;
      shape[some_axis()] = 0;
      return shape;
    }
    for (std::int64_t factor = 2; count > 1;) {
      if (count % factor != 0) {
        ++factor;
        continue;
      }
      shape[some_axis()] *= factor;
      count /= factor;
    }
    if (from.count() == 1 && below(3) == 0) return {};
    return shape;
  }

  std::string step(Both& both) {
    const Shape shape = both.plain.shape;
    const int rank = shape.rank();
    const std::int64_t kind = below(7);
    if (rank == 0 && kind != 0 && kind != 6) return "";
    const int axis = rank == 0 ? 0 : static_cast<int>(below(rank));
    const std::int64_t size = rank == 0 ? 1 : shape[axis];
    const double fill = -static_cast<double>(below(1000)) - 1;
    switch (kind) {
      case 0: {
        Shape to = shape;
        for (int d = 0; d < rank; ++d)
          if (to[d] == 1 && below(2) == 0) to[d] = below(4);
        if (rank < 6 && below(2) == 0) to.insert(0, below(3) + 1);
        if (to.count() > kMostElements) return "";
        both.broadcast(to);
        return " broadcast " + to.text();
      }
      case 1: {
        std::vector<int> order;
        for (int d = 0; d < rank; ++d) order.insert(order.begin() + below(d + 1), d);
        both.permute(order);
        std::string text = " permute";
        for (const int d : order) text += " " + std::to_string(d);
        return text;
      }
      case 2: {
        const std::int64_t start = below(size + 1), length = below(size - start + 1);
        if (length == 0 && below(10) != 0) return "";
        both.narrow(axis, start, length);
        return " narrow" + numbers({axis, start, length});
      }
      case 3:
        both.flip(axis);
        return " flip" + numbers({axis});
      case 4: {
        const std::int64_t before = below(3), after = below(3);
        if (size > 0 && shape.count() / size * (size + before + after) > kMostElements) return "";
        both.pad(axis, before, after, fill);
        return " pad" + numbers({axis, before, after});
      }
      case 5: {
        const std::int64_t window = below(3) + 1, stride = below(3) + 1, dilation = below(3) + 1;
        if (rank == kMaxRank || dilation * (window - 1) >= size) return "";
        if (shape.count() * window > kMostElements) return "";
        both.windows(axis, window, stride, dilation);
        return " windows" + numbers({axis, window, stride, dilation});
      }
      default: {
        const Shape to = reshaped(shape);
        both.reshape(to);
        return " reshape " + to.text();
      }
    }
  }

  static std::string numbers(std::initializer_list<std::int64_t> values) {
    std::string text;
    for (const std::int64_t value : values) text += " " + std::to_string(value);
    return text;
  }

  std::mt19937 random_;
};

TEST(IndexMapRandom, ChainsAgreeWithPlainArrays) {
  int with_guards = 0, with_layers = 0, joined = 0;
  for (unsigned seed = 0; seed < 8000 && !testing::Test::HasFailure(); ++seed) {
    RandomChain chain(seed);
    chain.run();
    with_guards += chain.guards > 1;
    with_layers += chain.layers > 1;
    joined += chain.layers > 1 && chain.split;
  }
  EXPECT_GT(with_guards, 300) << "the chains are too tame";
  EXPECT_GT(with_layers, 300) << "the chains are too tame";
  EXPECT_GT(joined, 100) << "the chains are too wild";
}

}  // namespace
}  // namespace tensorgrad::ir
