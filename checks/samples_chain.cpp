// Random chains of views with programs in between, read by kernels of several kinds. They cover
// unexpected combinations. A chain that fails becomes a row in the file of its op.
#include <random>

#include "checks/samples.h"
#include "support/integers.h"

namespace tensorgrad::checks {
namespace {

constexpr int kChains = 150;
constexpr std::int64_t kMostElements = 3000;

class Chain {
 public:
  explicit Chain(unsigned seed) : engine_(seed) {}

  Shape start() {
    Shape shape;
    for (std::int64_t rank = 1 + below(4); rank > 0; --rank) shape.push_back(1 + below(6));
    return shape;
  }

  Tensor run(Tensor t) {
    for (std::int64_t steps = 3 + below(6); steps > 0; --steps) {
      const Tensor next = step(t);
      if (next.count() <= kMostElements) t = next;
    }
    return finish(t);
  }

 private:
  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(engine_() % n); }
  int axis_of(const Tensor& t) { return static_cast<int>(below(t.rank())); }

  Tensor step(const Tensor& t) {
    switch (below(9)) {
      case 0:
        return permuted(t);
      case 1:
        return regrouped(t);
      case 2:
        return narrowed(t);
      case 3: {
        const int axis = axis_of(t);
        const std::int64_t before = below(4), after = below(3);
        return pad(t, axis, before, after, PadMode::constant, 0.5f * static_cast<float>(below(5)));
      }
      case 4:
        return flip(t, axis_of(t));
      case 5:
        return repeated(t);
      case 6:
        return slid(t);
      case 7:
        return sin(t);
      default:
        return t * 0.75f + 0.5f;
    }
  }

  Tensor permuted(const Tensor& t) {
    std::vector<int> order;
    for (int d = 0; d < t.rank(); ++d) order.push_back(d);
    for (std::int64_t i = t.rank() - 1; i > 0; --i)
      std::swap(order[usize(i)], order[usize(below(i + 1))]);
    return permute(t, order);
  }

  // Reshapes to up to four axes of any sizes that fit.
  Tensor regrouped(const Tensor& t) {
    std::vector<std::int64_t> sizes;
    std::int64_t rest = t.count();
    for (std::int64_t axes = below(3); axes > 0; --axes) {
      std::int64_t size = 1 + below(8);
      while (rest % size != 0) --size;
      sizes.push_back(size);
      rest /= size;
    }
    sizes.insert(sizes.begin() + below(static_cast<std::int64_t>(sizes.size()) + 1), rest);
    return reshape(t, sizes);
  }

  Tensor narrowed(const Tensor& t) {
    const int axis = axis_of(t);
    const std::int64_t start = below(t.size(axis));
    return narrow(t, axis, start, 1 + below(t.size(axis) - start));
  }

  Tensor repeated(const Tensor& t) {
    if (t.rank() >= 6) return t;
    const int axis = static_cast<int>(below(t.rank() + 1));
    const Tensor with_axis = unsqueeze(t, axis);
    Shape shape = with_axis.shape();
    shape[axis] = 1 + below(3);
    return broadcast_to(with_axis, shape);
  }

  Tensor slid(const Tensor& t) {
    const int axis = axis_of(t);
    const std::int64_t size = 1 + below(3), stride = 1 + below(3), dilation = 1 + below(2);
    if (t.rank() >= 7 || (size - 1) * dilation + 1 > t.size(axis)) return t;
    return windows(t, axis, size, stride, dilation);
  }

  Tensor finish(const Tensor& t) {
    switch (below(5)) {
      case 0:
        return sum(t, t.rank() - 1);
      case 1:
        return sum(t, 0);
      case 2:
        return cumsum(t, axis_of(t));
      case 3:
        return matmul(reshape(t, {-1, t.size(-1)}), ones({t.size(-1), 3}));
      default:
        return t * 1.5f;
    }
  }

  std::mt19937 engine_;
};

}  // namespace

Samples chain_samples() {
  Samples rows;
  for (unsigned seed = 0; seed < kChains; ++seed) {
    const Shape shape = Chain(seed).start();
    rows.push_back({"reshape", "chain_" + std::to_string(seed), {real(shape)}, [seed](In x) {
                      Chain chain(seed);
                      chain.start();
                      return chain.run(x[0]);
                    }});
  }
  return rows;
}

}  // namespace tensorgrad::checks
