// The settings of a `tg train text` run, which config.json stores. Some may change when the run is
// resumed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "command.h"
#include "tensorgrad/text_model.h"
#include "tensorgrad/tokenizer.h"
#include "tensorgrad/trainer.h"

namespace tensorgrad::tool {

// The defaults are the best settings found in docs/notes/text_search.md.
struct TextSettings {
  std::string file;
  TextModelConfig model{.positions = Positions::rotary};
  std::string tokenizer = "bpe";  // bpe, bytes, chars, a folder with vocab.json and merges.txt, or
                                  // a run's tokenizer.json
  std::int64_t vocab = 1024;      // of byte pairs learned from the text
  std::int64_t batch = 8, steps = 2000;
  int accumulate = 1;
  double lr = 4e-3, last_lr_share = 0, weight_decay = 0.5, validation = 0.1;
  std::int64_t warmup = 0;  // steps; 0: a twentieth of all, at most 200
  LrSchedule lr_schedule = LrSchedule::linear;
  std::uint32_t seed = 0;
  std::string device = "auto";
  // Steps between checkpoints, and between validations; 0: a twentieth and a tenth of all.
  std::int64_t save_every = 0, validate_every = 0;
  int keep = 3;               // checkpoints
  std::int64_t sample = 120;  // tokens of each sample; 0: none
  std::string prompt = "\n";  // of samples

  // Throws a UserError if the settings cannot be written as JSON.
  std::string to_json() const;
  // Throws a UserError that begins with `name` if the text is not such a config.
  static TextSettings from_json(const std::string& text, const std::string& name);
  TrainerOptions trainer(const DeviceOptions& where) const;
};

// The tokenizer of the settings: read from a file, or learned from the training part of the text.
Tokenizer make_tokenizer(const TextSettings& settings);

// Reads a folder with vocab.json and merges.txt, or a run's tokenizer file.
Tokenizer read_tokenizer(const std::filesystem::path& path);

}  // namespace tensorgrad::tool
