// One checkpoint: its metadata, and the digest that detects damage.
#include "tensorgrad/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "io/checkpoint_bytes.h"
#include "io/in_quotes.h"
#include "io/named.h"
#include "io/safetensors_layout.h"
#include "io/safetensors_source.h"
#include "support/file.h"
#include "support/sha256.h"
#include "tensorgrad/safetensors.h"

namespace tensorgrad::io {

namespace {

constexpr std::string_view kFormat = "tensorgrad checkpoint", kVersion = "1";
constexpr std::string_view kOptimizer = "optimizer/", kMore = "more.";
constexpr std::size_t kDigestPlace = kLengthBytes + kCheckpointFront.size();

constexpr std::string_view kNoDigest =
    "0000000000000000000000000000000000000000000000000000000000000000";
static_assert(kNoDigest.size() == kDigestDigits);

// ---- writing

SafetensorsLayout checkpoint_layout(const Checkpoint& checkpoint) {
  for (const auto& [what, value] :
       {std::pair("step", checkpoint.step), std::pair("position", checkpoint.position)})
    if (value < 0) user_error("{} must not be negative: {}", what, value);
  TensorList tensors;
  for (const auto& [name, array] : checkpoint.parameters) {
    if (name.starts_with(kOptimizer))
      user_error("parameter {}: names that begin with {} belong to the optimizer", in_quotes(name),
                 kOptimizer);
    tensors.emplace_back(name, &array);
  }
  for (const auto& [name, array] : checkpoint.optimizer)
    tensors.emplace_back(std::string(kOptimizer) + name, &array);

  Strings metadata = {{"format", std::string(kFormat)},
                      {"version", std::string(kVersion)},
                      {"sha256", std::string(kNoDigest)},
                      {"step", std::to_string(checkpoint.step)},
                      {"seed", std::to_string(checkpoint.seed)},
                      {"position", std::to_string(checkpoint.position)},
                      {"config", checkpoint.config},
                      {"tokenizer", checkpoint.tokenizer}};
  for (const auto& [key, value] : checkpoint.more)
    metadata.emplace_back(std::string(kMore) + key, value);

  SafetensorsLayout layout = lay_out(metadata, tensors);
  Sha256 sha;
  layout.pieces([&](std::span<const std::byte> piece) { sha.update(piece); });
  layout.front.replace(kDigestPlace, kDigestDigits, sha.finish());
  return layout;
}

// ---- reading

using Metadata = std::map<std::string, std::string>;

[[noreturn]] void damaged() {
  user_error(
      "damaged: its contents do not match its sha256\n  hint: it was truncated or changed after it "
      "was written");
}

const std::string& text(const Metadata& metadata, const char* key) {
  const auto found = metadata.find(key);
  if (found == metadata.end()) user_error("not a checkpoint: its metadata has no '{}'", key);
  return found->second;
}

template <class T>
T number(const Metadata& metadata, const char* key) {
  const std::string& digits = text(metadata, key);
  T value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() ||
      std::to_string(value) != digits || value < T{0})
    user_error("not a checkpoint: '{}' must be an integer from 0 to {}: {}", key,
               std::numeric_limits<T>::max(), in_quotes(digits));
  return value;
}

// Recognises a checkpoint even if one byte is altered: the byte cannot change both the format and
// these keys.
bool was_checkpoint(const Metadata& metadata) {
  const auto format = metadata.find("format");
  if (format != metadata.end() && format->second == kFormat) return true;
  const char* const kOurs[] = {"version",  "sha256", "step",     "seed",
                               "position", "config", "tokenizer"};
  return std::all_of(std::begin(kOurs), std::end(kOurs),
                     [&](const char* key) { return metadata.count(key) != 0; });
}

void check_version(const Metadata& metadata) {
  if (const std::string& version = text(metadata, "version"); version != kVersion)
    user_error(
        "unknown checkpoint version {}: only '{}' is supported\n  hint: was it written by a newer "
        "tensorgrad?",
        in_quotes(version), kVersion);
}

std::map<std::string, std::string> rest(const Metadata& metadata) {
  std::map<std::string, std::string> more;
  for (const auto& [key, value] : metadata)
    if (key.starts_with(kMore)) more.emplace(key.substr(kMore.size()), value);
  return more;
}

// Moves the entries of the optimizer out of `tensors`.
NamedArrays take_optimizer(NamedArrays& tensors) {
  NamedArrays optimizer;
  for (auto entry = tensors.lower_bound(std::string(kOptimizer)); entry != tensors.end();) {
    if (!entry->first.starts_with(kOptimizer)) break;
    auto taken = tensors.extract(entry++);
    taken.key().erase(0, kOptimizer.size());
    optimizer.insert(std::move(taken));
  }
  return optimizer;
}

// ---- the digest

// SHA-256 of a checkpoint whose bytes arrive in pieces. The digits of the digest are hashed as
// zeros.
class CheckpointSha {
 public:
  void add(std::string_view piece) {
    take(piece, kDigestPlace, [](std::string_view bytes, std::uint64_t) { return bytes; });
    take(piece, kDigestPlace + kDigestDigits, [](std::string_view bytes, std::uint64_t at) {
      return kNoDigest.substr(at - kDigestPlace, bytes.size());
    });
    sha_.update(std::as_bytes(std::span(piece.data(), piece.size())));
    at_ += piece.size();
  }
  std::string finish() { return sha_.finish(); }

 private:
  // Hashes the part of the piece before `end`, replaced by the result of `bytes_for`.
  template <class F>
  void take(std::string_view& piece, std::uint64_t end, F&& bytes_for) {
    if (at_ >= end || piece.empty()) return;  // a piece may end before the digits begin
    const auto part = piece.substr(0, end - at_);
    sha_.update(std::as_bytes(std::span(std::string_view(bytes_for(part, at_)))));
    at_ += part.size();
    piece.remove_prefix(part.size());
  }

  Sha256 sha_;
  std::uint64_t at_ = 0;
};

enum class Digest { none, right, wrong };  // none: the file does not begin like a checkpoint

struct Digested {
  TensorFile file;
  Digest digest;
};

// Returns the digits of a source that begins like a checkpoint; empty otherwise.
std::string digits_in(const ByteSource& source) {
  std::string front(std::min<std::uint64_t>(source.size, kDigestPlace + kDigestDigits), '\0');
  source.read(0, front);
  const std::size_t place = digest_place(front);
  return place == front.npos ? "" : front.substr(place, kDigestDigits);
}

std::string digest_of(const ByteSource& source) {
  CheckpointSha sha;
  std::string piece;
  for (std::uint64_t at = 0; at < source.size; at += piece.size()) {
    piece.resize(std::min<std::uint64_t>(source.size - at, 1 << 18));
    source.read(at, piece);
    sha.add(piece);
  }
  return sha.finish();
}

// Reads tensors and computes the digest in one pass.
Digested read_digested(const ByteSource& source, CheckpointPart part) {
  const std::string digits = digits_in(source);
  if (digits.empty()) return {read_tensors(source), Digest::none};
  TensorReading how;
  if (part == CheckpointPart::model)
    how.wanted = [](const std::string& name) { return !name.starts_with(kOptimizer); };
  CheckpointSha sha;
  how.seen = [&](std::span<const char> bytes) { sha.add({bytes.data(), bytes.size()}); };
  try {
    TensorFile file = read_tensors(source, how);
    return {std::move(file), sha.finish() == digits ? Digest::right : Digest::wrong};
  } catch (const ReadError&) {
    throw;
  } catch (const UserError&) {
    // Report damage rather than the rule that the damage broke.
    if (digest_of(source) != digits) damaged();
    throw;
  }
}

// Reads everything but the arrays.
Checkpoint without_arrays(const Metadata& metadata, Digest digest) {
  if (digest == Digest::wrong) damaged();
  if (digest == Digest::none && !was_checkpoint(metadata)) return {};
  check_version(metadata);
  if (digest == Digest::none) damaged();
  return {.step = number<std::int64_t>(metadata, "step"),
          .seed = number<std::uint32_t>(metadata, "seed"),
          .position = number<std::int64_t>(metadata, "position"),
          .tokenizer = text(metadata, "tokenizer"),
          .config = text(metadata, "config"),
          .more = rest(metadata)};
}

Checkpoint read_checkpoint(const ByteSource& source, CheckpointPart part) {
  Digested read = read_digested(source, part);
  Checkpoint checkpoint = without_arrays(read.file.metadata, read.digest);
  if (read.digest == Digest::right) checkpoint.optimizer = take_optimizer(read.file.tensors);
  checkpoint.parameters = std::move(read.file.tensors);
  return checkpoint;
}

}  // namespace

std::size_t digest_place(std::string_view bytes) {
  const bool ours = bytes.size() >= kDigestPlace + kDigestDigits &&
                    bytes.substr(kLengthBytes, kCheckpointFront.size()) == kCheckpointFront;
  return ours ? kDigestPlace : bytes.npos;
}

std::string checkpoint_digest(std::string_view bytes) { return digest_of(source_of(bytes)); }

std::string format_checkpoint(const Checkpoint& checkpoint, std::string_view name) {
  return named(name, [&] { return checkpoint_layout(checkpoint); }).bytes();
}

Checkpoint parse_checkpoint(std::string_view bytes, std::string_view name) {
  return named(name, [&] { return read_checkpoint(source_of(bytes), CheckpointPart::everything); });
}

TensorsAndDamage read_with_damage(const std::filesystem::path& path) {
  return named_file(path, [&]() -> TensorsAndDamage {
    const InputFile file(path);
    Digested read = read_digested(source_of(file), CheckpointPart::everything);
    try {
      without_arrays(read.file.metadata, read.digest);
      return {std::move(read.file), ""};
    } catch (const UserError& error) {
      return {std::move(read.file), fmt::format("{}: {}", path.string(), error.what())};
    }
  });
}

}  // namespace tensorgrad::io

namespace tensorgrad {

void save_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint) {
  io::named(path.string(), [&] { return io::checkpoint_layout(checkpoint); }).write(path);
}

Checkpoint load_checkpoint(const std::filesystem::path& path, CheckpointPart part) {
  return io::named_file(path, [&] {
    const InputFile file(path);
    return io::read_checkpoint(io::source_of(file), part);
  });
}

}  // namespace tensorgrad
