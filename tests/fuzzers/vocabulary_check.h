// Properties of any input to the readers of tokenizers, for the fuzzer and for the test that
// replays its findings.
//
// The input is vocabulary, merges, special tokens (one per line) and a text, separated by 0x1e. A
// vocabulary that begins with '+' gets the 256 bytes in front, because random input never has them.
#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "io/bpe_split.h"
#include "io/byte_characters.h"
#include "support/text.h"
#include "support/utf8.h"
#include "tensorgrad/error.h"
#include "tensorgrad/tokenizer.h"

namespace tensorgrad::fuzzers {

using Ids = std::vector<std::int32_t>;

inline std::string vocabulary_of(std::string_view written) {
  if (written.empty() || written[0] != '+') return std::string(written);
  static const std::string bytes = [] {
    std::string text = "{";
    for (int byte = 0; byte < 256; ++byte) {
      const std::string token = io::printable(std::string(1, static_cast<char>(byte)));
      text += (byte == 0 ? "" : ",") + nlohmann::json(token).dump() + ":" + std::to_string(byte);
    }
    return text;
  }();
  return bytes + std::string(written.substr(1));
}

// The definition of byte pairs: repeatedly merges the strongest pair everywhere.
inline Ids plainly_encoded(const Tokenizer& tokenizer, std::string_view text) {
  const nlohmann::json json = nlohmann::json::parse(tokenizer.to_json());
  std::vector<std::pair<std::string, std::string>> merges;
  for (const std::string line : json["merges"]) {
    const std::size_t space = line.find(' ');
    merges.emplace_back(*io::bytes_of(line.substr(0, space)),
                        *io::bytes_of(line.substr(space + 1)));
  }
  std::vector<std::string> specials;
  for (const std::int32_t id : json["special"]) specials.push_back(tokenizer.token(id));

  Ids ids;
  const io::SpecialTokens special(specials);
  io::Splitter parts(text, true, special);
  while (const auto part = parts.next()) {
    std::vector<std::string> tokens;
    if (part->special >= 0) {
      tokens.emplace_back(part->text);
    } else {
      for (const char byte : part->text) tokens.emplace_back(1, byte);
      for (bool merged = true; merged;) {
        merged = false;
        for (const auto& [left, right] : merges) {
          for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
            if (tokens[i] != left || tokens[i + 1] != right) continue;
            tokens[i] += right;
            tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(i) + 1);
            merged = true;
          }
          if (merged) break;  // stronger pairs may be there now
        }
      }
    }
    for (const std::string& token : tokens) ids.push_back(tokenizer.find(token));
  }
  return ids;
}

// The failure of a tokenizer on a text; empty if there is none.
inline std::string wrong_with(const Tokenizer& tokenizer, std::string_view text) {
  const Ids ids = tokenizer.encode(text);
  const std::string kind(tokenizer.kind());
  if (kind != "chars" && tokenizer.decode(ids) != text) return kind + ": another text comes back";
  const std::string json = tokenizer.to_json();
  const Tokenizer again = Tokenizer::from_json(json);
  if (again.to_json() != json) return kind + ": the JSON changes";
  if (again.encode(text) != ids) return kind + ": the JSON gives other ids";
  for (const std::size_t cut : {text.size() / 2, text.size() / 3, text.size() - text.size() / 5}) {
    Ids pieces;
    const std::size_t done = tokenizer.encode_some(text.substr(0, cut), false, pieces);
    if (done > cut) return kind + ": more is done than there is";
    if (tokenizer.encode_some(text.substr(done), true, pieces) != text.size() - done)
      return kind + ": something is left";
    if (pieces != ids) return kind + ": pieces give other ids";
  }
  if (kind == "bpe" && text.size() <= 64 && plainly_encoded(tokenizer, text) != ids)
    return kind + ": plain merging gives other ids";
  return "";
}

inline std::string wrong_with_training(const std::vector<std::string>& special,
                                       std::string_view text) {
  Tokenizer::Training whole(special), pieces(special);
  whole.add(text);
  for (std::size_t at = 0; at < text.size(); at += 5) pieces.add(text.substr(at, 5));
  const std::int64_t vocab = 300 + static_cast<std::int64_t>(special.size());
  const Tokenizer one = whole.finish(vocab), other = pieces.finish(vocab);
  const Ids ids = one.encode(text);
  if (one.vocab_size() != other.vocab_size() || other.encode(text) != ids)
    return "training depends on pieces";
  return one.decode(ids) == text ? "" : "training: another text comes back";
}

// An error is a short UTF-8 text that names the place; control characters are escaped.
inline std::string wrong_with_error(std::string_view error, std::string_view where) {
  if (error.substr(0, where.size() + 2) != std::string(where) + ": ")
    return "an error that does not say where: " + std::string(error);
  if (error.size() > 500) return "an error that is too long";
  if (!is_utf8(error)) return "an error that is not UTF-8";
  const std::string_view line = error.substr(0, error.find("\n  hint: "));
  const auto control = [](char c) { return static_cast<unsigned char>(c) < 0x20; };
  return std::any_of(line.begin(), line.end(), control) ? "an error with control characters" : "";
}

// Runs `f`. Catches only UserError; the caller sees all others.
template <class F>
std::string unless_refused(std::string_view where, F&& f) {
  try {
    return f();
  } catch (const UserError& error) {
    return wrong_with_error(error.what(), where);
  }
}

inline std::vector<std::string> lines_of(std::string_view text) {
  return text.empty() ? std::vector<std::string>() : split(text, '\n');
}

// An input of one part is JSON, or a text to take characters from.
inline std::string check_vocabulary(std::string_view input) {
  std::vector<std::string> parts = split(input, '\x1e');
  if (parts.size() == 1) {
    const std::string wrong =
        unless_refused("tokenizer", [&] { return wrong_with(Tokenizer::from_json(input), input); });
    if (!wrong.empty()) return wrong;
    return unless_refused("characters",
                          [&] { return wrong_with(Tokenizer::characters(input), input); });
  }
  parts.resize(std::max<std::size_t>(parts.size(), 4));
  const std::vector<std::string> special = lines_of(parts[2]);
  const std::string wrong = unless_refused("input", [&] {
    return wrong_with(Tokenizer::parse_bpe(vocabulary_of(parts[0]), parts[1], special, "input"),
                      parts[3]);
  });
  if (!wrong.empty()) return wrong;
  return unless_refused("Training", [&] { return wrong_with_training(special, parts[3]); });
}

}  // namespace tensorgrad::fuzzers
