// Text from a trained model, token by token, from its recurrent state or its cache of keys and values.
//   tg::Generator model(tg::load_checkpoint("model.safetensors"));
//   const std::string text = tg::generate(model, "Once upon a time", {.tokens = 100, .temperature = 0.8f});
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensorgrad/array.h"
#include "tensorgrad/checkpoint.h"
#include "tensorgrad/text_model.h"
#include "tensorgrad/tokenizer.h"

namespace tensorgrad {

// How the next token is drawn. The steps are taken in this order: repetition penalty, temperature, top-k, top-p, min-p.
struct SamplingOptions {
  float temperature = 0.8f;       // 0: always the likeliest
  int top_k = 0;                  // only so many of the likeliest; 0: all
  float top_p = 1;                // only the likeliest that together have this probability
  float min_p = 0;                // only those with this share of the likeliest one's probability
  float repetition_penalty = 1;   // logits of tokens seen are divided by it if positive, else multiplied
  std::uint32_t seed = 0;
};

// Draws tokens. The same options and logits give the same tokens.
class Sampler {
 public:
  explicit Sampler(const SamplingOptions& options);
  // `seen` are the tokens that the repetition penalty is for.
  std::int32_t pick(std::span<const float> logits, std::span<const std::int32_t> seen = {});

 private:
  SamplingOptions options_;
  std::uint32_t drawn_ = 0;
};

struct GeneratorOptions {
  std::string device = "auto";
  int threads = 0;
  std::vector<std::string> without = {};
  std::int64_t capacity = 0;  // of the cache of attention; 0: the context that the model was trained with
};

namespace detail {
class TextProgram;
}

// A model that listens and goes on. What it remembers are plain numbers, which can be kept and put back.
class Generator {
 public:
  // The checkpoint must say its config and its tokenizer, which may have fewer tokens than the model: the rest is never
  // said.
  explicit Generator(const Checkpoint& checkpoint, const GeneratorOptions& options = {});
  ~Generator();
  Generator(Generator&&) noexcept;
  Generator& operator=(Generator&&) noexcept;

  const Tokenizer& tokenizer() const;
  const TextModelConfig& config() const;
  std::string device() const;
  int threads() const;

  // Listens to tokens; returns what the model says about the next one, a logit for each token of the tokenizer. Where a cache is full, the later half of
  // what it holds is read again into an empty one.
  std::vector<float> listen(std::span<const std::int32_t> ids);
  void forget();
  // Tokens listened to since the model forgot.
  std::span<const std::int32_t> heard() const;
  // What it remembers, and back.
  NamedArrays memory() const;
  void remember(const NamedArrays& memory, std::span<const std::int32_t> heard);

 private:
  friend class Trainer;
  // Over parameters in training.
  Generator(std::shared_ptr<detail::TextProgram> program, Tokenizer tokenizer);
  struct Own;
  std::unique_ptr<Own> own_;
};

struct GenerateOptions {
  std::int64_t tokens = 200;
  float temperature = 0.8f;
  int top_k = 0;
  float top_p = 1, min_p = 0, repetition_penalty = 1;
  std::uint32_t seed = 0;
  std::vector<std::string> stop = {};  // ends before any of these
  // Gets each piece as it comes: whole characters, and nothing that a stop text may begin with. False ends.
  std::function<bool(std::string_view piece)> on_text = {};
};

// Listens to the prompt, after what the model heard before, and goes on. Returns what it added. An empty prompt at the
// very beginning is a line break, or the first token there is.
std::string generate(Generator& model, std::string_view prompt, const GenerateOptions& options = {});

}  // namespace tensorgrad
