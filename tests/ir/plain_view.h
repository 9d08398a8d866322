// Views computed twice: on an IndexMap, and on a plain vector of values by visiting all positions.
// In the end every element must agree, from memory or from its fill.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "ir/index_map.h"

namespace tensorgrad::ir {

using Position = std::vector<std::int64_t>;

// A plain array of values: the reference.
struct Plain {
  Shape shape;
  std::vector<double> values;

  static Plain counting(const Shape& shape) {
    Plain out{shape, {}};
    for (std::int64_t i = 0; i < shape.count(); ++i)
      out.values.push_back(static_cast<double>(i) + 1);
    return out;
  }

  double at(const Position& p) const {
    std::int64_t linear = 0;
    for (int d = 0; d < shape.rank(); ++d)
      linear = linear * shape[d] + p[static_cast<std::size_t>(d)];
    return values.at(static_cast<std::size_t>(linear));
  }

  // A new array whose element at p is value_at(p).
  static Plain build(const Shape& shape, const std::function<double(const Position&)>& value_at) {
    Plain out{shape, {}};
    Position p(static_cast<std::size_t>(shape.rank()), 0);
    for (std::int64_t i = 0; i < shape.count(); ++i) {
      out.values.push_back(value_at(p));
      for (int d = shape.rank() - 1; d >= 0; --d) {
        auto& digit = p[static_cast<std::size_t>(d)];
        if (++digit < shape[d]) break;
        digit = 0;
      }
    }
    return out;
  }
};

// A tensor in both forms. Its memory holds 1, 2, 3, ...
struct Both {
  explicit Both(const Shape& shape)
      : memory(Plain::counting(shape)), plain(memory), map(IndexMap::contiguous(shape)) {}

  Plain memory;
  Plain plain;
  IndexMap map;

  Both& permute(const std::vector<int>& order) {
    const Plain old = plain;
    Shape shape;
    for (const int d : order) shape.push_back(old.shape[d]);
    plain = Plain::build(shape, [&](const Position& p) {
      Position q(p.size());
      for (std::size_t i = 0; i < order.size(); ++i) q[static_cast<std::size_t>(order[i])] = p[i];
      return old.at(q);
    });
    map = map.permute(order);
    return *this;
  }
  Both& broadcast(const Shape& shape) {
    const Plain old = plain;
    plain = Plain::build(shape, [&](const Position& p) {
      Position q(p.end() - old.shape.rank(), p.end());
      for (int d = 0; d < old.shape.rank(); ++d)
        if (old.shape[d] == 1) q[static_cast<std::size_t>(d)] = 0;
      return old.at(q);
    });
    map = map.broadcast(shape);
    return *this;
  }
  Both& narrow(int axis, std::int64_t start, std::int64_t length) {
    move_along(axis, length, [&](std::int64_t i) { return i + start; });
    map = map.narrow(axis, start, length);
    return *this;
  }
  Both& flip(int axis) {
    const std::int64_t size = plain.shape[axis];
    move_along(axis, size, [&](std::int64_t i) { return size - 1 - i; });
    map = map.flip(axis);
    return *this;
  }
  Both& pad(int axis, std::int64_t before, std::int64_t after, double fill) {
    const Plain old = plain;
    const std::int64_t size = old.shape[axis];
    Shape shape = old.shape;
    shape[axis] = before + size + after;
    plain = Plain::build(shape, [&](Position p) {
      auto& i = p[static_cast<std::size_t>(axis)];
      if (i < before || i >= before + size) return fill;
      i -= before;
      return old.at(p);
    });
    map = map.pad(axis, before, after, fill);
    return *this;
  }
  Both& windows(int axis, std::int64_t size, std::int64_t stride, std::int64_t dilation) {
    const Plain old = plain;
    Shape shape = old.shape;
    std::int64_t count = 0;
    while (count * stride + (size - 1) * dilation < old.shape[axis]) ++count;
    shape[axis] = count;
    shape.push_back(size);
    plain = Plain::build(shape, [&](Position p) {
      const std::int64_t inside = p.back();
      p.pop_back();
      auto& i = p[static_cast<std::size_t>(axis)];
      i = i * stride + inside * dilation;
      return old.at(p);
    });
    map = map.windows(axis, size, stride, dilation);
    return *this;
  }
  Both& reshape(const Shape& shape) {
    plain.shape = shape;
    map = map.reshape(shape);
    return *this;
  }

  // Every element agrees, and no address leaves the memory.
  void check() const {
    ASSERT_EQ(map.shape(), plain.shape);
    std::int64_t linear = 0;
    bool agrees = true;
    Plain::build(plain.shape, [&](const Position& p) {
      const double expected = plain.values[static_cast<std::size_t>(linear)];
      double fill = 0, fill_of_linear = 0;
      const std::int64_t address = map.address(p.data(), fill);
      const std::int64_t again = map.address_of_linear(linear++, fill_of_linear);
      agrees = agrees && address == again && fill == fill_of_linear && address >= -1 &&
               address < memory.shape.count();
      if (!agrees) return 0.0;
      const double found = address < 0 ? fill : memory.values[static_cast<std::size_t>(address)];
      agrees = found == expected;
      return found;
    });
    EXPECT_TRUE(agrees) << "at element " << linear - 1 << " of " << map.text();
    if (map.is_contiguous() && linear > 0) {
      EXPECT_TRUE(std::equal(plain.values.begin(), plain.values.end(), memory.values.begin()));
    }
  }

 private:
  template <class From>
  void move_along(int axis, std::int64_t length, From from) {
    const Plain old = plain;
    Shape shape = old.shape;
    shape[axis] = length;
    plain = Plain::build(shape, [&](Position p) {
      auto& i = p[static_cast<std::size_t>(axis)];
      i = from(i);
      return old.at(p);
    });
  }
};

}  // namespace tensorgrad::ir
