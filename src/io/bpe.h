// Byte-level byte pairs: the model as plain data, the tokenizer that is made of it, and its files.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "io/bpe_split.h"
#include "io/tokenizer_kind.h"

namespace tensorgrad::io {

// Two neighbours and the token they become, which is their bytes.
struct Merge {
  std::int32_t left, right, result;
};

struct BpeModel {
  std::vector<std::string> tokens;    // bytes by id: none empty, no two equal, all single bytes
  std::vector<Merge> merges;          // the strongest first; no pair twice
  std::vector<std::int32_t> special;  // ids
};

// Makes these tokens special; those that the model lacks get the next ids.
void add_special(BpeModel& model, const std::vector<std::string>& texts);

// Key of a hash table.
constexpr std::uint64_t pair_key(std::int32_t left, std::int32_t right) {
  return static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint32_t>(right);
}

class Bpe final : public Tokenizer::Kind {
 public:
  explicit Bpe(BpeModel model);
  Bpe(const Bpe&) = delete;
  Bpe& operator=(const Bpe&) = delete;
  const BpeModel& model() const { return model_; }

  std::string_view name() const override { return "bpe"; }
  std::int64_t vocab_size() const override {
    return static_cast<std::int64_t>(model_.tokens.size());
  }
  std::size_t encode_some(std::string_view text, bool last,
                          std::vector<std::int32_t>& ids) const override;
  std::string_view token(std::int32_t id) const override {
    return model_.tokens[static_cast<std::size_t>(id)];
  }
  std::int32_t find(std::string_view token) const override;
  void describe(nlohmann::ordered_json& json) const override;

 private:
  class Word;

  BpeModel model_;
  std::unordered_map<std::string_view, std::int32_t> ids_;  // of model_.tokens
  std::unordered_map<std::uint64_t, std::int32_t> ranks_;   // of pairs, in model_.merges
  std::array<std::int32_t, 256> byte_ids_;
  SpecialTokens special_;  // in the order of model_.special
};

// ---- files (bpe_files.cpp)

inline constexpr std::size_t kMaxBpeFileBytes = 100'000'000;

struct NamedText {
  std::string name;
  std::string_view text;
};

TokenizerKind parse_bpe_files(const NamedText& vocab, const NamedText& merges,
                              const std::vector<std::string>& special);
std::string vocab_text(const BpeModel& model);
std::string merges_text(const BpeModel& model);

}  // namespace tensorgrad::io
