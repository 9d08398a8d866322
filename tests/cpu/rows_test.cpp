// Hand-written kernels of rows and columns against plain loops in double.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "codegen/cpu/compiled.h"
#include "kernels/variants.h"
#include "support/threefry.h"
#include "tests/cpu/each_target.h"

namespace tensorgrad::cpu {
namespace {

using ir::IndexMap;
using ir::Instr;
using ir::Kernel;
using ir::Reg;
using ir::ScalarOp;

// Runs tasks in order or in reverse order.
class InOrder : public Executor {
 public:
  explicit InOrder(bool backwards) : backwards_(backwards) {}
  void run(std::int64_t tasks, TaskRef task) override {
    for (std::int64_t t = 0; t < tasks; ++t) task(backwards_ ? tasks - 1 - t : t);
  }

 private:
  bool backwards_;
};

std::vector<float> numbers(std::size_t n) {
  std::vector<float> x(n);
  for (std::size_t i = 0; i < n; ++i)
    x[i] = unit_float(threefry(1, 2, static_cast<std::uint32_t>(i), 3)[0]) - 0.5f;
  return x;
}

// The kernel of these loads and this core, as the CPU would choose to run it.
template <class Core>
Kernel kernel_of(std::vector<ir::Load> loads, const Core& core) {
  Kernel out;
  out.loads = std::move(loads);
  out.core = core;
  kernels::choose_variants(out, ir::cpu_model());
  return out;
}

std::vector<float> run(const Kernel& kernel, std::vector<float> memory, bool backwards = false) {
  Memory at;
  at.space[static_cast<std::size_t>(ir::Space::arena)] = memory.data();
  InOrder executor(backwards);
  compile(kernel)->run(at, executor);
  return memory;
}

ir::Load load(std::int64_t offset, const IndexMap& map) {
  return {.place = {ir::Space::arena, offset}, .map = map};
}
ir::Store store(std::int64_t offset, std::int64_t elements, Reg value) {
  return {.place = {ir::Space::arena, offset}, .elements = elements, .value = value};
}
Reg reduce(ir::ScalarProgram& p, Reg a) {
  return p.push({.op = ScalarOp::reduce,
                 .dtype = DType::f32,
                 .a = a,
                 .combine = ir::Combine::add,
                 .line = true});
}

// (x - mean) * gain + shift; gain is a row that all lines share, with a stride of two elements.
Kernel norm(std::int64_t lines, std::int64_t length) {
  ir::RowsKernel k;
  k.lines = lines, k.length = length;
  const Shape shape{lines, length};
  const std::int64_t n = lines * length;
  const std::vector loads = {load(0, IndexMap::contiguous(shape)),
                             load(n, IndexMap::contiguous({1, length, 2})
                                         .narrow(2, 0, 1)
                                         .reshape({1, length})
                                         .broadcast(shape)),
                             load(n + 2 * length, IndexMap::contiguous({1, 1}).broadcast(shape))};
  ir::ScalarProgram& p = k.program;
  const Reg x = p.load(0, DType::f32);
  const Reg mean = p.binary(ScalarOp::div, reduce(p, x), p.constant(static_cast<double>(length)));
  const Reg centered = p.binary(ScalarOp::sub, x, mean);
  const Reg scaled = p.binary(ScalarOp::mul, centered, p.load(1, DType::f32));
  const Reg shifted = p.binary(ScalarOp::add, scaled, p.load(2, DType::f32));
  k.stores = {store(n + 2 * length + 1, n, shifted), store(2 * n + 2 * length + 1, lines, mean)};
  return kernel_of(loads, k);
}

TEST(Rows, NormsOfAllLengths) {
  on_each_target([] {
    for (const std::int64_t length : {1, 2, 7, 12, 15, 16, 17, 33, 64, 65, 128, 300, 700})
      for (const std::int64_t lines : {1, 3, 50, 300}) {
        const std::int64_t n = lines * length, out = n + 2 * length + 1;
        const std::vector<float> before =
            numbers(static_cast<std::size_t>(2 * n + 2 * length + 1 + lines + 4));
        const std::vector<float> after = run(norm(lines, length), before);
        EXPECT_EQ(run(norm(lines, length), before, true), after);
        const auto at = [&](std::int64_t i) {
          return static_cast<double>(before[static_cast<std::size_t>(i)]);
        };
        for (std::int64_t l = 0; l < lines; ++l) {
          double mean = 0;
          for (std::int64_t i = 0; i < length; ++i)
            mean += at(l * length + i) / static_cast<double>(length);
          for (std::int64_t i = 0; i < length; ++i)
            ASSERT_NEAR(after[static_cast<std::size_t>(out + l * length + i)],
                        (at(l * length + i) - mean) * at(n + 2 * i) + at(n + 2 * length), 1e-6)
                << lines << " x " << length;
          ASSERT_NEAR(after[static_cast<std::size_t>(2 * n + 2 * length + 1 + l)], mean, 1e-6);
        }
        for (std::int64_t i = 0; i < out; ++i)
          ASSERT_EQ(after[static_cast<std::size_t>(i)], before[static_cast<std::size_t>(i)]);
        for (std::size_t i = after.size() - 4; i < after.size(); ++i)
          ASSERT_EQ(after[i], before[i]);
      }
  });
}

// A result may overwrite its operand only if nothing reads the old value later.
TEST(Rows, ResultsInPlaceDoNotHideOldValues) {
  constexpr std::int64_t kCount = 1000;
  ir::RowsKernel k;
  k.length = kCount;
  const std::vector loads = {load(0, IndexMap::contiguous({kCount})),
                             load(kCount, IndexMap::contiguous({kCount}))};
  ir::ScalarProgram& p = k.program;
  const Reg a = p.load(0, DType::f32);
  const Reg twice = p.binary(ScalarOp::add, a, a);
  const Reg b = p.load(1, DType::f32);
  const Reg both = p.binary(ScalarOp::mul, twice, b);
  const Reg again = p.binary(ScalarOp::add, both, a);
  k.stores = {store(0, kCount, twice), store(kCount, kCount, again)};
  const std::vector<float> before = numbers(2 * kCount), after = run(kernel_of(loads, k), before);
  for (std::size_t i = 0; i < kCount; ++i) {
    const float x = before[i], y = before[kCount + i];
    ASSERT_EQ(after[i], x + x);
    const volatile float product =
        (x + x) * y;  // rounded here, so that the compiler does not fuse the operations
    ASSERT_EQ(after[kCount + i], product + x);
  }
}

// One condition for all elements; the same value computed twice; a scalar stored for every element.
TEST(Rows, OneValueForAll) {
  constexpr std::int64_t kCount = 1000;
  for (const float flag : {0.0f, 1.0f}) {
    ir::RowsKernel k;
    k.length = kCount;
    const IndexMap each = IndexMap::contiguous({kCount}),
                   one = IndexMap::contiguous({1}).broadcast({kCount});
    const std::vector loads = {load(0, each), load(kCount, one), load(kCount + 1, one)};
    ir::ScalarProgram& p = k.program;
    const Reg x = p.load(0, DType::f32), on = p.load(1, DType::f32), scale = p.load(2, DType::f32);
    const Reg yes = p.compare(ScalarOp::equal, on, p.constant(1));
    const Reg root = p.unary(ScalarOp::exp, scale), product = p.binary(ScalarOp::mul, x, root);
    const Reg repeated = p.binary(ScalarOp::mul, x, p.unary(ScalarOp::exp, scale));
    const Reg chosen = p.select(yes, product, x);
    const Reg constant = p.select(yes, root, p.constant(3));
    k.stores = {store(kCount + 2, kCount, chosen), store(2 * kCount + 2, kCount, repeated),
                store(3 * kCount + 2, kCount, constant), store(4 * kCount + 2, kCount, product)};
    std::vector<float> before = numbers(5 * kCount + 2);
    before[kCount] = flag, before[kCount + 1] = 0.25f;
    const std::vector<float> after = run(kernel_of(loads, k), before);
    for (std::size_t i = 0; i < kCount; ++i) {
      const float expected = before[i] * std::exp(0.25f);
      EXPECT_NEAR(after[kCount + 2 + i], flag != 0 ? expected : before[i], 1e-6);
      EXPECT_NEAR(after[2 * kCount + 2 + i], expected, 1e-6);
      EXPECT_NEAR(after[3 * kCount + 2 + i], flag != 0 ? std::exp(0.25f) : 3, 1e-6);
      EXPECT_EQ(after[4 * kCount + 2 + i], after[2 * kCount + 2 + i]);
    }
  }
}

// A bias over rows that a kernel without reductions treats as lines; also lengths that do not
// divide a block.
TEST(Rows, ElementwiseWithARepeatedRow) {
  for (const std::int64_t length : {3, 16, 24, 64, 100, 512, 1000}) {
    const std::int64_t lines = 37, n = lines * length;
    ir::RowsKernel k;
    k.length = n;
    const Shape shape{lines, length};
    const std::vector loads = {load(0, IndexMap::contiguous(shape)),
                               load(n, IndexMap::contiguous({1, length}).broadcast(shape))};
    ir::ScalarProgram& p = k.program;
    k.stores = {store(n + length, n,
                      p.binary(ScalarOp::add, p.load(0, DType::f32), p.load(1, DType::f32)))};
    const std::vector<float> before = numbers(static_cast<std::size_t>(2 * n + length)),
                             after = run(kernel_of(loads, k), before);
    for (std::int64_t i = 0; i < n; ++i)
      ASSERT_EQ(
          after[static_cast<std::size_t>(n + length + i)],
          before[static_cast<std::size_t>(i)] + before[static_cast<std::size_t>(n + i % length)]);
  }
}

TEST(Rows, SumsDownColumns) {
  on_each_target([] {
    for (const std::int64_t columns : {1, 5, 16, 17, 64, 100, 256, 300, 600})
      for (const std::int64_t rows : {1, 7, 300, 600}) {
        ir::ColumnsKernel k;
        k.lines = columns, k.length = rows;
        const std::vector loads = {load(0, IndexMap::contiguous({rows, columns}))};
        const Reg x = k.program.load(0, DType::f32);
        k.stores = {store(rows * columns, columns, reduce(k.program, x))};
        const Kernel kernel = kernel_of(loads, k);
        const std::vector<float> before = numbers(static_cast<std::size_t>((rows + 1) * columns)),
                                 after = run(kernel, before);
        EXPECT_EQ(run(kernel, before, true), after);
        for (std::int64_t c = 0; c < columns; ++c) {
          double sum = 0;
          for (std::int64_t r = 0; r < rows; ++r)
            sum += static_cast<double>(before[static_cast<std::size_t>(r * columns + c)]);
          ASSERT_NEAR(after[static_cast<std::size_t>(rows * columns + c)], sum,
                      1e-6 * (1 + std::fabs(sum)));
        }
      }
  });
}

}  // namespace
}  // namespace tensorgrad::cpu
