// Tokens on the disk: the ids of a text, and behind them a footer that says which text, tokenizer
// and cut they are of.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>

#include "support/file.h"
#include "support/sha256.h"
#include "tensorgrad/dataset.h"

namespace tensorgrad {

class Tokens::Source {
 public:
  virtual ~Source() = default;
  // ids[begin, begin + out.size()), which are there.
  virtual void read(std::int64_t begin, std::span<std::int32_t> out) const = 0;
};

namespace io {

// What is known about the two parts of a text without looking at their tokens.
struct Parts {
  std::int64_t training = 0, validation = 0;              // tokens
  std::int64_t training_bytes = 0, validation_bytes = 0;  // of the text
  std::string fingerprint;
};

struct CachedTokens {
  nlohmann::ordered_json origin;
  int width = 4;  // bytes of an id
  Parts parts;
};

// The fingerprint of tokens that come in order, some at a time.
class Fingerprint {
 public:
  void add(std::span<const std::int32_t> ids) { sha_.update(std::as_bytes(ids)); }
  // `training`: where the tokens are cut.
  std::string finish(std::int64_t training) {
    sha_.update(std::as_bytes(std::span(&training, 1)));
    return sha_.finish();
  }

 private:
  Sha256 sha_;
};

// Nothing if there is no cache, or one that is not whole and as it was written.
std::optional<CachedTokens> read_token_cache(const std::filesystem::path& path);
std::shared_ptr<const Tokens::Source> open_token_cache(const std::filesystem::path& path,
                                                       int width);

// Written in order, some ids at a time; there only once it is finished.
class TokenCacheWriter {
 public:
  TokenCacheWriter(const std::filesystem::path& path, std::int64_t vocab);
  int width() const { return width_; }
  void add(std::span<const std::int32_t> ids);
  void finish(const CachedTokens& cached);

 private:
  AtomicFile file_;
  int width_;
};

}  // namespace io
}  // namespace tensorgrad
