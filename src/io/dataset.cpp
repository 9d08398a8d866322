// Tokens in memory or in a file, the cut between training and validation, and the loss of a model
// that only counts tokens. Files are read and encoded piece by piece, and the ids go to a cache
// file (token_cache.h), so that a text may be larger than memory.
#include "tensorgrad/dataset.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <system_error>

#include "io/token_cache.h"
#include "support/fail.h"
#include "support/file.h"
#include "support/integers.h"
#include "support/json_text.h"
#include "support/sha256.h"

namespace tensorgrad {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kPiece = std::size_t{1} << 20;  // bytes of text encoded at a time
constexpr std::int64_t kCutReach =
    std::int64_t{1} << 16;  // how far the cut may move from its nominal place to a line end

class MemorySource : public Tokens::Source {
 public:
  explicit MemorySource(std::vector<std::int32_t> ids) : ids_(std::move(ids)) {}
  void read(std::int64_t begin, std::span<std::int32_t> out) const override {
    std::copy_n(ids_.begin() + begin, out.size(), out.begin());
  }

 private:
  std::vector<std::int32_t> ids_;
};

void check_share(double validation) {
  if (!(validation >= 0 && validation < 1))
    user_error("TextData: validation must be at least 0 and below 1: {}", validation);
}

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

// A text with random access: a file, or memory.
struct Text {
  std::string name;
  std::int64_t size = 0;
  std::function<std::size_t(std::int64_t at, std::span<char> out)> read;
};

// The first byte of the validation part: after the line end nearest to the nominal place, or else
// at a character boundary.
std::int64_t cut_of(const Text& text, double validation) {
  if (validation == 0) return text.size;
  const auto wanted = static_cast<std::int64_t>(static_cast<double>(text.size) * (1 - validation));
  // Limits the search, so that both parts keep about the requested size.
  const std::int64_t reach = std::min(kCutReach, std::min(wanted, text.size - wanted) / 4);
  const std::int64_t from = std::max<std::int64_t>(0, wanted - reach),
                     to = std::min(text.size, wanted + std::max<std::int64_t>(reach, 4));
  std::string around(usize(to - from), '\0');
  around.resize(text.read(from, around));
  std::optional<std::int64_t> best;
  for (std::size_t i = 0; i + 1 < around.size(); ++i) {
    if (around[i] != '\n') continue;
    const std::int64_t at = from + static_cast<std::int64_t>(i) + 1;
    if (std::abs(at - wanted) <= reach &&
        (!best || std::abs(at - wanted) < std::abs(*best - wanted)))
      best = at;
  }
  if (best) return *best;
  std::int64_t at = wanted;
  while (at < to && continues_character(around[usize(at - from)])) ++at;
  return at;
}

// Calls use(ids, at) with the ids of bytes [begin, end), some at a time; `at` bytes are read by
// then.
template <class F>
void encode_part(const Text& text, const Tokenizer& tokenizer, std::int64_t begin, std::int64_t end,
                 F&& use) {
  std::string pending;
  std::vector<std::int32_t> ids;
  for (std::int64_t at = begin; at < end;) {
    // If a piece ends inside a token, the next round reads more.
    const std::size_t before = pending.size();
    const auto more =
        std::min<std::int64_t>(end - at, static_cast<std::int64_t>(std::max(kPiece, before)));
    pending.resize(before + usize(more));
    const std::size_t got = text.read(at, std::span(pending).subspan(before));
    if (got != usize(more)) user_error("{}: cannot read: it has become shorter", text.name);
    at += more;
    ids.clear();
    pending.erase(0, tokenizer.encode_some(pending, at == end, ids));
    use(std::span<const std::int32_t>(ids), at);
  }
}

// Encodes both parts in order; take(ids) receives all ids.
template <class F>
io::Parts encode_parts(const Text& text, const Tokenizer& tokenizer, const TextDataOptions& options,
                       F&& take) {
  const std::int64_t cut = cut_of(text, options.validation);
  io::Parts parts{.training_bytes = cut, .validation_bytes = text.size - cut};
  io::Fingerprint fingerprint;
  const auto part = [&](std::int64_t begin, std::int64_t end, std::int64_t& count) {
    encode_part(text, tokenizer, begin, end,
                [&](std::span<const std::int32_t> ids, std::int64_t at) {
                  fingerprint.add(ids);
                  count += static_cast<std::int64_t>(ids.size());
                  take(ids);
                  if (options.progress)
                    options.progress(static_cast<double>(at) / static_cast<double>(text.size));
                });
  };
  part(0, cut, parts.training);
  part(cut, text.size, parts.validation);
  parts.fingerprint = fingerprint.finish(parts.training);
  return parts;
}

std::string sha256_of(std::string_view text) {
  Sha256 sha;
  sha.update(std::as_bytes(std::span(text.data(), text.size())));
  return sha.finish();
}

// Identifies the text, the tokenizer and the cut of a cache: JSON, with the names in order.
std::string origin_of(const fs::path& path, const Text& text, const Tokenizer& tokenizer,
                      double validation) {
  std::error_code error;
  const auto modified = fs::last_write_time(path, error);
  const fs::path absolute = error ? fs::path() : fs::absolute(path, error);
  if (error) user_error("{}: cannot read: {}", path.string(), error.message());
  return JsonText()
      .begin('{')
      .field("bytes", text.size)
      .field("file", absolute.lexically_normal().string())
      .field("modified", static_cast<std::int64_t>(modified.time_since_epoch().count()))
      .field("tokenizer", sha256_of(tokenizer.to_json()))
      .field("validation", validation)
      .end('}')
      .take();
}

void check_fingerprint(const Text& text, const io::Parts& parts, const TextDataOptions& options) {
  if (!options.fingerprint.empty() && parts.fingerprint != options.fingerprint)
    user_error(
        "{}: not the text of the checkpoint: its content, its split or its tokenizer differs",
        text.name);
}

io::CachedTokens write_cache(const fs::path& path, const Text& text, const Tokenizer& tokenizer,
                             const TextDataOptions& options, const std::string& origin) {
  if (path.has_parent_path()) {
    std::error_code ignored;  // writing the file will report it
    fs::create_directories(path.parent_path(), ignored);
    remove_unfinished(path.parent_path());
  }
  io::TokenCacheWriter writer(path, tokenizer.vocab_size());
  io::CachedTokens cached{.origin = origin, .width = writer.width()};
  cached.parts = encode_parts(text, tokenizer, options,
                              [&](std::span<const std::int32_t> ids) { writer.add(ids); });
  check_fingerprint(text, cached.parts, options);
  writer.finish(cached);
  return cached;
}

Text text_file(const fs::path& path) {
  const auto file = std::make_shared<InputFile>(path);
  if (file->size() == 0) user_error("{}: the file is empty", path.string());
  return {path.string(), static_cast<std::int64_t>(file->size()),
          [file](std::int64_t at, std::span<char> out) {
            return file->read_some(static_cast<std::uint64_t>(at), out);
          }};
}

}  // namespace

// ---- Tokens

Tokens::Tokens(std::vector<std::int32_t> ids) : size_(static_cast<std::int64_t>(ids.size())) {
  source_ = std::make_shared<MemorySource>(std::move(ids));
}

Tokens::Tokens(std::shared_ptr<const Source> source, std::int64_t begin, std::int64_t size)
    : source_(std::move(source)), begin_(begin), size_(size) {}

std::int64_t Tokens::size() const { return size_; }

void Tokens::read(std::int64_t begin, std::span<std::int32_t> out) const {
  const auto count = static_cast<std::int64_t>(out.size());
  if (begin < 0 || begin > size_ || count > size_ - begin)
    user_error("Tokens: the range {} to {} is out of bounds: there are {} tokens", begin,
               begin + count, size_);
  source_->read(begin_ + begin, out);
}

// ---- TextData

TextData TextData::made(std::shared_ptr<const Tokens::Source> source, const io::Parts& parts) {
  TextData data(Tokens(source, 0, parts.training),
                Tokens(source, parts.training, parts.validation));
  data.training_bytes_ = parts.training_bytes, data.validation_bytes_ = parts.validation_bytes;
  data.fingerprint_ = parts.fingerprint;
  return data;
}

namespace {

struct Encoded {
  std::shared_ptr<const Tokens::Source> source;
  io::Parts parts;
};

Encoded in_memory(const Text& text, const Tokenizer& tokenizer, const TextDataOptions& options) {
  std::vector<std::int32_t> ids;
  io::Parts parts = encode_parts(text, tokenizer, options, [&](std::span<const std::int32_t> some) {
    ids.insert(ids.end(), some.begin(), some.end());
  });
  check_fingerprint(text, parts, options);
  return {std::make_shared<MemorySource>(std::move(ids)), std::move(parts)};
}

}  // namespace

TextData TextData::read(const fs::path& path, const Tokenizer& tokenizer,
                        const TextDataOptions& options) {
  check_share(options.validation);
  Encoded data;
  if (options.cache.empty()) {
    data = in_memory(text_file(path), tokenizer, options);
  } else {
    std::optional<io::CachedTokens> cached = io::read_token_cache(options.cache);
    // The text is not needed if the cached tokens have the expected fingerprint.
    const bool known =
        cached && !options.fingerprint.empty() && cached->parts.fingerprint == options.fingerprint;
    if (!known) {
      const Text text = text_file(path);
      const std::string origin = origin_of(path, text, tokenizer, options.validation);
      if (!cached || cached->origin != origin || !options.fingerprint.empty())
        cached = write_cache(options.cache, text, tokenizer, options, origin);
    }
    data = {io::open_token_cache(options.cache, cached->width), cached->parts};
  }
  return made(data.source, data.parts);
}

TextData TextData::of(std::string_view text, const Tokenizer& tokenizer,
                      const TextDataOptions& options) {
  check_share(options.validation);
  if (text.empty()) user_error("TextData: the text is empty");
  const Text memory{"text", static_cast<std::int64_t>(text.size()),
                    [text](std::int64_t at, std::span<char> out) {
                      const std::string_view part = text.substr(usize(at), out.size());
                      std::copy(part.begin(), part.end(), out.begin());
                      return part.size();
                    }};
  const Encoded data = in_memory(memory, tokenizer, options);
  return made(data.source, data.parts);
}

std::int64_t training_bytes_of(const fs::path& path, double validation) {
  check_share(validation);
  return cut_of(text_file(path), validation);
}

double unigram_loss(const Tokens& from, const Tokens& of, std::int64_t vocab) {
  const auto count = [vocab](const Tokens& tokens) {
    std::vector<std::int64_t> counts(usize(vocab));
    std::vector<std::int32_t> some;
    for (std::int64_t at = 0; at < tokens.size(); at += static_cast<std::int64_t>(some.size())) {
      some.resize(usize(std::min<std::int64_t>(kPiece, tokens.size() - at)));
      tokens.read(at, some);
      for (const std::int32_t id : some) ++counts.at(usize(id));
    }
    return counts;
  };
  if (of.size() == 0) return std::numeric_limits<double>::quiet_NaN();
  const std::vector<std::int64_t> seen = count(from), wanted = count(of);
  // Add-one smoothing, so that a token that never occurred is possible.
  const double total = static_cast<double>(from.size() + vocab);
  double sum = 0;
  for (std::size_t id = 0; id < seen.size(); ++id)
    sum -= static_cast<double>(wanted[id]) * std::log((static_cast<double>(seen[id]) + 1) / total);
  return sum / static_cast<double>(of.size());
}

}  // namespace tensorgrad
