// The public class, and the byte tokenizer. Character tokens are in characters.cpp, byte pairs in
// bpe*.cpp.
#include "tensorgrad/tokenizer.h"

#include <algorithm>
#include <utility>

#include "io/bpe.h"
#include "io/named.h"
#include "io/tokenizer_kind.h"
#include "support/fail.h"
#include "support/file.h"
#include "support/integers.h"
#include "support/json.h"
#include "support/json_text.h"

namespace tensorgrad {
namespace {

class Bytes final : public Tokenizer::Kind {
 public:
  Bytes() {
    for (int byte = 0; byte < 256; ++byte) all_ += static_cast<char>(byte);
  }
  std::string_view name() const override { return "bytes"; }
  std::int64_t vocab_size() const override { return 256; }
  std::size_t encode_some(std::string_view text, bool,
                          std::vector<std::int32_t>& ids) const override {
    for (const char byte : text) ids.push_back(static_cast<unsigned char>(byte));
    return text.size();
  }
  std::string_view token(std::int32_t id) const override {
    return std::string_view(all_).substr(usize(id), 1);
  }
  std::int32_t find(std::string_view token) const override {
    return token.size() == 1 ? static_cast<unsigned char>(token[0]) : -1;
  }
  void describe(JsonText&) const override {}

 private:
  std::string all_;
};

io::TokenizerKind kind_from_json(std::string_view text) {
  const JsonDocument document = parse_json(text, 2);
  const Json& json = document.root();
  if (!json.is_object()) user_error("not an object: {}", shown(json));
  const Json& kind = io::field(json, "kind");
  if (kind.text() == "bytes") {
    io::check_fields(json, {});
    return std::make_shared<Bytes>();
  }
  if (kind.text() == "chars") return io::characters_from_json(json);
  if (kind.text() == "bpe") return io::bpe_from_json(json);
  user_error("unknown kind {}: known are \"bytes\", \"chars\" and \"bpe\"", shown(kind));
}

std::string_view token_of(const Tokenizer::Kind& kind, std::int32_t id, const char* caller) {
  if (id < 0 || id >= kind.vocab_size())
    user_error("{}: id {} is out of range, the vocabulary has {} tokens", caller, id,
               kind.vocab_size());
  return kind.token(id);
}

}  // namespace

const Json& io::field(const Json& json, const char* name) {
  const Json* found = json.find(name);
  if (!found) user_error("{} is missing", name);
  return *found;
}

void io::check_fields(const Json& json, std::initializer_list<std::string_view> names) {
  for (const auto& [key, value] : json.members())
    if (key != "kind" && std::find(names.begin(), names.end(), key) == names.end())
      user_error("unknown field {}", shown(key));
}

Tokenizer::Tokenizer(std::shared_ptr<const Kind> own) : own_(std::move(own)) {}

Tokenizer Tokenizer::bytes() { return Tokenizer(std::make_shared<Bytes>()); }

Tokenizer Tokenizer::characters(std::string_view text) {
  return Tokenizer(io::named("characters", [&] { return io::characters_of(text); }));
}

Tokenizer Tokenizer::read_bpe(const std::filesystem::path& vocab,
                              const std::filesystem::path& merges,
                              std::vector<std::string> special) {
  const std::string vocab_text = read_file(vocab, io::kMaxBpeFileBytes);
  const std::string merges_text = read_file(merges, io::kMaxBpeFileBytes);
  return Tokenizer(
      io::parse_bpe_files({vocab.string(), vocab_text}, {merges.string(), merges_text}, special));
}

Tokenizer Tokenizer::parse_bpe(std::string_view vocab, std::string_view merges,
                               std::vector<std::string> special, std::string_view name) {
  return Tokenizer(
      io::parse_bpe_files({std::string(name), vocab}, {std::string(name), merges}, special));
}

Tokenizer Tokenizer::from_json(std::string_view text) {
  return Tokenizer(io::named("tokenizer", [&] { return kind_from_json(text); }));
}

std::string Tokenizer::to_json() const {
  JsonText json;
  json.begin('{').field("kind", own_->name());
  own_->describe(json);
  return json.end('}').take();
}

void Tokenizer::write_bpe(const std::filesystem::path& vocab,
                          const std::filesystem::path& merges) const {
  const io::BpeModel* pairs = own_->byte_pairs();
  if (!pairs) user_error("write_bpe: a tokenizer of kind '{}' has no byte pairs", kind());
  write_file(vocab, io::vocab_text(*pairs));
  write_file(merges, io::merges_text(*pairs));
}

std::string_view Tokenizer::kind() const { return own_->name(); }

std::int64_t Tokenizer::vocab_size() const { return own_->vocab_size(); }

std::vector<std::int32_t> Tokenizer::encode(std::string_view text) const {
  std::vector<std::int32_t> ids;
  own_->encode_some(text, true, ids);
  return ids;
}

std::size_t Tokenizer::encode_some(std::string_view text, bool last,
                                   std::vector<std::int32_t>& ids) const {
  return own_->encode_some(text, last, ids);
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids) const {
  std::string text;
  for (const std::int32_t id : ids) text += token_of(*own_, id, "decode");
  return text;
}

std::string Tokenizer::token(std::int32_t id) const {
  return std::string(token_of(*own_, id, "token"));
}

std::int32_t Tokenizer::find(std::string_view token) const { return own_->find(token); }

}  // namespace tensorgrad
