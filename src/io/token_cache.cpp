#include "io/token_cache.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "support/fail.h"
#include "support/file.h"
#include "support/integers.h"

namespace tensorgrad::io {

namespace fs = std::filesystem;

namespace {

using Json = nlohmann::json;

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

}  // namespace

std::optional<CachedTokens> read_token_cache(const fs::path& path) {
  try {
    const auto file = std::make_shared<const InputFile>(path);
    const Json json = Json::parse(read_footer(*file), nullptr, false);
    CachedTokens cached{.origin = json.at("origin"), .width = json.at("width").get<int>()};
    cached.parts = {json.at("training"), json.at("validation"), json.at("training_bytes"),
                    json.at("validation_bytes"), json.at("fingerprint")};
    const auto fits = [&](std::int64_t count) {
      return count >= 0 && static_cast<std::uint64_t>(count) <= file->size();
    };
    const bool plausible = (cached.width == 2 || cached.width == 4) &&
                           fits(cached.parts.training) && fits(cached.parts.validation);
    if (plausible && is_as_written(file, cached)) return cached;
  } catch (const Json::exception&) {
  } catch (const ReadError&) {  // no cache yet; or writing it again reports the problem
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
  const Json json{{"origin", cached.origin},
                  {"width", cached.width},
                  {"training", cached.parts.training},
                  {"validation", cached.parts.validation},
                  {"training_bytes", cached.parts.training_bytes},
                  {"validation_bytes", cached.parts.validation_bytes},
                  {"fingerprint", cached.parts.fingerprint}};
  std::string footer =
      std::string(kMagic) + json.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (footer.size() >= kFooter)
    internal_error("the footer of a token cache has {} bytes", footer.size());
  footer.resize(kFooter, '\0');
  file_.write(std::as_bytes(std::span(footer)));
  file_.commit();
}

}  // namespace tensorgrad::io
