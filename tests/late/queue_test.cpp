// The queue of a model, and the turn.
#include "compile/queue.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <thread>

#include "support/turn.h"
#include "tests/support/error_of.h"

namespace tensorgrad::detail {
namespace {

struct Log {
  std::string text;
  Task task(const std::string& name, int calls) {
    return {[this, name, left = calls]() mutable {
              text += name;
              return --left == 0;
            },
            [this, name](const std::exception_ptr&) { text += "!" + name; }};
  }
};

TEST(Queue, EachTaskIsCalledUntilItIsFinished) {
  Log log;
  Queue queue;
  queue.add(log.task("a", 2));
  queue.add(log.task("b", 1));
  EXPECT_FALSE(queue.advance());  // not finished
  EXPECT_EQ(log.text, "a");
  EXPECT_TRUE(queue.advance());
  EXPECT_TRUE(queue.advance());
  EXPECT_EQ(log.text, "aab");
  EXPECT_TRUE(queue.empty());
  EXPECT_FALSE(queue.advance());
}

TEST(Queue, ATaskMayPutOthersBeforeItself) {
  Log log;
  Queue queue;
  int calls = 0;
  queue.add({[&] {
               log.text += "a";
               if (++calls == 1) queue.add_first(log.task("b", 2));
               return calls == 2;
             },
             {}});
  queue.add(log.task("c", 1));
  for (int i = 0; i < 10 && !queue.empty(); ++i) queue.advance();
  EXPECT_EQ(log.text, "abbac");
}

TEST(Queue, AnExceptionIsTheErrorOfItsTaskAlone) {
  Log log;
  Queue queue;
  queue.add({[]() -> bool { throw std::runtime_error("mine"); },
             [&](const std::exception_ptr& error) {
               try {
                 std::rethrow_exception(error);
               } catch (const std::runtime_error& e) {
                 log.text += e.what();
               }
             }});
  queue.add(log.task("b", 1));
  while (queue.advance()) {
  }
  EXPECT_EQ(log.text, "mineb");
}

TEST(Queue, AbandonEndsAll) {
  Log log;
  Queue queue;
  queue.add(log.task("a", 2));
  queue.add(log.task("b", 1));
  queue.advance();
  queue.abandon(std::make_exception_ptr(std::runtime_error("gone")));
  EXPECT_EQ(log.text, "a!a!b");
  EXPECT_TRUE(queue.empty());
}

TEST(Queue, ASequenceStartsEachStepWhenTheOneBeforeIsDone) {
  const Completion<Done> first;
  std::string text;
  Task task = sequence(
      {[&] {
         text += "1";
         return first;
       },
       [&] {
         text += "2";
         return Completion<Done>(Done{});
       }},
      [&] { text += "end"; }, [](const std::exception_ptr&) {});
  EXPECT_FALSE(task.advance());
  EXPECT_FALSE(task.advance());
  EXPECT_EQ(text, "1");
  first.set(Done{});
  EXPECT_TRUE(task.advance());
  EXPECT_EQ(text, "12end");
}

TEST(Turn, ThrowsForItsHolderAndBlocksTheOthers) {
  Turn turn;
  int counted = 0;
  {
    const std::lock_guard lock(turn);
    EXPECT_TRUE(turn.is_mine());
    EXPECT_EQ(error_of([&] { turn.lock(); }).substr(0, 53),
              "a callback that reports progress, or a learning-rate ");
  }
  EXPECT_FALSE(turn.is_mine());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        const std::lock_guard lock(turn);
        ++counted;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counted, 4000);
}

}  // namespace
}  // namespace tensorgrad::detail
