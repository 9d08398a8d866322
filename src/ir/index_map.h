// IndexMap: maps a position in a tensor to an address in memory. Every view (reshape, permute,
// broadcast, narrow, pad, flip, windows) is a map, and any chain of views is again one map, so
// views cost nothing and backends never see them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "support/integers.h"
#include "tensorgrad/shape.h"

namespace tensorgrad::ir {

// An affine function of a position: sum(coef[d] * position[d]) + offset.
struct Affine {
  std::array<std::int64_t, kMaxRank> coef{};
  std::int64_t offset = 0;
  bool operator==(const Affine&) const = default;
};

// Outside 0 <= form < extent the element is `fill` and memory is not accessed.
struct Guard {
  Affine form;
  std::int64_t extent = 0;
  double fill = 0;
  bool operator==(const Guard&) const = default;
};

// One step of a map: from a position in `shape` to an integer. Guards are evaluated in order; the
// first one that fails determines the fill.
struct Layer {
  Shape shape;
  Affine address;
  std::vector<Guard> guards;
  bool operator==(const Layer&) const = default;
};

// Drops axes of size 1, then merges adjacent axes that have compatible strides in all forms. The
// result is the coarsest shape that visits the same elements in the same order.
Layer coarsen(const Layer& in);

// The first layer takes a position in the tensor's shape. The last layer gives the element's
// address in memory. Every other layer gives a row-major index into the shape of the next layer (a
// reshape that strides cannot express).
class IndexMap {
 public:
  static IndexMap contiguous(const Shape& shape);

  const Shape& shape() const { return layers_.front().shape; }
  const std::vector<Layer>& layers() const { return layers_; }

  // One affine form and no guards.
  bool is_strided() const { return layers_.size() == 1 && layers_[0].guards.empty(); }
  // Row-major from the start of memory.
  bool is_contiguous() const;
  std::int64_t stride(int axis) const { return layers_[0].address.coef[usize(axis)]; }

  IndexMap permute(const std::vector<int>& order) const;
  IndexMap broadcast(const Shape& shape) const;
  IndexMap narrow(int axis, std::int64_t start, std::int64_t length) const;
  IndexMap flip(int axis) const;
  IndexMap pad(int axis, std::int64_t before, std::int64_t after, double fill) const;
  IndexMap windows(int axis, std::int64_t size, std::int64_t stride, std::int64_t dilation) const;
  IndexMap reshape(const Shape& shape) const;
  // Replaces position[axis] by position[axis] - distance * position[other].
  IndexMap skew(int axis, int other, std::int64_t distance) const;

  // Returns the address of an element. If a guard fails, returns -1 and sets `fill`.
  std::int64_t address(const std::int64_t* position, double& fill) const;
  std::int64_t address_of_linear(std::int64_t linear, double& fill) const;

  std::string text() const;

  bool operator==(const IndexMap&) const = default;

 private:
  // The address and all guards of the first layer.
  template <class F>
  void each_form(F f);
  void drop_satisfied_guards();

  std::vector<Layer> layers_;
};

}  // namespace tensorgrad::ir
