// What a run of `tg train text` is: the settings that config.json keeps. Some of them a run may go
// on with changed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "command.h"
#include "tensorgrad/text_model.h"
#include "tensorgrad/tokenizer.h"
#include "tensorgrad/trainer.h"

namespace tensorgrad::tool {

struct TextSettings {
  std::string file;
  TextModelConfig model;
  std::string tokenizer = "bpe";  // bpe, bytes, chars, a folder with vocab.json and merges.txt, or
                                  // a run's tokenizer.json
  std::int64_t vocab = 512;       // of byte pairs learned from the text
  std::int64_t batch = 8, steps = 600;
  int accumulate = 1;
  double lr = 2e-3, weight_decay = 0.1, validation = 0.1;
  std::uint32_t seed = 0;
  std::string device = "auto";
  // Steps between checkpoints, and between looks at the validation part; 0: a twentieth and a tenth
  // of all.
  std::int64_t save_every = 0, validate_every = 0;
  int keep = 3;               // checkpoints
  std::int64_t sample = 120;  // tokens of each sample; 0: none
  std::string prompt = "\n";  // of samples

  // A UserError where it cannot be written down.
  std::string to_json() const;
  // A UserError that begins with `name` for what is not such a config.
  static TextSettings from_json(const std::string& text, const std::string& name);
  TrainerOptions trainer(const DeviceOptions& where) const;
};

// The tokenizer of the settings: read, or learned from the part of the file that is trained on.
Tokenizer make_tokenizer(const TextSettings& settings);

// From a folder with vocab.json and merges.txt, or a file that a run keeps.
Tokenizer read_tokenizer(const std::filesystem::path& path);

}  // namespace tensorgrad::tool
