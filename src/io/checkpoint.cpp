// One checkpoint: what its metadata hold, and the digest by which a damaged one is told apart.
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
      "damaged: its bytes are not those that its sha256 was made of\n"
      "  hint: it was cut off or altered after it was written");
}

const std::string& text(const Metadata& metadata, const char* key) {
  const auto found = metadata.find(key);
  if (found == metadata.end()) user_error("not a checkpoint: its metadata have no '{}'", key);
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

// One altered byte does not hide that a file was a checkpoint: it hits the format or one of these.
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
        "version {} of checkpoints is not known, only '{}'\n  hint: was it written by a newer "
        "tensorgrad?",
        in_quotes(version), kVersion);
}

std::map<std::string, std::string> rest(const Metadata& metadata) {
  std::map<std::string, std::string> more;
  for (const auto& [key, value] : metadata)
    if (key.starts_with(kMore)) more.emplace(key.substr(kMore.size()), value);
  return more;
}

// Moves what belongs to the optimizer out of `tensors`.
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

}  // namespace

std::size_t digest_place(std::string_view bytes) {
  const bool ours = bytes.size() >= kDigestPlace + kDigestDigits &&
                    bytes.substr(kLengthBytes, kCheckpointFront.size()) == kCheckpointFront;
  return ours ? kDigestPlace : bytes.npos;
}

std::string checkpoint_digest(std::string_view bytes) {
  const std::size_t place = digest_place(bytes);
  Sha256 sha;
  for (const std::string_view piece :
       {bytes.substr(0, place), kNoDigest, bytes.substr(place + kDigestDigits)})
    sha.update(std::as_bytes(std::span(piece)));
  return sha.finish();
}

std::string format_checkpoint(const Checkpoint& checkpoint, std::string_view name) {
  return named(name, [&] { return checkpoint_layout(checkpoint); }).bytes();
}

Checkpoint parse_checkpoint(std::string_view bytes, std::string_view name) {
  const std::size_t place = digest_place(bytes);
  const bool ours = place != bytes.npos;
  if (ours && bytes.substr(place, kDigestDigits) != checkpoint_digest(bytes))
    named(name, [] { damaged(); });
  TensorFile file = parse_safetensors(bytes, name);
  return named(name, [&]() -> Checkpoint {
    const Metadata& metadata = file.metadata;
    if (!ours && !was_checkpoint(metadata)) return {.parameters = std::move(file.tensors)};
    check_version(metadata);
    if (!ours) damaged();
    Checkpoint checkpoint{.step = number<std::int64_t>(metadata, "step"),
                          .seed = number<std::uint32_t>(metadata, "seed"),
                          .position = number<std::int64_t>(metadata, "position"),
                          .tokenizer = text(metadata, "tokenizer"),
                          .config = text(metadata, "config"),
                          .more = rest(metadata)};
    checkpoint.optimizer = take_optimizer(file.tensors);
    checkpoint.parameters = std::move(file.tensors);
    return checkpoint;
  });
}

}  // namespace tensorgrad::io

namespace tensorgrad {

void save_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint) {
  io::named(path.string(), [&] { return io::checkpoint_layout(checkpoint); }).write(path);
}

Checkpoint load_checkpoint(const std::filesystem::path& path) {
  return io::parse_checkpoint(read_file(path), path.string());
}

}  // namespace tensorgrad
