// Generates text from a trained model, token by token. The model keeps a recurrent state or a
// key-value cache.
//   tg::Generator model(tg::load_checkpoint("model.safetensors"));
//   const std::string text = tg::generate(model, "Once upon", {.tokens = 100});
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
#include "tensorgrad/compile.h"
#include "tensorgrad/text_model.h"
#include "tensorgrad/tokenizer.h"

namespace tensorgrad {

// How the next token is sampled. Applied in this order: repetition penalty, temperature, top-k,
// top-p, min-p.
struct SamplingOptions {
  float temperature = 0.8f;  // 0: always the most likely token
  int top_k = 0;             // keep this many of the most likely tokens; 0: all
  float top_p = 1;           // keep the most likely tokens that together reach this probability
  float min_p = 0;           // drop tokens less likely than this fraction of the most likely
  float repetition_penalty =
      1;  // divides positive logits of tokens seen before and multiplies negative ones
  std::uint32_t seed = 0;
};

// Samples tokens. The same options and logits give the same tokens.
class Sampler {
 public:
  explicit Sampler(const SamplingOptions& options);
  // Returns the id of the next token. The repetition penalty applies to the tokens in `seen`.
  std::int32_t pick(std::span<const float> logits, std::span<const std::int32_t> seen = {});

 private:
  SamplingOptions options_;
  std::uint32_t drawn_ = 0;
};

struct GeneratorOptions {
  std::string device = "auto";
  int threads = 0;
  std::vector<std::string> without = {};
  std::int64_t capacity =
      0;  // positions in the key-value cache; 0: the context that the model was trained with
  CompileCallback progress = {};  // reports kernel compilation, see progress.h
};

struct GenerateOptions {
  std::int64_t tokens = 200;
  float temperature = 0.8f;
  int top_k = 0;
  float top_p = 1, min_p = 0, repetition_penalty = 1;
  std::uint32_t seed = 0;
  std::vector<std::string> stop = {};  // stops before any of these texts
  // Receives each piece of text as it is generated: whole characters, and nothing that may be the
  // start of a stop text. Return false to stop.
  std::function<bool(std::string_view piece)> on_text = {};
};

namespace detail {
class TextProgram;
class Listener;
}  // namespace detail

// A model that reads tokens and predicts the next one. Its memory is plain arrays, which you can
// save and restore.
class Generator {
 public:
  // The checkpoint must contain a config and a tokenizer. The tokenizer may have fewer tokens than
  // the model: the others are never generated.
  explicit Generator(const Checkpoint& checkpoint, const GeneratorOptions& options = {});
  // Frees each array of the checkpoint once it is on the device:
  //   tg::Generator model(tg::load_checkpoint(path, tg::CheckpointPart::model));
  explicit Generator(Checkpoint&& checkpoint, const GeneratorOptions& options = {});
  // Like the constructors, and does not block.
  static Future<Generator> make_async(Checkpoint checkpoint, const GeneratorOptions& options = {});
  ~Generator();
  Generator(Generator&&) noexcept;
  Generator& operator=(Generator&&) noexcept;

  const Tokenizer& tokenizer() const;
  const TextModelConfig& config() const;
  std::string device() const;
  int threads() const;

  // Reads tokens and returns the logits of the next one, one for each token of the tokenizer. If
  // the key-value cache is full, it is emptied, and the later half of its tokens is read again.
  std::vector<float> listen(std::span<const std::int32_t> ids);
  // Like listen(), and does not block. Reads one token for each poll(). Calls take their turn, and
  // fail if the generator is destroyed first. Until the last has finished, use only calls that end
  // in _async.
  Future<std::vector<float>> listen_async(std::span<const std::int32_t> ids);
  // Like generate(), and does not block.
  Future<std::string> generate_async(std::string_view prompt, const GenerateOptions& options = {});
  // Clears the memory: the next token is the first one.
  void forget();
  // Returns the tokens read since the start or the last forget().
  std::span<const std::int32_t> heard() const;
  // Returns the memory; remember() restores it.
  NamedArrays memory() const;
  void remember(const NamedArrays& memory, std::span<const std::int32_t> heard);

  // For Trainer::generator(), which shares parameters that are in training.
  explicit Generator(std::shared_ptr<detail::Listener> own);

 private:
  detail::Listener& own() const;
  std::shared_ptr<detail::Listener> own_;
};

// Reads the prompt, generates tokens and returns the new text. Continues after everything that the
// model read before. An empty prompt is read as a line break, or as token 0 if the tokenizer has no
// line break.
std::string generate(Generator& model, std::string_view prompt,
                     const GenerateOptions& options = {});

}  // namespace tensorgrad
