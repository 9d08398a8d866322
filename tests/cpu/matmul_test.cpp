// Products as the CPU computes them, against plain loops in double: all small sizes, and random ones with
// strides, turned operands, batches, broadcasting, prologues, epilogues, several right operands and column
// sums. Whatever lies around the results stays as it was, and any number of threads gives the same bits.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "codegen/cpu/compiled.h"
#include "runtime/cpu/pool.h"
#include "tests/cpu/each_target.h"

namespace tensorgrad::cpu {
namespace {

using ir::IndexMap;
using ir::ScalarOp;

// How an operand [B, rows, columns] lies in memory.
enum class Lie { plain, turned, gaps, far, one_matrix, one_row, one_column, flipped, every_second };
constexpr int kLies = 9;

struct Side {
  Lie lie = Lie::plain;
  bool squared = false;  // a prologue: x * x + 0.25
};

struct PartSpec {
  std::int64_t N = 1;
  Side b;
  bool epilogue = false;  // max(product + bias of the column, 0.5 * other operand), and the product itself
  bool sums = false;
};

struct Spec {
  std::int64_t B = 1, M = 1, K = 1;
  Side a;
  std::vector<PartSpec> parts;
};

// Memory between stretches that nobody may touch.
class Arena {
 public:
  std::int64_t take(std::int64_t n) {
    const std::int64_t at = size_ + kGuard;
    size_ = at + n;
    return at;
  }
  void fill(std::mt19937& random) {
    floats_.resize(static_cast<std::size_t>(size_ + kGuard));
    std::uniform_real_distribution<float> value(-1, 1);
    for (float& x : floats_) x = value(random);
  }
  float* data() { return floats_.data(); }
  const std::vector<float>& floats() const { return floats_; }

 private:
  static constexpr std::int64_t kGuard = 37;
  std::int64_t size_ = 0;
  std::vector<float> floats_;
};

IndexMap lay(Lie lie, std::int64_t B, std::int64_t rows, std::int64_t columns, std::int64_t& floats) {
  const auto of = [&](Shape shape) {
    floats = shape.count();
    return IndexMap::contiguous(shape);
  };
  switch (lie) {
    case Lie::plain:
      return of({B, rows, columns});
    case Lie::turned:
      return of({B, columns, rows}).permute({0, 2, 1});
    case Lie::gaps:
      return of({B, rows, columns + 3}).narrow(2, 2, columns);
    case Lie::far:
      return of({rows, B, columns}).permute({1, 0, 2});
    case Lie::one_matrix:
      return of({1, rows, columns}).broadcast({B, rows, columns});
    case Lie::one_row:
      return of({B, 1, columns}).broadcast({B, rows, columns});
    case Lie::one_column:
      return of({B, rows, 1}).broadcast({B, rows, columns});
    case Lie::flipped:
      return of({B, rows, columns}).flip(1).flip(2);
    case Lie::every_second: {
      const IndexMap map = of({B, rows, columns, 2});
      return map.narrow(3, 1, 1).reshape({B, rows, columns});
    }
  }
  return of({});
}

ir::Load load(Arena& arena, const IndexMap& map, std::int64_t floats) {
  return {.place = {ir::Space::arena, arena.take(floats)}, .map = map};
}

ir::ScalarProgram operand(int slot, bool squared) {
  ir::ScalarProgram program;
  const ir::Reg x = program.load(slot, DType::f32);
  if (squared) program.binary(ScalarOp::add, program.binary(ScalarOp::mul, x, x), program.constant(0.25));
  return program;
}

class Case {
 public:
  Case(const Spec& spec, std::uint32_t seed) : spec_(spec) {
    kernel_.kind = ir::Kernel::Kind::matmul;
    kernel_.batches = spec.B, kernel_.M = spec.M, kernel_.K = spec.K;
    std::int64_t floats = 0;
    const IndexMap left = lay(spec.a.lie, spec.B, spec.M, spec.K, floats);
    kernel_.loads.push_back(load(arena_, left, floats));
    kernel_.a = operand(0, spec.a.squared);
    for (const PartSpec& p : spec.parts) {
      ir::MatmulPart part;
      part.N = p.N;
      const IndexMap right = lay(p.b.lie, spec.B, spec.K, p.N, floats);
      kernel_.loads.push_back(load(arena_, right, floats));
      part.b = operand(slots(), p.b.squared);
      const ir::Reg product = part.epilogue.push({.op = ScalarOp::accumulator});
      const Shape shape{spec.B, spec.M, p.N};
      if (p.epilogue) {
        kernel_.loads.push_back(load(arena_, IndexMap::contiguous({1, 1, p.N}).broadcast(shape), p.N));
        const ir::Reg biased =
            part.epilogue.binary(ScalarOp::add, product, part.epilogue.load(slots(), DType::f32));
        kernel_.loads.push_back(load(arena_, IndexMap::contiguous(shape), shape.count()));
        const ir::Reg half = part.epilogue.binary(ScalarOp::mul, part.epilogue.load(slots(), DType::f32),
                                                  part.epilogue.constant(0.5));
        part.stores.push_back(store(shape.count(), part.epilogue.binary(ScalarOp::maximum, biased, half)));
      }
      part.stores.push_back(store(shape.count(), product));
      part.sums_columns = p.sums;
      if (p.sums) part.column_sums = store(spec.B * p.N, -1);
      kernel_.parts.push_back(part);
    }
    std::mt19937 random(seed);
    arena_.fill(random);
  }

  void check() {
    const std::vector<float> before = arena_.floats();
    memory_.space[static_cast<std::size_t>(ir::Space::arena)] = arena_.data();
    const auto compiled = compile_matmul(kernel_);
    std::vector<float> first;
    for (const int threads : {1, 2, 3}) {
      std::copy(before.begin(), before.end(), arena_.data());
      Pool pool(threads);
      compiled->run(memory_, pool);
      if (threads == 1)
        first = arena_.floats();
      else
        ASSERT_EQ(std::memcmp(first.data(), arena_.data(), first.size() * sizeof(float)), 0)
            << threads << " threads";
    }
    std::vector<bool> written(first.size());
    const auto expect = [&](const ir::Store& s, std::int64_t i, double value, double size) {
      const auto at = static_cast<std::size_t>(s.place.offset + i);
      written[at] = true;
      // Additions in float, at most 384 one after the other, whose errors do not all go one way.
      ASSERT_NEAR(first[at], value,
                  6e-8 * size * static_cast<double>(16 + std::min<std::int64_t>(spec_.K, 300)))
          << "element " << i;
    };
    for (std::size_t p = 0; p < spec_.parts.size(); ++p)
      ASSERT_NO_FATAL_FAILURE(check_part(before, p, expect));
    for (std::size_t i = 0; i < first.size(); ++i)
      if (!written[i]) {
        ASSERT_EQ(std::memcmp(&first[i], &before[i], sizeof(float)), 0) << "touched " << i;
      }
  }

 private:
  int slots() const { return static_cast<int>(kernel_.loads.size()) - 1; }
  ir::Store store(std::int64_t n, ir::Reg value) {
    return {.place = {ir::Space::arena, arena_.take(n)}, .value = value};
  }

  static double read(const std::vector<float>& floats, const ir::Load& from, std::int64_t b, std::int64_t i,
                     std::int64_t j) {
    const std::int64_t position[] = {b, i, j};
    double fill = 0;
    return floats[static_cast<std::size_t>(from.place.offset + from.map.address(position, fill))];
  }

  template <class Expect>
  void check_part(const std::vector<float>& floats, std::size_t index, Expect expect) {
    const PartSpec& p = spec_.parts[index];
    const ir::MatmulPart& part = kernel_.parts[index];
    std::size_t slot = 1;
    for (std::size_t i = 0; i < index; ++i) slot += spec_.parts[i].epilogue ? 3 : 1;
    const auto value = [&](const Side& side, std::size_t at, std::int64_t b, std::int64_t i, std::int64_t j) {
      const double x = read(floats, kernel_.loads[at], b, i, j);
      return side.squared ? x * x + 0.25 : x;
    };
    for (std::int64_t b = 0; b < spec_.B; ++b)
      for (std::int64_t n = 0; n < p.N; ++n) {
        for (std::int64_t m = 0; m < spec_.M; ++m) {
          double sum = 0, size = 1;
          for (std::int64_t k = 0; k < spec_.K; ++k) {
            const double term = value(spec_.a, 0, b, m, k) * value(p.b, slot, b, k, n);
            sum += term, size += std::abs(term);
          }
          const std::int64_t i = (b * spec_.M + m) * p.N + n;
          ASSERT_NO_FATAL_FAILURE(expect(part.stores.back(), i, sum, size));
          if (!p.epilogue) continue;
          const double other = std::max(sum + read(floats, kernel_.loads[slot + 1], b, m, n),
                                        0.5 * read(floats, kernel_.loads[slot + 2], b, m, n));
          ASSERT_NO_FATAL_FAILURE(expect(part.stores.front(), i, other, size));
        }
        if (!p.sums) continue;
        double sum = 0, size = 1;
        for (std::int64_t k = 0; k < spec_.K; ++k)
          sum += value(p.b, slot, b, k, n), size += std::abs(value(p.b, slot, b, k, n));
        ASSERT_NO_FATAL_FAILURE(expect(part.column_sums, b * p.N + n, sum, size));
      }
  }

  Spec spec_;
  Arena arena_;
  ir::Kernel kernel_;
  Memory memory_;
};

TEST(Matmul, SmallSizes) {
  for (std::int64_t M = 1; M <= 20; ++M)
    for (std::int64_t N = 1; N <= 70; ++N)
      for (std::int64_t K = 1; K <= 20; K += K < 6 ? 1 : 7) {
        const auto turned = [](std::int64_t n) { return Side{n % 2 ? Lie::turned : Lie::plain}; };
        SCOPED_TRACE(testing::Message() << M << " x " << N << " x " << K);
        Case({1, M, K, turned(M + K), {{N, turned(N), N % 3 == 0, K % 3 == 0}}}, 1).check();
        if (HasFatalFailure()) return;
      }
}

TEST(Matmul, RandomOnes) {
  for (std::uint32_t seed = 0; seed < 400; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](std::int64_t n) {
      return static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(n));
    };
    // A few sizes are long, so that blocks, tiles and parts of k have edges too.
    const auto size = [&](std::int64_t longest) { return 1 + below(below(4) == 0 ? longest : 40); };
    const auto side = [&] {
      return Side{static_cast<Lie>(below(2) == 0 ? below(2) : below(kLies)), below(4) == 0};
    };
    Spec spec{below(3) == 0 ? 1 + below(5) : 1, size(300), size(1500), side(), {}};
    for (std::int64_t parts = below(4) == 0 ? 3 : 1; parts > 0; --parts)
      spec.parts.push_back({size(300), side(), below(2) == 0, below(3) == 0});
    std::int64_t N = 0;
    for (const PartSpec& part : spec.parts) N += part.N;
    if (spec.B * spec.M * spec.K * N > 20'000'000) spec.K = 1 + spec.K % 50, spec.B = 1;
    SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << spec.B << " x " << spec.M << " x " << N
                                    << " x " << spec.K);
    Case(spec, seed).check();
    if (HasFatalFailure()) return;
  }
}

// All that this machine can run, down to the narrowest vectors.
TEST(Matmul, EveryTarget) {
  on_each_target([] {
    for (std::int64_t n = 1; n <= 45 && !testing::Test::HasFatalFailure(); ++n) {
      const Side plain{Lie::plain}, turned{Lie::turned}, squared{Lie::plain, true};
      const auto other = 1 + n * 7 % 23, K = 1 + n * n % 300;
      Case({1, n, K, plain, {{other, plain, true, true}}}, 1).check();
      Case({1, n, K, turned, {{other, turned, false, true}}}, 2).check();
      Case({2, other, K, squared, {{n, turned, false, false}, {3, squared, true, true}}}, 3).check();
      Case({1, n, 1 + 20 * n, turned, {{1, plain, true, false}}}, 4).check();
      Case({1, 1, 1 + 20 * n, plain, {{n, turned, false, true}}}, 5).check();
    }
  });
}

// y = a b + bias + x over x; what else is computed from x, before or after, sees the old one.
TEST(Matmul, MayWriteOverWhatItsEpilogueReads) {
  for (const std::int64_t M : {1, 5, 130})
    for (const std::int64_t N : {1, 7, 64, 600})
      for (const std::int64_t K : {1, 40, 2000}) {
        SCOPED_TRACE(testing::Message() << M << " x " << N << " x " << K);
        const std::int64_t a = 0, b = a + M * K, bias = b + K * N, x = bias + N, z = x + M * N, all = z + M * N;
        ir::Kernel kernel;
        kernel.kind = ir::Kernel::Kind::matmul;
        kernel.M = M, kernel.K = K;
        const auto at = [](std::int64_t offset) { return ir::Place{ir::Space::arena, offset}; };
        kernel.loads = {{.place = at(a), .map = IndexMap::contiguous({1, M, K})},
                        {.place = at(b), .map = IndexMap::contiguous({1, K, N})},
                        {.place = at(bias), .map = IndexMap::contiguous({1, 1, N}).broadcast({1, M, N})},
                        {.place = at(x), .map = IndexMap::contiguous({1, M, N})}};
        kernel.a.load(0, DType::f32);
        ir::MatmulPart part;
        part.N = N;
        part.b.load(1, DType::f32);
        ir::ScalarProgram& e = part.epilogue;
        const ir::Reg product = e.push({.op = ScalarOp::accumulator}), added = e.load(2, DType::f32),
                      old = e.load(3, DType::f32);
        const ir::Reg y = e.binary(ScalarOp::add, e.binary(ScalarOp::add, product, added), old);
        part.stores = {{.place = at(x), .value = y}, {.place = at(z), .value = e.binary(ScalarOp::sub, y, old)}};
        kernel.parts.push_back(part);
        std::vector<float> before(static_cast<std::size_t>(all));
        std::mt19937 random(7);
        for (float& v : before) v = static_cast<float>(random() % 17) - 8;  // sums are exact
        std::vector<float> first;
        for (const int threads : {1, 3}) {
          std::vector<float> memory = before;
          Memory spaces;
          spaces.space[static_cast<std::size_t>(ir::Space::arena)] = memory.data();
          Pool pool(threads);
          compile_matmul(kernel)->run(spaces, pool);
          if (first.empty()) first = memory;
          ASSERT_TRUE(memory == first);
        }
        const auto was = [&](std::int64_t i) { return static_cast<double>(before[static_cast<std::size_t>(i)]); };
        const auto is = [&](std::int64_t i) { return static_cast<double>(first[static_cast<std::size_t>(i)]); };
        for (std::int64_t i = 0; i < M; ++i)
          for (std::int64_t j = 0; j < N; ++j) {
            double sum = was(bias + j);
            for (std::int64_t k = 0; k < K; ++k) sum += was(a + i * K + k) * was(b + k * N + j);
            ASSERT_EQ(is(z + i * N + j), sum) << i << ", " << j;
            ASSERT_EQ(is(x + i * N + j), sum + was(x + i * N + j)) << i << ", " << j;
          }
      }
}

// Sizes of training: weight gradients, tiles in both directions, and the right operand packed for all.
TEST(Matmul, LargeOnes) {
  const Side plain{Lie::plain}, turned{Lie::turned};
  const auto check = [](std::int64_t M, std::int64_t N, std::int64_t K, Side a, Side b) {
    SCOPED_TRACE(testing::Message() << M << " x " << N << " x " << K);
    Case({1, M, K, a, {{N, b, M % 2 == 0, true}}}, 3).check();
  };
  check(64, 64, 1024, turned, plain);
  check(16, 33, 5001, turned, plain);
  check(1, 1, 4096, turned, plain);
  check(513, 515, 260, plain, plain);
  check(300, 700, 257, plain, turned);
  check(512, 512, 64, turned, turned);
  check(1024, 64, 96, plain, turned);
  check(1, 1000, 512, plain, turned);
  check(1, 1000, 512, plain, plain);
  check(1000, 1, 512, plain, plain);
  check(512, 200, 770, plain, plain);  // three blocks of k, and an epilogue for some rows at a time
  Case({1, 1100, 9, plain, {{200, plain, true, true}, {300, turned, false, false}, {70, plain, true, false}}}, 3).check();
  Case({7, 300, 20, plain, {{600, turned, true, false}}}, 3).check();  // batches and stripes in turn
}

TEST(Matmul, NothingToAddOrToWrite) {
  Case({2, 3, 0, {}, {{5, {}, true, true}}}, 1).check();
  Case({2, 0, 4, {}, {{5, {}, true, false}}}, 1).check();
  Case({0, 3, 4, {}, {{5, {}, true, true}}}, 1).check();
  Case({1, 3, 4, {}, {{0, {}, true, true}, {7, {}, false, false}}}, 1).check();
  Case({1, 300, 4, {}, {{0, {Lie::turned}, false, false}}}, 1).check();
}

}  // namespace
}  // namespace tensorgrad::cpu
