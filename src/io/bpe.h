// Byte-level byte-pair encoding (BPE): the model as plain data, its tokenizer, and its files.
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
#include "support/integers.h"

namespace tensorgrad::io {

// Two neighbouring tokens and the token they become. Its bytes are theirs, concatenated.
struct Merge {
  std::int32_t left, right, result;
};

struct BpeModel {
  std::vector<std::string> tokens;    // by id: not empty, distinct; all single bytes exist
  std::vector<Merge> merges;          // by priority; no pair occurs twice
  std::vector<std::int32_t> special;  // ids
};

// Makes these tokens special. Tokens that the model lacks get the next ids.
void add_special(BpeModel& model, const std::vector<std::string>& texts);

// Packs a pair into a key for a hash table.
constexpr std::uint64_t pair_key(std::int32_t left, std::int32_t right) {
  return static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint32_t>(right);
}

class Bpe final : public Tokenizer::Kind {
 public:
  explicit Bpe(BpeModel model);
  Bpe(const Bpe&) = delete;
  Bpe& operator=(const Bpe&) = delete;
  const BpeModel* byte_pairs() const override { return &model_; }

  std::string_view name() const override { return "bpe"; }
  std::int64_t vocab_size() const override {
    return static_cast<std::int64_t>(model_.tokens.size());
  }
  std::size_t encode_some(std::string_view text, bool last,
                          std::vector<std::int32_t>& ids) const override;
  std::string_view token(std::int32_t id) const override { return model_.tokens[usize(id)]; }
  std::int32_t find(std::string_view token) const override;
  void describe(JsonText& json) const override;

 private:
  class Word;

  BpeModel model_;
  std::unordered_map<std::string_view, std::int32_t> ids_;  // by bytes
  std::unordered_map<std::uint64_t, std::int32_t> ranks_;   // by pair_key(): index in model_.merges
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
