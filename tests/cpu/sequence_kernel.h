// Runs one CPU kernel alone: operands in memory with gaps of NaN, several ways to run its tasks,
// and checks of the memory afterwards.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <thread>
#include <vector>

#include "codegen/cpu/compiled.h"
#include "kernels/variants.h"
#include "runtime/cpu/cores.h"

namespace tensorgrad::cpu {

// The memory layout of an operand.
enum class Lies { in_order, heads_inside, turned, spread };

class Threads : public Executor {
 public:
  explicit Threads(int count) : count_(count) {}
  void run(std::int64_t tasks, TaskRef task) override {
    std::atomic<std::int64_t> next{0};
    const auto work = [&] {
      for (std::int64_t i = next++; i < tasks; i = next++) task(count_ == 2 ? tasks - 1 - i : i);
    };
    std::vector<std::thread> threads;
    for (int i = 1; i < std::min(count_, most_threads()); ++i) threads.emplace_back(work);
    work();
    for (std::thread& thread : threads) thread.join();
  }

 private:
  int count_;
};

class KernelTest {
 public:
  ir::Kernel kernel;

  // The kernel becomes one of this kind.
  template <class Core, class S>
  void set(const S& shape) {
    kernel.core.emplace<Core>().shape = shape;
  }

  // Adds an operand and returns it.
  std::vector<double> add(const Shape& shape, Lies lies, double low, double high) {
    std::uniform_real_distribution<float> number(static_cast<float>(low), static_cast<float>(high));
    std::vector<double> out(static_cast<std::size_t>(shape.count()));
    for (double& x : out) x = static_cast<double>(number(random_));
    put(shape, lies, out);
    return out;
  }

  void put(const Shape& shape, Lies lies, const std::vector<double>& values) {
    ir::Load load;
    Shape outer = shape;
    const int last = shape.rank() - 1;
    ir::IndexMap map = ir::IndexMap::contiguous(shape);
    if (lies == Lies::heads_inside) {  // [B, T, H, D], seen as [B, H, T, D]
      std::swap(outer[1], outer[2]);
      map = ir::IndexMap::contiguous(outer).permute({0, 2, 1, 3});
    } else if (lies == Lies::turned) {
      std::vector<int> order(static_cast<std::size_t>(shape.rank()));
      for (int d = 0; d <= last; ++d) order[static_cast<std::size_t>(d)] = d;
      std::swap(order[static_cast<std::size_t>(last)], order[static_cast<std::size_t>(last - 1)]);
      std::swap(outer[last], outer[last - 1]);
      map = ir::IndexMap::contiguous(outer).permute(order);
    } else if (lies == Lies::spread) {  // rows with a gap after each
      outer[last] += 3;
      map = ir::IndexMap::contiguous(outer).narrow(last, 1, shape[last]);
    }
    load.place = {ir::Space::arena, static_cast<std::int64_t>(memory_.size()) + 5};
    load.map = map;
    load.elements = outer.count();
    memory_.resize(memory_.size() + static_cast<std::size_t>(outer.count()) + 16, std::nanf(""));
    for (std::int64_t i = 0; i < shape.count(); ++i) {
      double fill = 0;
      memory_[static_cast<std::size_t>(load.place.offset + map.address_of_linear(i, fill))] =
          static_cast<float>(values[static_cast<std::size_t>(i)]);
    }
    kernel.loads.push_back(load);
  }

  void put_int(std::int32_t value) {
    put({}, Lies::in_order, {0});
    kernel.loads.back().dtype = i32;
    std::memcpy(&memory_[static_cast<std::size_t>(kernel.loads.back().place.offset)], &value,
                sizeof value);
  }

  // Returns the result of `count` floats. Checks that it is the same for all numbers of threads,
  // and that nothing else was written.
  std::vector<float> run(std::int64_t count) {
    const std::size_t before = memory_.size(), size = static_cast<std::size_t>(count);
    ir::for_each_store(kernel, [&](ir::Store& store) {
      store.place = {ir::Space::arena, static_cast<std::int64_t>(before) + 3};
      store.elements = count;
    });
    kernels::choose_variants(kernel, ir::cpu_model());
    const auto compiled = compile(kernel);
    std::vector<float> first;
    for (const int threads : {1, 2, 3}) {
      std::vector<float> memory = memory_;
      memory.resize(before + size + 32, kGuard);
      const std::vector<float> kept = memory;
      Memory spaces;
      spaces.space[static_cast<std::size_t>(ir::Space::arena)] = memory.data();
      Threads executor(threads);
      compiled->run(spaces, executor);
      EXPECT_EQ(std::memcmp(memory.data(), kept.data(), (before + 3) * sizeof(float)), 0)
          << "written before the result";
      EXPECT_EQ(std::memcmp(memory.data() + before + 3 + size, kept.data() + before + 3 + size,
                            29 * sizeof(float)),
                0)
          << "written behind the result";
      const std::vector<float> out(memory.begin() + static_cast<std::ptrdiff_t>(before + 3),
                                   memory.begin() + static_cast<std::ptrdiff_t>(before + 3 + size));
      if (threads == 1) first = out;
      EXPECT_TRUE(std::equal(out.begin(), out.end(), first.begin(), same_bits))
          << threads << " threads";
    }
    return first;
  }

 private:
  static bool same_bits(float a, float b) { return std::memcmp(&a, &b, sizeof a) == 0; }
  static constexpr float kGuard = 12345.0f;
  std::mt19937 random_{7};
  std::vector<float> memory_;
};

// The largest difference, relative to the largest wanted value if that exceeds 1.
inline double worst(const float* got, const std::vector<double>& wanted) {
  double difference = 0, largest = 1;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const double off = std::abs(static_cast<double>(got[i]) - wanted[i]);
    difference =
        std::isnan(off) ? std::numeric_limits<double>::infinity() : std::max(difference, off);
    largest = std::max(largest, std::abs(wanted[i]));
  }
  return difference / largest;
}

}  // namespace tensorgrad::cpu
