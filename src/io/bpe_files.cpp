// Byte pairs as text: vocab.json and merges.txt as other programs write them, and our own JSON. All
// of them write bytes as printable characters (byte_characters.h).
//
// A token of vocab.json with a character that encodes no byte, such as a space, can only be a
// special token. It is written literally.
#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "io/bpe.h"
#include "io/byte_characters.h"
#include "io/named.h"
#include "support/fail.h"
#include "support/integers.h"
#include "support/json.h"
#include "support/json_text.h"
#include "support/utf8.h"

namespace tensorgrad::io {
namespace {

constexpr std::string_view kVersion = "#version";

void check_size(std::string_view text) {
  if (text.size() > kMaxBpeFileBytes)
    user_error("{} bytes, at most {} are allowed", text.size(), kMaxBpeFileBytes);
}

[[noreturn]] void fail_without_byte(std::string_view token, std::string_view hint = "") {
  user_error("{} has a character that represents no byte: {}{}", shown(token),
             first_without_byte(token), hint);
}

// The tokens of a model by their bytes, with the checks that both readers share.
class Vocabulary {
 public:
  Vocabulary(const Vocabulary&) = delete;
  Vocabulary(Vocabulary&&) = default;
  explicit Vocabulary(std::vector<std::string> tokens) : tokens_(std::move(tokens)) {
    ids_.reserve(tokens_.size());
    for (std::size_t id = 0; id < tokens_.size(); ++id) {
      if (tokens_[id].empty()) user_error("the token with id {} is empty", id);
      const auto [other, is_new] = ids_.emplace(tokens_[id], static_cast<std::int32_t>(id));
      if (!is_new)
        user_error("ids {} and {} are the same token: {}", other->second, id,
                   shown(printable(tokens_[id])));
    }
    for (int byte = 0; byte < 256; ++byte) {
      const std::string one(1, static_cast<char>(byte));
      if (find(one) < 0)
        user_error("byte {:#04x} has no token: {} is missing", byte, shown(printable(one)));
    }
  }

  std::int32_t find(std::string_view bytes) const {
    const auto found = ids_.find(bytes);
    return found == ids_.end() ? -1 : found->second;
  }

  // Parses "left right", both as printable characters.
  Merge merge_of(std::string_view line) const {
    const std::size_t space = line.find(' ');
    if (space == line.npos || space == 0 || space + 1 == line.size() ||
        line.find(' ', space + 1) != line.npos)
      user_error("not two tokens: {}", shown(line));
    const std::int32_t left = required(line.substr(0, space), line.substr(0, space));
    const std::int32_t right = required(line.substr(space + 1), line.substr(space + 1));
    std::string both(line);
    both.erase(space, 1);
    const std::int32_t result = required(both, line);
    return {left, right, result};
  }

  const std::vector<std::string>& tokens() const { return tokens_; }

 private:
  std::int32_t required(std::string_view text, std::string_view source) const {
    const auto bytes = bytes_of(text);
    if (!bytes) fail_without_byte(text);
    const std::int32_t id = find(*bytes);
    if (id >= 0) return id;
    if (text == source) user_error("{} is not in the vocabulary", shown(text));
    user_error("{}, the merge of {}, is not in the vocabulary", shown(text), shown(source));
  }

  std::vector<std::string> tokens_;
  std::unordered_map<std::string_view, std::int32_t> ids_;  // by bytes
};

// Reads merges in order. Errors name the `unit` ("line") and its number.
class MergeReader {
 public:
  MergeReader(const Vocabulary& vocabulary, const char* unit, std::size_t first)
      : vocabulary_(vocabulary), unit_(unit), first_(first) {}

  void add(std::string_view line) {
    const std::size_t number = first_ + merges_.size();
    try {
      const Merge merge = vocabulary_.merge_of(line);
      const auto [other, is_new] = numbers_.emplace(pair_key(merge.left, merge.right), number);
      if (!is_new) user_error("{} repeats {} {}", shown(line), unit_, other->second);
      merges_.push_back(merge);
    } catch (const UserError& error) {
      user_error("{} {}: {}", unit_, number, error.what());
    }
  }

  std::vector<Merge> take() && { return std::move(merges_); }

 private:
  const Vocabulary& vocabulary_;
  const char* unit_;
  std::size_t first_;
  std::vector<Merge> merges_;
  std::unordered_map<std::uint64_t, std::size_t> numbers_;
};

// ---- vocab.json and merges.txt

std::string bytes_of_key(std::string_view key, const SpecialTokens& special) {
  if (auto bytes = bytes_of(key)) return *std::move(bytes);
  const auto& texts = special.texts();
  if (std::find(texts.begin(), texts.end(), key) == texts.end())
    fail_without_byte(key, "\n  hint: if it is a special token, name it as one");
  return std::string(key);
}

std::vector<std::string> parse_vocab(std::string_view text, const SpecialTokens& special) {
  check_size(text);
  const JsonDocument document = parse_json(text, 1);
  const Json& json = document.root();
  if (!json.is_object()) user_error("not an object of ids: {}", shown(json));
  std::vector<std::optional<std::string_view>> keys(json.size());
  for (const auto& [key, value] : json.members()) {
    const std::optional<std::uint64_t> id = value.natural();
    if (!id)
      user_error("the id of {} must be a non-negative integer: {}", shown(key), shown(value));
    if (*id >= keys.size())
      user_error("{} tokens must have the ids 0 to {}, but {} has {}", keys.size(), keys.size() - 1,
                 shown(key), *id);
    std::optional<std::string_view>& place = keys[static_cast<std::size_t>(*id)];
    if (place) user_error("{} and {} have the same id {}", shown(*place), shown(key), *id);
    place = key;
  }
  std::vector<std::string> tokens;
  for (const auto& key : keys) tokens.push_back(bytes_of_key(*key, special));
  return tokens;
}

std::string_view take_line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(text.size(), line.size() + 1));
  return line;
}

std::vector<Merge> parse_merges(std::string_view text, const Vocabulary& vocabulary) {
  check_size(text);
  const bool version = text.substr(0, kVersion.size()) == kVersion;
  if (version) take_line(text);
  MergeReader reader(vocabulary, "line", version ? 2 : 1);
  while (!text.empty()) reader.add(take_line(text));
  return std::move(reader).take();
}

// Selects the special tokens that vocab.json holds literally: those that cannot be read as
// printable bytes, and that no merge uses.
std::vector<bool> written_as_they_are(const BpeModel& model) {
  std::vector<bool> chosen(model.tokens.size());
  for (const std::int32_t id : model.special) {
    const std::string& token = model.tokens[usize(id)];
    chosen[usize(id)] = token.size() > 1 && is_utf8(token) && !bytes_of(token);
  }
  for (const Merge& merge : model.merges)
    for (const std::int32_t id : {merge.left, merge.right, merge.result}) chosen[usize(id)] = false;
  return chosen;
}

std::string merge_line(const BpeModel& model, const Merge& merge) {
  return printable(model.tokens[usize(merge.left)]) + " " +
         printable(model.tokens[usize(merge.right)]);
}

// ---- our own JSON

const Json& list_of(const Json& json, const char* name) {
  const Json& list = field(json, name);
  if (!list.is_list()) user_error("{} must be a list: {}", name, shown(list));
  return list;
}

std::string_view string_of(const Json& item, const char* name) {
  if (!item.is_text()) user_error("{} must contain strings: {}", name, shown(item));
  return item.text();
}

}  // namespace

TokenizerKind parse_bpe_files(const NamedText& vocab, const NamedText& merges,
                              const std::vector<std::string>& special) {
  const Vocabulary vocabulary = named(
      vocab.name, [&] { return Vocabulary(parse_vocab(vocab.text, SpecialTokens(special))); });
  BpeModel model;
  model.merges = named(merges.name, [&] { return parse_merges(merges.text, vocabulary); });
  model.tokens = vocabulary.tokens();
  add_special(model, special);
  return std::make_shared<Bpe>(std::move(model));
}

std::string vocab_text(const BpeModel& model) {
  const std::vector<bool> as_they_are = written_as_they_are(model);
  std::string text = "{";
  for (std::size_t id = 0; id < model.tokens.size(); ++id) {
    const std::string key = as_they_are[id] ? model.tokens[id] : printable(model.tokens[id]);
    text += fmt::format("{}{}: {}", id == 0 ? "" : ", ", JsonText().value(key).text(), id);
  }
  return text + "}\n";
}

std::string merges_text(const BpeModel& model) {
  std::string text = "#version: 0.2\n";
  for (const Merge& merge : model.merges) text += merge_line(model, merge) + "\n";
  return text;
}

void Bpe::describe(JsonText& json) const {
  json.key("tokens").begin('[');
  for (const std::string& token : model_.tokens) json.value(printable(token));
  json.end(']').key("merges").begin('[');
  for (const Merge& merge : model_.merges) json.value(merge_line(model_, merge));
  json.end(']').key("special").list(model_.special);
}

TokenizerKind bpe_from_json(const Json& json) {
  check_fields(json, {"tokens", "merges", "special"});
  std::vector<std::string> tokens;
  for (const Json& item : list_of(json, "tokens").items()) {
    const std::string_view text = string_of(item, "tokens");
    auto bytes = bytes_of(text);
    if (!bytes) fail_without_byte(text);
    tokens.push_back(*std::move(bytes));
  }
  const Vocabulary vocabulary(std::move(tokens));
  MergeReader merges(vocabulary, "merge", 1);
  for (const Json& item : list_of(json, "merges").items()) merges.add(string_of(item, "merges"));
  BpeModel model{.tokens = vocabulary.tokens(), .merges = std::move(merges).take()};
  for (const Json& item : list_of(json, "special").items()) {
    const std::optional<std::uint64_t> id = item.natural();
    if (!id || *id >= model.tokens.size())
      user_error("special must contain ids below {}: {}", model.tokens.size(), shown(item));
    model.special.push_back(static_cast<std::int32_t>(*id));
  }
  return std::make_shared<Bpe>(std::move(model));
}

}  // namespace tensorgrad::io
