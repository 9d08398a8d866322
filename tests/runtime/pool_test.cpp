// The thread pool: every task runs once, the error is the same for any number of threads, several
// callers at once.
#include "runtime/cpu/pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

namespace tensorgrad::cpu {
namespace {

TEST(Pool, RunsEveryTaskOnce) {
  for (const int threads : {1, 2, 4}) {
    Pool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    std::vector<int> runs(97);
    for (int round = 1; round <= 3000; ++round) {
      const std::int64_t tasks = round % 97;
      pool.run(tasks, [&](std::int64_t i) { ++runs[static_cast<std::size_t>(i)]; });
    }
    // Task i runs in every round of more than i tasks.
    for (std::size_t i = 0; i < runs.size(); ++i) {
      int want = 0;
      for (int round = 1; round <= 3000; ++round) want += static_cast<int>(i) < round % 97;
      ASSERT_EQ(runs[i], want) << i;
    }
  }
}

TEST(Pool, RaisesTheErrorOfTheFirstTask) {
  Pool pool(4);
  for (int round = 0; round < 500; ++round) {
    std::atomic<int> ran{0};
    try {
      pool.run(50, [&](std::int64_t i) {
        ++ran;
        if (i >= 20) throw std::runtime_error(std::to_string(i));
      });
      FAIL() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "20");
      EXPECT_EQ(ran, 50);
    }
  }
  int after = 0;
  pool.run(1, [&](std::int64_t) { ++after; });
  EXPECT_EQ(after, 1);
}

TEST(Pool, ServesSeveralCallers) {
  Pool pool(3);
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 3; ++t)
    callers.emplace_back([&] {
      for (int round = 0; round < 1000; ++round) {
        std::atomic<std::int64_t> sum{0};
        pool.run(40, [&](std::int64_t i) { sum += i; });
        wrong += sum != 780;
      }
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

// Long enough for workers to sleep before some rounds, and for the caller to sleep in others.
TEST(Pool, SleepsAndWakes) {
  Pool pool(3);
  for (int round = 0; round < 200; ++round) {
    if (round % 2) std::this_thread::sleep_for(std::chrono::microseconds(10 * round));
    std::atomic<int> ran{0};
    pool.run(1 + round % 7, [&](std::int64_t i) {
      if (i == round % 5) std::this_thread::sleep_for(std::chrono::microseconds(3 * round));
      ++ran;
    });
    ASSERT_EQ(ran, 1 + round % 7);
  }
}

// The caller pauses between the rounds of a step.
TEST(Pool, RunsTheRoundsOfAStep) {
  Pool pool(2);
  for (int step = 0; step < 20; ++step) {
    const Pool::Step awake(pool);
    for (int round = 0; round < 20; ++round) {
      std::atomic<std::int64_t> sum{0};
      pool.run(5, [&](std::int64_t i) { sum += i; });
      ASSERT_EQ(sum, 10);
      std::this_thread::sleep_for(std::chrono::microseconds(50 * (round % 3)));
    }
  }
}

TEST(Pool, KeepsASingleTaskOnTheCallersThread) {
  Pool pool(4);
  const std::thread::id caller = std::this_thread::get_id();
  for (int round = 0; round < 100; ++round)
    pool.run(1, [&](std::int64_t) { EXPECT_EQ(std::this_thread::get_id(), caller); });
}

// The caller runs its first task until the worker has done all others: its own share in order, then
// the rest of the caller's from the end.
TEST(Pool, EachThreadBeginsWithItsShare) {
  Pool pool(2);
  for (int round = 0; round < 100; ++round) {
    std::vector<std::int64_t> order;
    std::atomic<int> done{0};
    pool.run(6, [&](std::int64_t i) {
      if (i > 0) {
        order.push_back(i);
        ++done;
      }
      while (i == 0 && done < 5) std::this_thread::yield();
    });
    EXPECT_EQ(order, (std::vector<std::int64_t>{3, 4, 5, 2, 1}));
  }
}

// A nested run finds the workers in use.
TEST(Pool, RunsWithinARun) {
  Pool pool(3);
  std::atomic<std::int64_t> sum{0};
  pool.run(10, [&](std::int64_t i) { pool.run(10, [&](std::int64_t j) { sum += 10 * i + j; }); });
  EXPECT_EQ(sum, 4950);
}

TEST(Pool, LeavesAnErrorBehind) {
  Pool pool(2);
  EXPECT_THROW(pool.run(2, [](std::int64_t) { throw std::runtime_error("both"); }),
               std::runtime_error);
  EXPECT_NO_THROW(pool.run(2, [](std::int64_t) {}));
}

TEST(Pool, EndsWhileWorkersLookOrSleep) {
  for (int i = 0; i < 100; ++i) {
    Pool pool(4);
    if (i % 3) pool.run(8, [](std::int64_t) {});
    std::this_thread::sleep_for(std::chrono::microseconds(5 * i));
  }
}

}  // namespace
}  // namespace tensorgrad::cpu
