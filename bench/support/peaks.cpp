#include "bench/support/peaks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/support/peaks.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tensorgrad::bench::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Twelve accumulators, because a multiply-add takes four to five cycles and two start per cycle.
// Each starts with a different value, because the compiler would merge equal ones. They approach 1.
std::int64_t MultiplyAdds(float* HWY_RESTRICT sink) {
  constexpr std::int64_t kRounds = 10'000, kSums = 12;
  const hn::ScalableTag<float> d;
  const auto x = hn::Set(d, sink[0]), y = hn::Set(d, 1 - sink[0]);
  const auto begin = [&](int i) HWY_ATTR { return hn::Set(d, sink[0] + static_cast<float>(i)); };
  auto a = begin(0), b = begin(1), c = begin(2), e = begin(3), f = begin(4), g = begin(5),
       h = begin(6), i = begin(7), j = begin(8), k = begin(9), l = begin(10), m = begin(11);
  for (std::int64_t round = 0; round < kRounds; ++round) {
    a = hn::MulAdd(a, x, y), b = hn::MulAdd(b, x, y), c = hn::MulAdd(c, x, y),
    e = hn::MulAdd(e, x, y);
    f = hn::MulAdd(f, x, y), g = hn::MulAdd(g, x, y), h = hn::MulAdd(h, x, y),
    i = hn::MulAdd(i, x, y);
    j = hn::MulAdd(j, x, y), k = hn::MulAdd(k, x, y), l = hn::MulAdd(l, x, y),
    m = hn::MulAdd(m, x, y);
  }
  const auto first =
      hn::Add(hn::Add(hn::Add(a, b), hn::Add(c, e)), hn::Add(hn::Add(f, g), hn::Add(h, i)));
  const auto second = hn::Add(hn::Add(j, k), hn::Add(l, m));
  sink[1] = hn::GetLane(hn::SumOfLanes(d, hn::Add(first, second)));
  return 2 * kSums * kRounds * static_cast<std::int64_t>(hn::Lanes(d));
}

void Copy(float* HWY_RESTRICT to, const float* HWY_RESTRICT from, std::size_t count) {
  const hn::ScalableTag<float> d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes)
    for (std::size_t j = 0; j < 4 * lanes; j += lanes)
      hn::StoreU(hn::LoadU(d, from + i + j), d, to + i + j);
  for (; i < count; ++i) to[i] = from[i];
}

void Triad(float* HWY_RESTRICT to, const float* HWY_RESTRICT a, const float* HWY_RESTRICT b,
           std::size_t count) {
  const hn::ScalableTag<float> d;
  const std::size_t lanes = hn::Lanes(d);
  const auto three = hn::Set(d, 3.0f);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes)
    hn::StoreU(hn::MulAdd(three, hn::LoadU(d, b + i), hn::LoadU(d, a + i)), d, to + i);
  for (; i < count; ++i) to[i] = a[i] + 3 * b[i];
}

}  // namespace tensorgrad::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>
#include <barrier>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

namespace tensorgrad::bench {

HWY_EXPORT(MultiplyAdds);
HWY_EXPORT(Copy);
HWY_EXPORT(Triad);

std::int64_t multiply_adds(float* sink) { return HWY_DYNAMIC_DISPATCH(MultiplyAdds)(sink); }
void copy(float* to, const float* from, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(Copy)(to, from, count);
}
void triad(float* to, const float* a, const float* b, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(Triad)(to, a, b, count);
}

namespace {

// Calls the function repeatedly on each thread for a hundredth of a second. Returns its result per
// nanosecond, summed over all threads, in the best of ten tries.
template <class Make>
double best_rate(int threads, Make make_work) {
  constexpr int kTries = 10;
  constexpr auto kTime = std::chrono::milliseconds(10);
  std::vector<std::vector<double>> rates(static_cast<std::size_t>(threads),
                                         std::vector<double>(kTries));
  std::barrier together(threads);
  std::vector<std::thread> workers;
  for (std::vector<double>& own : rates)
    workers.emplace_back([&] {
      const std::function<double()> work = make_work();
      for (double& rate : own) {
        together.arrive_and_wait();
        const auto start = std::chrono::steady_clock::now();
        double done = 0;
        std::chrono::nanoseconds took{0};
        for (; took < kTime; took = std::chrono::steady_clock::now() - start) done += work();
        rate = done / static_cast<double>(took.count());
      }
    });
  for (std::thread& worker : workers) worker.join();
  double best = 0;
  for (std::size_t i = 0; i < kTries; ++i) {
    double sum = 0;
    for (const std::vector<double>& own : rates) sum += own[i];
    best = std::max(best, sum);
  }
  return best;
}

}  // namespace

double peak_gflops(int threads) {
  return best_rate(threads, [] {
    return [sink = std::vector<float>{0.5f, 0}]() mutable {
      return static_cast<double>(multiply_adds(sink.data()));
    };
  });
}

double copy_gb_per_s(int threads, std::size_t bytes) {
  const std::size_t count =
      std::max<std::size_t>(bytes / (2 * sizeof(float) * static_cast<std::size_t>(threads)), 16);
  return best_rate(threads, [count] {
    return [to = std::vector<float>(count), from = std::vector<float>(count, 1.0f)]() mutable {
      copy(to.data(), from.data(), from.size());
      return static_cast<double>(2 * sizeof(float) * from.size());
    };
  });
}

}  // namespace tensorgrad::bench
#endif
