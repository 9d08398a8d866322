// TrainingProgram: a program whose runs are steps. It has an optimizer, so its runs update the
// state of the model, and count.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compile/program.h"

namespace tensorgrad::detail {

class TrainingProgram final : public Program {
 public:
  TrainingProgram(Driver& driver, const TrainingOptions& options, Request request,
                  const trace::Source& source);

  std::vector<TaskStep> compile_steps() override;

  // Learns which steps failed so far, even if nobody reads their results. The failure is reported
  // by the next call that runs something.
  Future<Done> notice_async();
  // Done when all steps are; the error is that of a failed one.
  Future<Done> wait_async();
  Future<NamedArrays> optimizer_state_async();
  // Writes both, or neither if one of them is refused. Parameters may be null. restore() blocks,
  // and copies nothing.
  Future<Done> restore_async(const NamedArrays* parameters, const NamedArrays& optimizer);
  void restore(const NamedArrays* parameters, const NamedArrays& optimizer);
  void reset(std::optional<std::uint32_t> seed);
  void reset_optimizer();
  void set_lr(Schedule lr);
  // The learning rate of the next step, behind those that are queued.
  double lr() const;

  std::shared_ptr<Failure> judge(const Status& status, std::int64_t step,
                                 const std::shared_ptr<Failure>& failure) override;

 private:
  Kind next_kind(bool captures) const override;
  void before_submit() override;
  std::int64_t after_submit() override;
  std::int64_t runs_until(std::int64_t main) const override {
    return main * accumulate_ - driver_.steps() % accumulate_;
  }

  struct Rates {
    Schedule schedule;
    std::int64_t start = 0;  // updates made before it was set
  };
  void check(const NamedArrays* parameters, const NamedArrays& optimizer) const;
  void write(const NamedArrays* parameters, const NamedArrays& optimizer);
  void forget();  // failures
  void mark_stale_sums();
  std::vector<TaskStep> notice_steps();
  std::int64_t next_update() const { return state().steps / accumulate_ + 1; }
  ModelState& state() const { return driver_.state(); }
  void found_bad_id(const runtime::IndexFailure& bad, std::int64_t step,
                    const std::shared_ptr<Failure>& failure);
  void found_non_finite(std::int64_t step, bool last, const std::shared_ptr<Failure>& failure);
  // Sets the text of the error of the last step, which was not finite: it names the op that made
  // the first bad value. Its inputs and the parameters still exist.
  std::vector<TaskStep> diagnose_steps(const std::shared_ptr<std::string>& text);

  int accumulate_;
  NonFinite non_finite_;
  bool updates_;  // false: NoOptimizer
  Schedule lr_;
  std::deque<Rates> queued_rates_;  // set_lr() calls that are queued
  bool stale_sums_ = false;         // the next round starts with sums that do not count
};

}  // namespace tensorgrad::detail
