// CPU matmuls against plain loops in double: all small sizes, and random ones with strides,
// transposed operands, batches, broadcasting, prologues, epilogues, several right operands and
// column sums. Memory around the results stays unchanged, and any number of threads gives the same
// bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "codegen/cpu/amx.h"
#include "codegen/cpu/compiled.h"
#include "codegen/cpu/matmul_cut.h"
#include "kernels/variants.h"
#include "runtime/cpu/pool.h"
#include "support/bits.h"
#include "tests/cpu/each_target.h"

namespace tensorgrad::cpu {
namespace {

using ir::IndexMap;
using ir::MatmulUnit;
using ir::ScalarOp;

// By one unit, also where the other one would be chosen.
std::unique_ptr<Compiled> compile_by(MatmulUnit by, ir::Kernel kernel) {
  kernels::choose_variants(
      kernel, ir::cpu_model(by == MatmulUnit::amx ? ir::CpuUnits::amx : ir::CpuUnits::vectors));
  return compile(kernel);
}

// The memory layout of an operand [B, rows, columns].
enum class Lie { plain, turned, gaps, far, one_matrix, one_row, one_column, flipped, every_second };
constexpr int kLies = 9;

struct Side {
  Lie lie = Lie::plain;
  bool squared = false;  // a prologue: x * x + 0.25
};

struct PartSpec {
  std::int64_t N = 1;
  Side b;
  bool epilogue =
      false;  // max(product + bias of the column, 0.5 * other operand), and the product itself
  bool sums = false;
};

struct Spec {
  std::int64_t B = 1, M = 1, K = 1;
  Side a;
  std::vector<PartSpec> parts;
  bool wild = false;  // an infinity or a NaN in each operand
};

// Memory with guard areas that must not change.
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
  std::int64_t size() const { return size_; }
  const std::vector<float>& floats() const { return floats_; }

 private:
  static constexpr std::int64_t kGuard = 37;
  std::int64_t size_ = 0;
  std::vector<float> floats_;
};

IndexMap lay(Lie lie, std::int64_t B, std::int64_t rows, std::int64_t columns,
             std::int64_t& floats) {
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
  if (squared)
    program.binary(ScalarOp::add, program.binary(ScalarOp::mul, x, x), program.constant(0.25));
  return program;
}

class Case {
 public:
  Case(const Spec& spec, std::uint32_t seed) : spec_(spec) {
    matmul_.batches = spec.B, matmul_.M = spec.M, matmul_.K = spec.K;
    std::int64_t floats = 0;
    const IndexMap left = lay(spec.a.lie, spec.B, spec.M, spec.K, floats);
    kernel_.loads.push_back(load(arena_, left, floats));
    matmul_.a = operand(0, spec.a.squared);
    for (const PartSpec& p : spec.parts) {
      ir::MatmulPart part;
      part.N = p.N;
      const IndexMap right = lay(p.b.lie, spec.B, spec.K, p.N, floats);
      kernel_.loads.push_back(load(arena_, right, floats));
      part.b = operand(slots(), p.b.squared);
      const ir::Reg product = part.epilogue.push({.op = ScalarOp::accumulator});
      const Shape shape{spec.B, spec.M, p.N};
      if (p.epilogue) {
        kernel_.loads.push_back(
            load(arena_, IndexMap::contiguous({1, 1, p.N}).broadcast(shape), p.N));
        const ir::Reg biased =
            part.epilogue.binary(ScalarOp::add, product, part.epilogue.load(slots(), DType::f32));
        kernel_.loads.push_back(load(arena_, IndexMap::contiguous(shape), shape.count()));
        const ir::Reg half = part.epilogue.binary(
            ScalarOp::mul, part.epilogue.load(slots(), DType::f32), part.epilogue.constant(0.5));
        part.stores.push_back(
            store(shape.count(), part.epilogue.binary(ScalarOp::maximum, biased, half)));
      }
      part.stores.push_back(store(shape.count(), product));
      if (p.sums) part.column_sums = store(spec.B * p.N, -1);
      matmul_.parts.push_back(part);
    }
    std::mt19937 random(seed);
    arena_.fill(random);
    for (std::size_t i = 0; spec.wild && i < kernel_.loads.size(); ++i) {
      const std::int64_t at =
          kernel_.loads[i].place.offset + static_cast<std::int64_t>(random() % 50);
      arena_.data()[std::min<std::int64_t>(at, arena_.size() - 1)] =
          random() % 3 == 0 ? std::numeric_limits<float>::quiet_NaN()
                            : std::numeric_limits<float>::infinity();
    }
  }

  // Computed by vector instructions or by the tile unit.
  void check(MatmulUnit by = MatmulUnit::vectors) {
    const std::vector<float> before = arena_.floats();
    memory_.space[static_cast<std::size_t>(ir::Space::arena)] = arena_.data();
    kernel_.core = matmul_;
    const auto compiled = compile_by(by, kernel_);
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
      if (std::isnan(value)) {
        ASSERT_TRUE(std::isnan(first[at])) << "element " << i << ": " << first[at];
        return;
      }
      if (std::isinf(value)) {
        ASSERT_EQ(first[at], value) << "element " << i;
        return;
      }
      // At most 384 additions in float follow each other, with errors of both signs.
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
    return {.place = {ir::Space::arena, arena_.take(n)}, .elements = n, .value = value};
  }

  static double read(const std::vector<float>& floats, const ir::Load& from, std::int64_t b,
                     std::int64_t i, std::int64_t j) {
    const std::int64_t position[] = {b, i, j};
    double fill = 0;
    return floats[static_cast<std::size_t>(from.place.offset + from.map.address(position, fill))];
  }

  template <class Expect>
  void check_part(const std::vector<float>& floats, std::size_t index, Expect expect) {
    const PartSpec& p = spec_.parts[index];
    const ir::MatmulPart& part = matmul_.parts[index];
    std::size_t slot = 1;
    for (std::size_t i = 0; i < index; ++i) slot += spec_.parts[i].epilogue ? 3 : 1;
    const auto value = [&](const Side& side, std::size_t at, std::int64_t b, std::int64_t i,
                           std::int64_t j) {
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
          const double biased = sum + read(floats, kernel_.loads[slot + 1], b, m, n);
          const double half = 0.5 * read(floats, kernel_.loads[slot + 2], b, m, n);
          const double other = std::isnan(half) ? half : std::max(biased, half);
          ASSERT_NO_FATAL_FAILURE(expect(part.stores.front(), i, other, size));
        }
        if (!p.sums) continue;
        double sum = 0, size = 1;
        for (std::int64_t k = 0; k < spec_.K; ++k)
          sum += value(p.b, slot, b, k, n), size += std::abs(value(p.b, slot, b, k, n));
        ASSERT_NO_FATAL_FAILURE(expect(*part.column_sums, b * p.N + n, sum, size));
      }
  }

  Spec spec_;
  Arena arena_;
  ir::Kernel kernel_;
  ir::MatmulKernel matmul_;  // its core
  Memory memory_;
};

// The same tests for vectors and for the tile unit, where the machine has one.
class Matmul : public testing::TestWithParam<MatmulUnit> {
 protected:
  void SetUp() override {
    if (GetParam() == MatmulUnit::amx && !has_amx()) GTEST_SKIP() << "this machine has no AMX";
  }
};
class MatmulOfManySizes : public Matmul {};
class SlowMatmul : public Matmul {};
std::string unit_name(const testing::TestParamInfo<MatmulUnit>& each) {
  return each.param == MatmulUnit::amx ? "amx" : "vectors";
}
INSTANTIATE_TEST_SUITE_P(By, Matmul, testing::Values(MatmulUnit::vectors, MatmulUnit::amx),
                         unit_name);
INSTANTIATE_TEST_SUITE_P(By, MatmulOfManySizes,
                         testing::Values(MatmulUnit::vectors, MatmulUnit::amx), unit_name);
INSTANTIATE_TEST_SUITE_P(By, SlowMatmul, testing::Values(MatmulUnit::vectors, MatmulUnit::amx),
                         unit_name);

TEST_P(Matmul, SmallSizes) {
  for (std::int64_t M = 1; M <= 20; ++M)
    for (std::int64_t N = 1; N <= 70; ++N)
      for (std::int64_t K = 1; K <= 20; K += K < 6 ? 1 : 7) {
        const auto turned = [](std::int64_t n) { return Side{n % 2 ? Lie::turned : Lie::plain}; };
        SCOPED_TRACE(testing::Message() << M << " x " << N << " x " << K);
        Case({1, M, K, turned(M + K), {{N, turned(N), N % 3 == 0, K % 3 == 0}}}, 1)
            .check(GetParam());
        if (HasFatalFailure()) return;
      }
}

TEST_P(MatmulOfManySizes, RandomOnes) {
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
    spec.wild = seed % 4 == 0;
    SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << spec.B << " x " << spec.M << " x "
                                    << N << " x " << spec.K);
    Case(spec, seed).check(GetParam());
    if (HasFatalFailure()) return;
  }
}

// All targets of this machine, down to the narrowest vectors.
TEST(MatmulTargets, EveryTarget) {
  on_each_target([] {
    for (std::int64_t n = 1; n <= 45 && !testing::Test::HasFatalFailure(); ++n) {
      const Side plain{Lie::plain}, turned{Lie::turned}, squared{Lie::plain, true};
      const auto other = 1 + n * 7 % 23, K = 1 + n * n % 300;
      Case({1, n, K, plain, {{other, plain, true, true}}}, 1).check();
      Case({1, n, K, turned, {{other, turned, false, true}}}, 2).check();
      Case({2, other, K, squared, {{n, turned, false, false}, {3, squared, true, true}}}, 3)
          .check();
      Case({1, n, 1 + 20 * n, turned, {{1, plain, true, false}}}, 4).check();
      Case({1, 1, 1 + 20 * n, plain, {{n, turned, false, true}}}, 5).check();
    }
  });
}

// y = a b + bias + x overwrites x. Everything else that is computed from x, before or after, sees
// the old value.
TEST_P(Matmul, MayWriteOverWhatItsEpilogueReads) {
  const MatmulUnit by = GetParam();
  for (const std::int64_t M : {1, 5, 130})
    for (const std::int64_t N : {1, 7, 64, 600})
      for (const std::int64_t K : {1, 40, 2000}) {
        SCOPED_TRACE(testing::Message() << M << " x " << N << " x " << K);
        const std::int64_t a = 0, b = a + M * K, bias = b + K * N, x = bias + N, z = x + M * N,
                           all = z + M * N;
        ir::Kernel kernel;
        auto& matmul = kernel.core.emplace<ir::MatmulKernel>();
        matmul.M = M, matmul.K = K;
        const auto at = [](std::int64_t offset) { return ir::Place{ir::Space::arena, offset}; };
        kernel.loads = {
            {.place = at(a), .map = IndexMap::contiguous({1, M, K})},
            {.place = at(b), .map = IndexMap::contiguous({1, K, N})},
            {.place = at(bias), .map = IndexMap::contiguous({1, 1, N}).broadcast({1, M, N})},
            {.place = at(x), .map = IndexMap::contiguous({1, M, N})}};
        matmul.a.load(0, DType::f32);
        ir::MatmulPart part;
        part.N = N;
        part.b.load(1, DType::f32);
        ir::ScalarProgram& e = part.epilogue;
        const ir::Reg product = e.push({.op = ScalarOp::accumulator}),
                      added = e.load(2, DType::f32), old = e.load(3, DType::f32);
        const ir::Reg y = e.binary(ScalarOp::add, e.binary(ScalarOp::add, product, added), old);
        part.stores = {
            {.place = at(x), .elements = M * N, .value = y},
            {.place = at(z), .elements = M * N, .value = e.binary(ScalarOp::sub, y, old)}};
        matmul.parts.push_back(part);
        std::vector<float> before(static_cast<std::size_t>(all));
        std::mt19937 random(7);
        for (float& v : before) v = static_cast<float>(random() % 17) - 8;  // sums are exact
        std::vector<float> first;
        for (const int threads : {1, 3}) {
          std::vector<float> memory = before;
          Memory spaces;
          spaces.space[static_cast<std::size_t>(ir::Space::arena)] = memory.data();
          Pool pool(threads);
          compile_by(by, kernel)->run(spaces, pool);
          if (first.empty()) first = memory;
          ASSERT_TRUE(memory == first);
        }
        const auto was = [&](std::int64_t i) {
          return static_cast<double>(before[static_cast<std::size_t>(i)]);
        };
        const auto is = [&](std::int64_t i) {
          return static_cast<double>(first[static_cast<std::size_t>(i)]);
        };
        for (std::int64_t i = 0; i < M; ++i)
          for (std::int64_t j = 0; j < N; ++j) {
            double sum = was(bias + j);
            for (std::int64_t k = 0; k < K; ++k) sum += was(a + i * K + k) * was(b + k * N + j);
            ASSERT_EQ(is(z + i * N + j), sum) << i << ", " << j;
            ASSERT_EQ(is(x + i * N + j), sum + was(x + i * N + j)) << i << ", " << j;
          }
      }
}

// Sizes from training: weight gradients, tiles in both directions, and a right operand that is
// packed once for all.
TEST_P(MatmulOfManySizes, LargeOnes) {
  const Side plain{Lie::plain}, turned{Lie::turned};
  const auto check = [](std::int64_t M, std::int64_t N, std::int64_t K, Side a, Side b) {
    SCOPED_TRACE(testing::Message() << M << " x " << N << " x " << K);
    Case({1, M, K, a, {{N, b, M % 2 == 0, true}}}, 3).check(GetParam());
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
  check(512, 200, 770, plain,
        plain);  // several blocks of k, and an epilogue for some rows at a time
  Case({1,
        1100,
        9,
        plain,
        {{200, plain, true, true}, {300, turned, false, false}, {70, plain, true, false}}},
       3)
      .check(GetParam());
  Case({7, 300, 20, plain, {{600, turned, true, false}}}, 3)
      .check(GetParam());  // batches and stripes in turn
}

TEST_P(SlowMatmul, MoreThanIsPackedAtATime) {
  Case({1, 130, 100, {Lie::plain}, {{45'000, {Lie::plain}, false, true}}}, 3).check(GetParam());
}

TEST_P(Matmul, NothingToAddOrToWrite) {
  Case({2, 3, 0, {}, {{5, {}, true, true}}}, 1).check(GetParam());
  Case({2, 0, 4, {}, {{5, {}, true, false}}}, 1).check(GetParam());
  Case({0, 3, 4, {}, {{5, {}, true, true}}}, 1).check(GetParam());
  Case({1, 3, 4, {}, {{0, {}, true, true}, {7, {}, false, false}}}, 1).check(GetParam());
  Case({1, 300, 4, {}, {{0, {Lie::turned}, false, false}}}, 1).check(GetParam());
}

// [M, K] times [K, N]; the left side is row-major or column-major.
class PlainProduct {
 public:
  PlainProduct(std::int64_t M, std::int64_t K, std::int64_t N, const std::vector<float>& a,
               const std::vector<float>& b, MatmulUnit by, bool turned = false)
      : memory_(a), elements_(M * N) {
    memory_.insert(memory_.end(), b.begin(), b.end());
    memory_.resize(memory_.size() + static_cast<std::size_t>(M * N));
    ir::Kernel kernel;
    auto& matmul = kernel.core.emplace<ir::MatmulKernel>();
    matmul.M = M, matmul.K = K;
    const auto at = [](std::int64_t offset) { return ir::Place{ir::Space::arena, offset}; };
    const IndexMap left = turned ? IndexMap::contiguous({1, K, M}).permute({0, 2, 1})
                                 : IndexMap::contiguous({1, M, K});
    kernel.loads = {{.place = at(0), .map = left},
                    {.place = at(M * K), .map = IndexMap::contiguous({1, K, N})}};
    matmul.a.load(0, DType::f32);
    ir::MatmulPart part;
    part.N = N;
    part.b.load(1, DType::f32);
    part.epilogue.push({.op = ScalarOp::accumulator});
    part.stores = {{.place = at(M * K + K * N), .elements = M * N, .value = 0}};
    matmul.parts.push_back(part);
    compiled_ = compile_by(by, kernel);
  }

  std::vector<float> run(Executor& executor) {
    Memory spaces;
    spaces.space[static_cast<std::size_t>(ir::Space::arena)] = memory_.data();
    compiled_->run(spaces, executor);
    return {memory_.end() - elements_, memory_.end()};
  }

 private:
  std::vector<float> memory_;
  std::int64_t elements_;
  std::unique_ptr<Compiled> compiled_;
};

std::vector<float> product(std::int64_t M, std::int64_t K, std::int64_t N,
                           const std::vector<float>& a, const std::vector<float>& b,
                           MatmulUnit by) {
  Pool pool(2);
  return PlainProduct(M, K, N, a, b, by).run(pool);
}

std::vector<float> normal_numbers(std::int64_t n, std::uint32_t seed, double size = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<double> value;
  std::vector<float> out(static_cast<std::size_t>(n));
  for (float& x : out) x = static_cast<float>(value(random) * size);
  return out;
}

// Element (i, j) of [M, K] times [K, N] in double, and the sum of the magnitudes of the finite
// terms.
struct Exact {
  double sum = 0, size = 0;
};
Exact exact(const std::vector<float>& a, const std::vector<float>& b, std::int64_t K,
            std::int64_t N, std::int64_t i, std::int64_t j) {
  Exact out;
  for (std::int64_t k = 0; k < K; ++k) {
    const double term = static_cast<double>(a[static_cast<std::size_t>(i * K + k)]) *
                        static_cast<double>(b[static_cast<std::size_t>(k * N + j)]);
    out.sum += term;
    if (std::isfinite(term)) out.size += std::abs(term);
  }
  return out;
}

// The largest error of an element, relative to the sum of the magnitudes of its terms.
double worst_error(std::int64_t M, std::int64_t K, std::int64_t N, const std::vector<float>& a,
                   const std::vector<float>& b, const std::vector<float>& c) {
  double worst = 0;
  for (std::int64_t i = 0; i < M; ++i)
    for (std::int64_t j = 0; j < N; ++j) {
      const auto [sum, size] = exact(a, b, K, N, i, j);
      const double error =
          std::abs(static_cast<double>(c[static_cast<std::size_t>(i * N + j)]) - sum) / size;
      if (!(error <= worst)) worst = error;  // NaN too
    }
  return worst;
}

// Half a unit in the last place is 6e-8. The six sums of a product on the tile unit are a little
// less exact for one product, and more exact for many.
TEST_P(Matmul, ErrorsAreThoseOfFloats) {
  for (const std::int64_t K : {1, 2, 32, 100, 1000})
    for (const double size : {1.0, 1e-12, 1e15}) {
      const std::vector<float> a = normal_numbers(64 * K, 1, size),
                               b = normal_numbers(K * 96, 2, size);
      const double worst = worst_error(64, K, 96, a, b, product(64, K, 96, a, b, GetParam()));
      const double bound =
          GetParam() == MatmulUnit::amx ? (K == 1 ? 8e-8 : 1.3e-7) : (K == 1 ? 6e-8 : 3e-7);
      EXPECT_LE(worst, bound) << K << " products, size " << size;
    }
}

// The worst operands for the split into three pieces: 1 + 2^-8 - 2^-17 is 1, 2^-8 and -2^-17, and
// the omitted terms have one sign.
TEST_P(Matmul, ErrorsOfTheWorstOperands) {
  for (const std::int64_t K : {1, 64, 1000}) {
    const std::vector<float> a(static_cast<std::size_t>(16 * K), bit_cast<float>(0x3f807fc0u));
    const std::vector<float> b(static_cast<std::size_t>(K * 32), bit_cast<float>(0x3f807fc0u));
    EXPECT_LE(worst_error(16, K, 32, a, b, product(16, K, 32, a, b, GetParam())), 1.2e-7) << K;
  }
}

// There are no pieces below the smallest normal number, so an operand loses at most that number.
TEST_P(Matmul, SmallNumbersLoseAtMostTheSmallestNormalNumber) {
  const std::int64_t M = 32, K = 40, N = 64;
  for (const double size : {1e-30, 1e-33, 1e-36, 1e-38, 1e-39}) {
    const std::vector<float> a = normal_numbers(M * K, 7, size), b = normal_numbers(K * N, 8, 1e25);
    const std::vector<float> c = product(M, K, N, a, b, GetParam());
    for (std::int64_t i = 0; i < M; ++i)
      for (std::int64_t j = 0; j < N; ++j) {
        double sum = 0, bound = 0;
        for (std::int64_t k = 0; k < K; ++k) {
          const double x = a[static_cast<std::size_t>(i * K + k)],
                       y = b[static_cast<std::size_t>(k * N + j)];
          sum += x * y, bound += std::abs(y) * (1.2e-38 + 1e-6 * std::abs(x));
        }
        ASSERT_NEAR(c[static_cast<std::size_t>(i * N + j)], sum, bound)
            << size << ": " << i << ", " << j;
      }
  }
}

// One thread that also works for another program between two rounds. The second round begins with
// the rows at which the first one ended.
class Interrupted : public Executor {
 public:
  explicit Interrupted(PlainProduct& other) : other_(other) {}
  void run(std::int64_t tasks, TaskRef task) override {
    const bool backward = calls_++ < 2;  // first packing and first tiles
    for (std::int64_t i = 0; i < tasks; ++i) task(backward ? tasks - 1 - i : i);
    Pool own(1);
    other_.run(own);
  }
  int calls() const { return calls_; }

 private:
  PlainProduct& other_;
  int calls_ = 0;
};

TEST_P(Matmul, OtherProgramsMayRunBetweenRounds) {
  const std::int64_t M = 300, K = 128, N = 50'000;
  const std::vector<float> a = normal_numbers(M * K, 9), b = normal_numbers(K * N, 10);
  Pool alone(1);
  PlainProduct large(M, K, N, a, b, GetParam());
  const std::vector<float> expected = large.run(alone);
  PlainProduct other(150, 70, 80, normal_numbers(150 * 70, 11), normal_numbers(70 * 80, 12),
                     MatmulUnit::vectors, true);
  Interrupted interrupted(other);
  EXPECT_TRUE(large.run(interrupted) == expected);
  EXPECT_GE(interrupted.calls(), 4);
}

// Results that floats represent exactly are exact: values selected by ones, and sums of integers.
TEST_P(Matmul, IsExactWhereFloatsAre) {
  const std::int64_t M = 48, K = 70, N = 100;
  const std::vector<float> b = normal_numbers(K * N, 3);
  std::vector<float> pick(static_cast<std::size_t>(M * K));
  for (std::int64_t i = 0; i < M; ++i) pick[static_cast<std::size_t>(i * K + i * 29 % K)] = 1;
  const std::vector<float> picked = product(M, K, N, pick, b, GetParam());
  for (std::int64_t i = 0; i < M; ++i)
    for (std::int64_t j = 0; j < N; ++j)
      ASSERT_EQ(picked[static_cast<std::size_t>(i * N + j)],
                b[static_cast<std::size_t>(i * 29 % K * N + j)]);
  std::mt19937 random(4);
  std::vector<float> x(static_cast<std::size_t>(M * K)), y(static_cast<std::size_t>(K * N));
  for (float& v : x) v = static_cast<float>(random() % 511) - 255;
  for (float& v : y) v = static_cast<float>(random() % 801) - 400;
  EXPECT_EQ(worst_error(M, K, N, x, y, product(M, K, N, x, y, GetParam())), 0);
}

// Infinities, NaNs and the largest numbers, in the middle and at edges, for one and for several
// blocks of k.
TEST_P(Matmul, WhatIsNotFinite) {
  constexpr float kInf = std::numeric_limits<float>::infinity(),
                  kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kMost = std::numeric_limits<float>::max();
  const std::int64_t M = 133, N = 101;
  for (const std::int64_t K : {40, 700}) {
    std::vector<float> a = normal_numbers(M * K, 5), b = normal_numbers(K * N, 6);
    const auto put = [](std::vector<float>& to, std::int64_t i, float value) {
      to[static_cast<std::size_t>(i)] = value;
    };
    put(a, 3 * K + 7, kInf), put(a, 40 * K + 1, -kInf), put(a, 40 * K + 2, kInf);
    put(a, 100 * K + K - 1, kNan), put(a, 70 * K + 5, kMost), put(a, 132 * K, -kMost);
    // Adding to their bits carries into the sign.
    put(a, 110 * K, bit_cast<float>(0x7fffffffu)), put(a, 111 * K, bit_cast<float>(0xffffffffu));
    put(a, 112 * K + 3, bit_cast<float>(0x7f800001u));
    put(b, 20 * N + 100, kInf), put(b, 5 * N + 33, kNan), put(b, 8 * N + 64, kMost);
    for (std::int64_t j = 0; j < N; ++j)
      put(b, 7 * N + j, j % 3 == 0 ? 0.0f : j % 3 == 1 ? 1.0f : -2.0f);
    put(b, 5 * N + 2, 0.25f), put(b, 5 * N + 4, 4);  // of the largest: a quarter, and too much
    const std::vector<float> c = product(M, K, N, a, b, GetParam());
    int nans = 0, infinities = 0;
    for (std::int64_t i = 0; i < M; ++i)
      for (std::int64_t j = 0; j < N; ++j) {
        const auto [sum, size] = exact(a, b, K, N, i, j);
        // If more than one term overflows, the order of additions decides the result.
        const bool too_large = std::abs(sum) > 1.001 * static_cast<double>(kMost);
        const bool one_way = too_large && std::isfinite(sum) && size < 1.001 * std::abs(sum);
        if (size > static_cast<double>(kMost) && !std::isnan(sum) && !one_way) continue;
        const float is = c[static_cast<std::size_t>(i * N + j)];
        SCOPED_TRACE(testing::Message() << K << ": " << i << ", " << j);
        if (std::isnan(sum)) {
          ASSERT_TRUE(std::isnan(is)) << is;
          ++nans;
        } else if (too_large) {
          ASSERT_EQ(is, sum > 0 ? kInf : -kInf);
          ++infinities;
        } else {
          ASSERT_NEAR(is, sum, 1e-4 + 1e-6 * std::abs(sum));
        }
      }
    EXPECT_GT(nans, 300);
    EXPECT_GT(infinities, 300);
  }
}

// The device model describes the unit that amx.h has, and tiles that fit the room that a task has.
TEST(MatmulBlocks, TheModelKnowsTheUnits) {
  const ir::DeviceModel::Blocks& device = ir::cpu_model(ir::CpuUnits::vectors_and_amx).blocks;
  ASSERT_EQ(device.units.size(), 2u);
  const ir::MatmulUnitModel& amx = device.units[1];
  EXPECT_EQ(amx.unit, MatmulUnit::amx);
  EXPECT_EQ(amx.rows, kAmxRows);
  EXPECT_EQ(amx.columns, kAmxColumns);
  EXPECT_EQ(amx.depth, kAmxDepth);
  EXPECT_EQ(static_cast<std::int64_t>(64 * 96 * amx.packed_floats), amx_room(64, 96));
  EXPECT_LE(device.most_rows, kTileRows);
  EXPECT_LE(device.most_columns, kTileColumns);
  EXPECT_EQ(device.block, kBlock);
}

}  // namespace
}  // namespace tensorgrad::cpu
