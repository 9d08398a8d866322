// Tokens that are characters: those of a text, and id 0 for all others.
#include <algorithm>
#include <set>
#include <utility>

#include "io/tokenizer_kind.h"
#include "support/fail.h"
#include "support/integers.h"
#include "support/json.h"
#include "support/json_text.h"
#include "support/utf8.h"

namespace tensorgrad::io {
namespace {

constexpr char32_t kUnknown = 0xfffd;

class Characters final : public Tokenizer::Kind {
 public:
  // `codes`: ascending, without kUnknown.
  explicit Characters(std::vector<char32_t> codes) : codes_(std::move(codes)) {
    tokens_.resize(codes_.size() + 1);
    append_utf8(tokens_[0], kUnknown);
    for (std::size_t i = 0; i < codes_.size(); ++i) append_utf8(tokens_[i + 1], codes_[i]);
  }

  std::string_view name() const override { return "chars"; }
  std::int64_t vocab_size() const override { return static_cast<std::int64_t>(tokens_.size()); }

  std::size_t encode_some(std::string_view text, bool last,
                          std::vector<std::int32_t>& ids) const override {
    std::size_t at = 0;
    while (at < text.size()) {
      const Character character = character_at(text, at);
      if (character.incomplete && !last) break;
      ids.push_back(character.valid ? id_of(character.code) : 0);
      at += character.bytes;
    }
    return at;
  }

  std::string_view token(std::int32_t id) const override { return tokens_[usize(id)]; }

  std::int32_t find(std::string_view token) const override {
    if (token == tokens_[0]) return 0;
    if (token.empty()) return -1;
    const Character character = character_at(token, 0);
    if (!character.valid || character.bytes != token.size()) return -1;
    const std::int32_t id = id_of(character.code);
    return id == 0 ? -1 : id;
  }

  void describe(JsonText& json) const override {
    std::string all;
    for (const char32_t code : codes_) append_utf8(all, code);
    json.field("characters", all);
  }

 private:
  std::int32_t id_of(char32_t code) const {
    const auto found = std::lower_bound(codes_.begin(), codes_.end(), code);
    if (found == codes_.end() || *found != code) return 0;
    return static_cast<std::int32_t>(found - codes_.begin()) + 1;
  }

  std::vector<char32_t> codes_;
  std::vector<std::string> tokens_;  // by id
};

}  // namespace

TokenizerKind characters_of(std::string_view text) {
  std::set<char32_t> codes;
  for (std::size_t at = 0; at < text.size();) {
    const Character character = character_at(text, at);
    if (!character.valid)
      user_error("the text is not UTF-8: byte {} is {:#04x}", at,
                 static_cast<unsigned char>(text[at]));
    codes.insert(character.code);
    at += character.bytes;
  }
  codes.erase(kUnknown);
  return std::make_shared<Characters>(std::vector<char32_t>(codes.begin(), codes.end()));
}

TokenizerKind characters_from_json(const Json& json) {
  check_fields(json, {"characters"});
  const Json& all = field(json, "characters");
  if (!all.is_text()) user_error("characters must be a string: {}", shown(all));
  const std::string_view text = all.text();
  std::vector<char32_t> codes;
  for (std::size_t at = 0; at < text.size();) {
    const Character character = character_at(text, at);  // valid, as the JSON parser checked
    if (character.code == kUnknown)
      user_error("characters must not contain U+FFFD, which represents all others");
    if (!codes.empty() && character.code <= codes.back())
      user_error("characters must be in order, each once: U+{:04X} follows U+{:04X}",
                 static_cast<std::uint32_t>(character.code),
                 static_cast<std::uint32_t>(codes.back()));
    codes.push_back(character.code);
    at += character.bytes;
  }
  return std::make_shared<Characters>(std::move(codes));
}

}  // namespace tensorgrad::io
