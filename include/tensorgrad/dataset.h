// Text as training data: tokens in a file or in memory, cut into a part to learn from and a part to check with, and
// batches of windows from them.
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

// A sequence of token ids, in memory or in a file, of which only what is asked for is read.
class Tokens {
 public:
  explicit Tokens(std::vector<std::int32_t> ids);
  std::int64_t size() const;
  // ids[begin, begin + out.size()).
  void read(std::int64_t begin, std::span<std::int32_t> out) const;

  class Source;  // where they are; for the library itself

 private:
  friend class TextData;
  Tokens(std::shared_ptr<const Source> source, std::int64_t begin, std::int64_t size);
  std::shared_ptr<const Source> source_;
  std::int64_t begin_ = 0, size_ = 0;
};

// Consecutive tokens and the ones that follow each of them, [B, T] both.
struct WindowBatch {
  std::vector<std::int32_t> tokens, targets;
};

struct WindowOptions {
  std::int64_t batch = 8, length = 128;
  std::uint32_t seed = 0;
};

// The batch that begins with the window of that number. Every window of the text comes once before any comes again, in
// an order that depends on the seed; each round cuts the text elsewhere. So the number is all there is to remember.
WindowBatch windows(const Tokens& tokens, const WindowOptions& options, std::int64_t position);
// How many windows a round has; an error when the text is too short for one.
std::int64_t windows_per_round(const Tokens& tokens, std::int64_t length);

struct TextDataOptions {
  double validation = 0.1;             // the share at the end of the text that is not trained on
  std::filesystem::path cache = {};    // a file that keeps the tokens; empty: in memory
  // Of the data that it has to be; empty: any. A cache with it serves without the text; anything else is an error, and
  // the cache stays as it is.
  std::string fingerprint = {};
  std::function<void(double done)> progress = {};  // 0 to 1, now and then
};

namespace io {
struct Parts;
}

// The validation part is the end of the text, cut at a line where there is one nearby; no window reaches across.
class TextData {
 public:
  // Encodes a file of any size, piece by piece; the cache is used again as long as file and tokenizer stay the same.
  static TextData read(const std::filesystem::path& path, const Tokenizer& tokenizer, const TextDataOptions& options = {});
  static TextData of(std::string_view text, const Tokenizer& tokenizer, const TextDataOptions& options = {});

  const Tokens& training() const { return training_; }
  const Tokens& validation() const { return validation_; }
  // Bytes per part, to compare tokenizers by bits per byte.
  std::int64_t training_bytes() const { return training_bytes_; }
  std::int64_t validation_bytes() const { return validation_bytes_; }
  // SHA-256 of all tokens and of where they are cut: equal data, equal training.
  const std::string& fingerprint() const { return fingerprint_; }

 private:
  static TextData made(std::shared_ptr<const Tokens::Source> source, const io::Parts& parts);
  TextData(Tokens training, Tokens validation) : training_(std::move(training)), validation_(std::move(validation)) {}
  Tokens training_, validation_;
  std::int64_t training_bytes_ = 0, validation_bytes_ = 0;
  std::string fingerprint_;
};

// Where the validation part of a file begins, in bytes: for who wants to learn a tokenizer from the rest alone.
std::int64_t training_bytes_of(const std::filesystem::path& path, double validation);

// Mean negative log-likelihood per token of `of` under the frequencies of tokens in `from`: what a model reaches that
// knows nothing but how often each token occurs.
double unigram_loss(const Tokens& from, const Tokens& of, std::int64_t vocab);

}  // namespace tensorgrad
