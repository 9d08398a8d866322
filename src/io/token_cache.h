// Token cache files: the ids of a text, then a footer that identifies the text, the tokenizer and
// the cut.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
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
  // Reads ids[begin, begin + out.size()), which must exist.
  virtual void read(std::int64_t begin, std::span<std::int32_t> out) const = 0;
};

namespace io {

// Facts about the training and validation parts that are known without reading tokens.
struct Parts {
  std::int64_t training = 0, validation = 0;              // tokens
  std::int64_t training_bytes = 0, validation_bytes = 0;  // bytes of the text
  std::string fingerprint;
};

struct CachedTokens {
  std::string origin;  // JSON that identifies the text, the tokenizer and the cut
  int width = 4;       // bytes per id
  Parts parts;
};

// The fingerprint of tokens, computed incrementally.
class Fingerprint {
 public:
  void add(std::span<const std::int32_t> ids) { sha_.update(std::as_bytes(ids)); }
  // `training`: number of training tokens, where the cut is.
  std::string finish(std::int64_t training) {
    sha_.update(std::as_bytes(std::span(&training, 1)));
    return sha_.finish();
  }

 private:
  Sha256 sha_;
};

// Returns nothing if there is no cache, or if it is incomplete or altered.
std::optional<CachedTokens> read_token_cache(const std::filesystem::path& path);
std::shared_ptr<const Tokens::Source> open_token_cache(const std::filesystem::path& path,
                                                       int width);

// Writes ids incrementally, in order. The file appears only once it is finished.
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
