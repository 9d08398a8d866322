// The training loop of `tg train text`: steps, and now and then a line, a look at the validation
// part, a sample, a checkpoint.
#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

#include "interrupt.h"
#include "progress.h"
#include "run_folder.h"
#include "tensorgrad/trainer.h"
#include "text_settings.h"

namespace tensorgrad::tool {

class TextRun {
 public:
  // Goes on from `last` if there is one. Nothing is written but the cache of the tokens.
  TextRun(const TextSettings& settings, const DeviceOptions& where, const RunFolder& folder,
          bool json, const std::optional<CheckpointFolder::Found>& last);

  // All steps, or until somebody wants it to stop. Returns the exit code.
  int train();

 private:
  std::int64_t log_every() const;
  std::int64_t validate_every() const;
  std::int64_t save_every() const;
  std::int64_t tokens_per_step() const {
    return settings_.batch * settings_.accumulate * settings_.model.context;
  }
  void write_settings();
  void describe();
  void record(const Json& line);
  // Steps until the last one or until somebody stops it.
  void make_steps(const Interrupt& interrupt, Progress& progress);
  void report(const Progress& progress, std::int64_t step);
  void show(Progress& progress, std::int64_t step);
  Validation validate(std::int64_t tokens);
  void say_sample();
  void save();
  Json done(bool stopped) const;
  int say_finished_before();
  int stop(const Interrupt& interrupt);
  int finish(double seconds);

  TextSettings settings_;
  RunFolder folder_;
  bool json_;
  std::FILE* out_;
  Tokenizer tokenizer_;
  Trainer trainer_;
  CheckpointFolder checkpoints_;
  std::optional<RunLog> log_;
  std::optional<double> validation_;  // the last one
  std::int64_t saved_ = -1;           // step of the newest checkpoint
  StepReport report_;                 // the last one that was read
  double unigram_ = 0;
};

}  // namespace tensorgrad::tool
