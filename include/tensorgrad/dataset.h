// Text as training data: tokens in a file or in memory, split into a training and a validation
// part, and batches of windows from them.
//   const auto data = tg::TextData::read("book.txt", tg::Tokenizer::bytes());
//   const tg::WindowBatch batch = tg::windows(data.training(), {.batch = 8, .length = 128}, 0);
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensorgrad/tokenizer.h"

namespace tensorgrad {

// A sequence of token ids in memory or in a file. Reads from the file only what is asked for.
class Tokens {
 public:
  explicit Tokens(std::vector<std::int32_t> ids);
  std::int64_t size() const;
  // Copies ids[begin, begin + out.size()) into `out`.
  void read(std::int64_t begin, std::span<std::int32_t> out) const;

  class Source;  // where the ids are stored; internal

 private:
  friend class TextData;
  Tokens(std::shared_ptr<const Source> source, std::int64_t begin, std::int64_t size);
  std::shared_ptr<const Source> source_;
  std::int64_t begin_ = 0, size_ = 0;
};

// Consecutive tokens, and for each of them the token that follows. Both are [B, T].
struct WindowBatch {
  std::vector<std::int32_t> tokens, targets;
};

struct WindowOptions {
  std::int64_t batch = 8, length = 128;
  std::uint32_t seed = 0;
};

// Returns the batch that starts at window number `position`. Every window of the text occurs once
// per round, in an order that depends on the seed. Each round cuts the text at another offset. So
// to resume, only the position must be saved.
WindowBatch windows(const Tokens& tokens, const WindowOptions& options, std::int64_t position);
// Returns the number of windows in a round. Throws if the text is too short for one window.
std::int64_t windows_per_round(const Tokens& tokens, std::int64_t length);

struct TextDataOptions {
  double validation = 0.1;           // fraction at the end of the text that is not trained on
  std::filesystem::path cache = {};  // file that stores the tokens; empty: in memory
  // The expected fingerprint of the data; empty: any. If the cache has it, the text is not read. If
  // the text has another one, throws and does not change the cache.
  std::string fingerprint = {};
  std::function<void(double done)> progress = {};  // called now and then with 0 to 1
};

namespace io {
struct Parts;
}

// A tokenized text with a training and a validation part. The validation part is the end of the
// text. It starts at a line if one starts nearby. No window crosses the boundary.
class TextData {
 public:
  // Encodes a file of any size, piece by piece. Reuses the cache while file, tokenizer and
  // options.validation stay the same.
  static TextData read(const std::filesystem::path& path, const Tokenizer& tokenizer,
                       const TextDataOptions& options = {});
  // Encodes a text in memory.
  static TextData of(std::string_view text, const Tokenizer& tokenizer,
                     const TextDataOptions& options = {});

  const Tokens& training() const { return training_; }
  const Tokens& validation() const { return validation_; }
  // Return the bytes of each part, to compare tokenizers by bits per byte.
  std::int64_t training_bytes() const { return training_bytes_; }
  std::int64_t validation_bytes() const { return validation_bytes_; }
  // Returns the SHA-256 of all tokens and of the boundary: equal data gives equal training.
  const std::string& fingerprint() const { return fingerprint_; }

 private:
  static TextData made(std::shared_ptr<const Tokens::Source> source, const io::Parts& parts);
  TextData(Tokens training, Tokens validation)
      : training_(std::move(training)), validation_(std::move(validation)) {}
  Tokens training_, validation_;
  std::int64_t training_bytes_ = 0, validation_bytes_ = 0;
  std::string fingerprint_;
};

// Returns the byte at which the validation part of a file begins. Use it to train a tokenizer on
// the training part only.
std::int64_t training_bytes_of(const std::filesystem::path& path, double validation);

// Returns the mean negative log-likelihood per token of `of` under the token frequencies of `from`,
// with add-one smoothing. A model that knows only token frequencies reaches this loss.
double unigram_loss(const Tokens& from, const Tokens& of, std::int64_t vocab);

}  // namespace tensorgrad
