// Queue: what the programs of a model were asked to do, in order. Nothing in it waits: a task that
// cannot go on is called again after the next poll. Its owner locks.
#pragma once

#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include "tensorgrad/completion.h"

namespace tensorgrad::detail {

struct Task {
  // Does what can be done by now. Returns true when the task is finished.
  std::function<bool()> advance;
  // Receives the exception of `advance`, or that of Queue::abandon().
  std::function<void(const std::exception_ptr&)> on_error;
};

// A task of several steps. Each starts when the one before it is done.
using TaskStep = std::function<Completion<Done>()>;
Task sequence(std::vector<TaskStep> steps, std::function<void()> finish,
              std::function<void(const std::exception_ptr&)> on_error);

class Queue {
 public:
  void add(Task task);
  // Before all others, also before one that has begun.
  void add_first(Task task);
  // Lets the first task go on. Returns false if that changed nothing: it is not finished, and still
  // the first.
  bool advance();
  bool empty() const { return tasks_.empty(); }
  // Ends all tasks with this error.
  void abandon(const std::exception_ptr& error);

 private:
  std::deque<std::shared_ptr<Task>> tasks_;
};

}  // namespace tensorgrad::detail
