// The training loop of `tg train text`: steps, and periodically a log line, a validation, a sample,
// a checkpoint.
#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "compressed.h"
#include "interrupt.h"
#include "progress.h"
#include "run_folder.h"
#include "tensorgrad/trainer.h"
#include "text_settings.h"

namespace tensorgrad::tool {

class TextRun {
 public:
  // Resumes from `last` if there is one. Writes nothing but the token cache.
  TextRun(const TextSettings& settings, const DeviceOptions& where, const RunFolder& folder,
          bool json, const std::optional<CheckpointFolder::Found>& last);

  // Makes all steps, or stops early on request. `planned`: the total steps of the run before the
  // settings changed them. Returns the exit code.
  int train(std::int64_t planned);

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
  // Makes steps until the last one or until an interrupt.
  void make_steps(const Interrupt& interrupt, Progress& progress);
  void report(Progress& progress, std::int64_t step);
  void show(Progress& progress, std::int64_t step);
  // Measures a point of the validation curve, always over the same tokens.
  void validate();
  Json validation_line(const char* event, const Validation& of) const;
  void measure_final();
  void say_sample();
  void save();
  Json done(bool stopped, const std::string& sha256) const;
  int say_no_steps_left(std::int64_t planned);
  int stop(const Interrupt& interrupt);
  int finish(double seconds);
  double bits_per_byte(double loss) const;
  std::vector<CompressedText> compare_with_compressors() const;

  TextSettings settings_;
  RunFolder folder_;
  bool json_;
  std::FILE* out_;
  Tokenizer tokenizer_;
  Trainer trainer_;
  CheckpointFolder checkpoints_;
  std::optional<RunLog> log_;
  std::filesystem::path from_;            // the checkpoint that it resumed from
  std::int64_t first_ = 0;                // steps made before this process
  std::optional<Validation> validation_;  // the last measurement
  std::int64_t validation_step_ = 0;      // step of the last measurement
  std::int64_t saved_ = -1;               // step of the newest checkpoint
  StepReport report_;                     // the last report that was read
  double speed_ = 0;                      // tokens per second up to the last line of the log
  double unigram_ = 0;
};

}  // namespace tensorgrad::tool
