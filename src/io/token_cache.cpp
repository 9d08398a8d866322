#include "io/token_cache.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "support/fail.h"
#include "support/file.h"
#include "support/integers.h"
#include "support/json.h"
#include "support/json_text.h"

namespace tensorgrad::io {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kMagic = "tensorgrad tokens 1\n";  // the footer begins with it
constexpr std::size_t kFooter = 32768;  // bytes; a path has at most 4096, escaped more

// Ids of two or four bytes, read on demand.
class FileSource : public Tokens::Source {
 public:
  FileSource(std::shared_ptr<const InputFile> file, int width)
      : file_(std::move(file)), width_(width) {}

  void read(std::int64_t begin, std::span<std::int32_t> out) const override {
    if (width_ == 4) {
      fill(begin * 4, std::as_writable_bytes(out));
      return;
    }
    std::vector<std::uint16_t> narrow(out.size());
    fill(begin * 2, std::as_writable_bytes(std::span(narrow)));
    std::copy(narrow.begin(), narrow.end(), out.begin());
  }

 private:
  void fill(std::int64_t at, std::span<std::byte> out) const {
    file_->read(static_cast<std::uint64_t>(at), {reinterpret_cast<char*>(out.data()), out.size()});
  }

  std::shared_ptr<const InputFile> file_;
  int width_;
};

// Returns the raw footer, or an empty text.
std::string read_footer(const InputFile& file) {
  if (file.size() < kFooter) return "";
  std::string footer(kFooter, '\0');
  file.read(file.size() - kFooter, footer);
  if (!footer.starts_with(kMagic)) return "";
  return footer.substr(kMagic.size(), footer.find('\0') - kMagic.size());
}

bool is_as_written(const std::shared_ptr<const InputFile>& file, const CachedTokens& cached) {
  const std::int64_t count = cached.parts.training + cached.parts.validation;
  if (static_cast<std::int64_t>(file->size()) !=
      count * cached.width + static_cast<std::int64_t>(kFooter))
    return false;
  const FileSource source(file, cached.width);
  Fingerprint fingerprint;
  std::vector<std::int32_t> ids;
  for (std::int64_t at = 0; at < count; at += static_cast<std::int64_t>(ids.size())) {
    ids.resize(usize(std::min<std::int64_t>(count - at, 1 << 20)));
    source.read(at, ids);
    fingerprint.add(ids);
  }
  return fingerprint.finish(cached.parts.training) == cached.parts.fingerprint;
}

// What a footer says, or nothing if it is none.
std::optional<CachedTokens> parse_footer(std::string_view footer, std::uint64_t file_bytes) {
  const JsonDocument document = parse_json(footer, 2);
  const Json& json = document.root();
  const Json *origin = json.find("origin"), *fingerprint = json.find("fingerprint");
  if (!origin || !fingerprint) return {};
  bool plausible = true;
  const auto number = [&](const char* name, std::uint64_t most) {
    const Json* found = json.find(name);
    const auto value = found ? found->natural() : std::nullopt;
    plausible = plausible && value && *value <= most;
    return plausible ? static_cast<std::int64_t>(*value) : 0;
  };
  constexpr std::uint64_t kAny = std::numeric_limits<std::int64_t>::max();
  CachedTokens cached{.origin = origin->to_json(), .width = static_cast<int>(number("width", 4))};
  cached.parts = {number("training", file_bytes), number("validation", file_bytes),
                  number("training_bytes", kAny), number("validation_bytes", kAny),
                  std::string(fingerprint->text())};
  if (!plausible || (cached.width != 2 && cached.width != 4)) return {};
  return cached;
}

}  // namespace

std::optional<CachedTokens> read_token_cache(const fs::path& path) {
  try {
    const auto file = std::make_shared<const InputFile>(path);
    std::optional<CachedTokens> cached = parse_footer(read_footer(*file), file->size());
    if (cached && is_as_written(file, *cached)) return cached;
  } catch (const UserError&) {  // no cache yet; or writing it again reports the problem
  }
  return {};
}

std::shared_ptr<const Tokens::Source> open_token_cache(const fs::path& path, int width) {
  return std::make_shared<FileSource>(std::make_shared<const InputFile>(path), width);
}

TokenCacheWriter::TokenCacheWriter(const fs::path& path, std::int64_t vocab)
    : file_(path), width_(vocab <= 65536 ? 2 : 4) {}

void TokenCacheWriter::add(std::span<const std::int32_t> ids) {
  if (width_ == 4) {
    file_.write(std::as_bytes(ids));
    return;
  }
  const std::vector<std::uint16_t> narrow(ids.begin(), ids.end());
  file_.write(std::as_bytes(std::span(narrow)));
}

void TokenCacheWriter::finish(const CachedTokens& cached) {
  JsonText json;
  json.begin('{')
      .key("origin")
      .raw(cached.origin)
      .field("width", cached.width)
      .field("training", cached.parts.training)
      .field("validation", cached.parts.validation)
      .field("training_bytes", cached.parts.training_bytes)
      .field("validation_bytes", cached.parts.validation_bytes)
      .field("fingerprint", cached.parts.fingerprint)
      .end('}');
  std::string footer = std::string(kMagic) + json.text();
  if (footer.size() >= kFooter)
    internal_error("the footer of a token cache has {} bytes", footer.size());
  footer.resize(kFooter, '\0');
  file_.write(std::as_bytes(std::span(footer)));
  file_.commit();
}

}  // namespace tensorgrad::io
