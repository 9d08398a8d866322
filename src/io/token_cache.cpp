#include "io/token_cache.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <vector>

#include "support/fail.h"

namespace tensorgrad::io {

namespace fs = std::filesystem;

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kMagic = "tensorgrad tokens 1\n";  // the footer begins with it
constexpr std::size_t kFooter = 32768;  // its bytes: a path has at most 4096, its escapes more

// Ids of two or four bytes, of which only what is asked for is read.
class FileSource : public Tokens::Source {
 public:
  FileSource(const fs::path& path, int width)
      : path_(path), fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)), width_(width) {
    if (fd_ < 0) user_error("{}: cannot read: {}", path.string(), std::strerror(errno));
  }
  ~FileSource() override { ::close(fd_); }
  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;

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
    while (!out.empty()) {
      const ssize_t n = ::pread(fd_, out.data(), out.size(), static_cast<off_t>(at));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0)
        user_error("{}: cannot read: {}", path_.string(),
                   n < 0 ? std::strerror(errno) : "it has become shorter");
      out = out.subspan(static_cast<std::size_t>(n));
      at += n;
    }
  }

  fs::path path_;
  int fd_;
  int width_;
};

}  // namespace

namespace {

// The footer as it is, or an empty text.
std::string read_footer(const fs::path& path) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  if (error || size < kFooter) return "";
  std::ifstream in(path, std::ios::binary);
  std::string footer(kFooter, '\0');
  in.seekg(static_cast<std::streamoff>(size - kFooter));
  if (!in.read(footer.data(), static_cast<std::streamsize>(footer.size())) ||
      !footer.starts_with(kMagic))
    return "";
  return footer.substr(kMagic.size(), footer.find('\0') - kMagic.size());
}

bool is_as_written(const fs::path& path, const CachedTokens& cached) {
  const std::int64_t count = cached.parts.training + cached.parts.validation;
  if (static_cast<std::int64_t>(fs::file_size(path)) !=
      count * cached.width + static_cast<std::int64_t>(kFooter))
    return false;
  const FileSource source(path, cached.width);
  Fingerprint fingerprint;
  std::vector<std::int32_t> ids;
  for (std::int64_t at = 0; at < count; at += static_cast<std::int64_t>(ids.size())) {
    ids.resize(static_cast<std::size_t>(std::min<std::int64_t>(count - at, 1 << 20)));
    source.read(at, ids);
    fingerprint.add(ids);
  }
  return fingerprint.finish(cached.parts.training) == cached.parts.fingerprint;
}

}  // namespace

std::optional<CachedTokens> read_token_cache(const fs::path& path) {
  const Json json = Json::parse(read_footer(path), nullptr, false);
  try {
    CachedTokens cached{.origin = json.at("origin"), .width = json.at("width").get<int>()};
    cached.parts = {json.at("training"), json.at("validation"), json.at("training_bytes"),
                    json.at("validation_bytes"), json.at("fingerprint")};
    const bool plausible = (cached.width == 2 || cached.width == 4) && cached.parts.training >= 0 &&
                           cached.parts.validation >= 0;
    if (plausible && is_as_written(path, cached)) return cached;
  } catch (const Json::exception&) {
  }
  return {};
}

std::shared_ptr<const Tokens::Source> open_token_cache(const fs::path& path, int width) {
  return std::make_shared<FileSource>(path, width);
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
