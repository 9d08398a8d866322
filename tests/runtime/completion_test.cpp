// Completions, callbacks, and the function that waits for them.
#include "tensorgrad/completion.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/poll.h"
#include "support/wait.h"
#include "tensorgrad/error.h"

namespace tensorgrad {
namespace {

std::exception_ptr error(const char* text) {
  return std::make_exception_ptr(std::runtime_error(text));
}

std::string text_of(const std::exception_ptr& failure) {
  if (!failure) return "";
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& e) {
    return e.what();
  }
}

TEST(Completion, TakesTheFirstValue) {
  const Completion<int> one;
  EXPECT_FALSE(one.ready());
  const Completion<int> copy = one;
  one.set(3);
  one.set(4);
  one.set_error(error("late"));
  EXPECT_TRUE(copy.ready());
  EXPECT_EQ(copy.get(), 3);
  EXPECT_FALSE(copy.error());
}

TEST(Completion, TakesTheFirstError) {
  const Completion<int> one;
  one.set_error(error("first"));
  one.set(4);
  EXPECT_EQ(text_of(one.error()), "first");
  EXPECT_THROW(one.get(), std::runtime_error);
}

TEST(Completion, FunctionsRunInOrderAndAtOnceIfItIsReady) {
  const Completion<int> one;
  std::string seen;
  one.then([&](const Completion<int>& c) { seen += "a" + std::to_string(c.get()); });
  one.then([&](const Completion<int>&) { seen += "b"; });
  EXPECT_EQ(seen, "");
  one.set(1);
  EXPECT_EQ(seen, "a1b");
  one.then([&](const Completion<int>&) { seen += "c"; });
  EXPECT_EQ(seen, "a1bc");
}

TEST(Completion, MapMakesAnotherValue) {
  const Completion<int> one;
  const Completion<std::string> text = one.map([](int n) { return std::to_string(n); });
  EXPECT_FALSE(text.ready());
  one.set(12);
  EXPECT_EQ(text.get(), "12");
}

TEST(Completion, MapWaitsForACompletionThatItsFunctionReturns) {
  const Completion<int> one, other;
  const Completion<int> sum =
      one.map([&](int a) { return other.map([a](int b) { return a + b; }); });
  one.set(1);
  EXPECT_FALSE(sum.ready());
  other.set(2);
  EXPECT_EQ(sum.get(), 3);
}

TEST(Completion, ErrorsPassByMapAndComeFromIt) {
  const Completion<int> one, other;
  bool ran = false;
  const auto passed = one.map([&](int n) { return ran = true, n; });
  one.set_error(error("early"));
  EXPECT_FALSE(ran);
  EXPECT_EQ(text_of(passed.error()), "early");
  const auto thrown = other.map([](int) -> int { throw std::runtime_error("in map"); });
  other.set(1);
  EXPECT_EQ(text_of(thrown.error()), "in map");
}

TEST(Completion, AllWaitsForEveryOneAndReportsTheFirstInTheList) {
  const std::vector<Completion<int>> made = {Completion<int>(), Completion<int>(),
                                             Completion<int>()};
  const Completion<Done> good = all(made);
  made[2].set(1), made[0].set(1);
  EXPECT_FALSE(good.ready());
  made[1].set(1);
  EXPECT_TRUE(good.ready());
  const std::vector<Completion<int>> bad = {Completion<int>(), Completion<int>()};
  const Completion<Done> failed = all(bad);
  bad[1].set_error(error("second"));
  EXPECT_FALSE(failed.ready());
  bad[0].set_error(error("first"));
  EXPECT_EQ(text_of(failed.error()), "first");
  EXPECT_TRUE(all(std::vector<Completion<int>>{}).ready());
}

TEST(Completion, AFunctionMayDropTheLastCopy) {
  auto one = std::make_unique<Completion<int>>();
  const Completion<int> copy = *one;
  int seen = 0;
  one->then([&](const Completion<int>& c) {
    one.reset();
    seen = c.get();
  });
  copy.set(5);
  EXPECT_EQ(seen, 5);
}

TEST(Completion, MayBeCompletedOnAnotherThread) {
  for (int i = 0; i < 200; ++i) {
    const Completion<int> one;
    std::atomic<int> seen = 0;
    std::thread other([&] { one.set(1); });
    one.then([&](const Completion<int>& c) { seen += c.get(); });
    other.join();
    EXPECT_EQ(seen, 1);
  }
}

// A callback that always asks for more cannot keep the caller.
TEST(Callbacks, RunInOrderAndThoseTheyPostRunNextTime) {
  std::string seen;
  post_callback(std::this_thread::get_id(), [&] {
    seen += "a";
    post_callback(std::this_thread::get_id(), [&] { seen += "c"; });
  });
  post_callback(std::this_thread::get_id(), [&] { seen += "b"; });
  EXPECT_EQ(seen, "");
  run_callbacks();
  EXPECT_EQ(seen, "ab");
  run_callbacks();
  EXPECT_EQ(seen, "abc");
  run_callbacks();
  EXPECT_EQ(seen, "abc");
}

TEST(Callbacks, RunOnTheThreadThatAskedForThem) {
  std::thread::id ran;
  post_callback(std::this_thread::get_id(), [&] { ran = std::this_thread::get_id(); });
  std::thread([] { EXPECT_FALSE(run_callbacks()); }).join();
  EXPECT_EQ(ran, std::thread::id());
  EXPECT_TRUE(run_callbacks());
  EXPECT_EQ(ran, std::this_thread::get_id());
}

TEST(Callbacks, AnExceptionLeavesTheOthersForTheNextCall) {
  std::string seen;
  post_callback(std::this_thread::get_id(), [] { throw std::runtime_error("a callback"); });
  post_callback(std::this_thread::get_id(), [&] { seen += "b"; });
  EXPECT_THROW(run_callbacks(), std::runtime_error);
  EXPECT_EQ(seen, "");
  run_callbacks();
  EXPECT_EQ(seen, "b");
}

// Completes its work at the n-th poll.
class After : public Pollable {
 public:
  After(int polls, int patience) : left_(polls), patience_(patience) {}
  bool poll(std::chrono::nanoseconds) override {
    if (--left_ == 0) done.set(Done{});
    return left_ % 2 == 0;
  }
  std::chrono::seconds patience() const override { return std::chrono::seconds(patience_); }
  Completion<Done> done;

 private:
  int left_, patience_;
};

TEST(Wait, PollsUntilItIsDone) {
  After source(5, 600);
  wait_for(source, source.done, "the work");
  EXPECT_TRUE(source.done.ready());
}

TEST(Wait, RunsCallbacks) {
  After source(2, 600);
  bool ran = false;
  post_callback(std::this_thread::get_id(), [&] { ran = true; });
  wait_for(source, source.done, "the work");
  EXPECT_TRUE(ran);
}

// Patience is for one piece of work, not for all: together the pieces take longer. A machine that
// is busy may delay each of them by two seconds.
TEST(Wait, IsPatientAgainWhenSomethingWasCompleted) {
  class Slow : public Pollable {
   public:
    bool poll(std::chrono::nanoseconds) override {
      const auto now = std::chrono::steady_clock::now();
      if (now < next_) return false;
      next_ = now + std::chrono::seconds(1);
      if (++pieces_ == 5) done.set(Done{});
      return true;
    }
    std::chrono::seconds patience() const override { return std::chrono::seconds(3); }
    Completion<Done> done;

   private:
    std::chrono::steady_clock::time_point next_;
    int pieces_ = 0;
  };
  Slow source;
  EXPECT_NO_THROW(wait_for(source, source.done, "the work"));
}

TEST(Wait, HasAnEnd) {
  After source(-1, 0);
  try {
    wait_for(source, source.done, "the work");
    FAIL();
  } catch (const DeviceError& e) {
    EXPECT_STREQ(e.what(), "webgpu: the device hangs: the work took longer than 0 s");
  }
}

}  // namespace
}  // namespace tensorgrad
