#include "compile/queue.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace tensorgrad::detail {

Task sequence(std::vector<TaskStep> steps, std::function<void()> finish,
              std::function<void(const std::exception_ptr&)> on_error) {
  struct Progress {
    std::vector<TaskStep> steps;
    std::size_t next = 0;
    std::optional<Completion<Done>> current;
  };
  const auto progress = std::make_shared<Progress>();
  progress->steps = std::move(steps);
  const auto advance = [progress, finish = std::move(finish)] {
    Progress& p = *progress;
    for (;;) {
      if (p.current) {
        if (!p.current->ready()) return false;
        p.current->get();
        p.current.reset();
      }
      if (p.next == p.steps.size()) break;
      p.current = p.steps[p.next++]();
    }
    finish();
    return true;
  };
  return {advance, std::move(on_error)};
}

void Queue::add(Task task) { tasks_.push_back(std::make_shared<Task>(std::move(task))); }

void Queue::add_first(Task task) { tasks_.push_front(std::make_shared<Task>(std::move(task))); }

bool Queue::advance() {
  if (tasks_.empty()) return false;
  const std::shared_ptr<Task> task = tasks_.front();
  bool finished = true;
  try {
    finished = task->advance();
  } catch (...) {
    task->on_error(std::current_exception());
  }
  if (finished) {
    if (tasks_.front() == task)
      tasks_.pop_front();
    else
      std::erase(tasks_, task);
    return true;
  }
  return tasks_.front() != task;
}

void Queue::abandon(const std::exception_ptr& error) {
  for (const auto& task : std::exchange(tasks_, {})) task->on_error(error);
}

}  // namespace tensorgrad::detail
