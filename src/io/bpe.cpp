// Merges the bytes of words as GPT-2 does. Of all neighbouring pairs, merges the one with the
// highest priority everywhere, from left to right; repeats until no pair has a merge.
#include "io/bpe.h"

#include <algorithm>
#include <utility>

#include "support/integers.h"

namespace tensorgrad::io {

void add_special(BpeModel& model, const std::vector<std::string>& texts) {
  std::unordered_map<std::string_view, std::int32_t> wanted;
  for (const std::string& text : texts) wanted.emplace(text, -1);
  for (std::size_t id = 0; id < model.tokens.size(); ++id)
    if (const auto found = wanted.find(model.tokens[id]); found != wanted.end())
      found->second = static_cast<std::int32_t>(id);
  for (const std::string& text : texts) {
    const std::int32_t known = wanted.at(text);
    model.special.push_back(known >= 0 ? known : static_cast<std::int32_t>(model.tokens.size()));
    if (known < 0) model.tokens.push_back(text);
  }
}

// A word during merging: a linked list of tokens, and a heap of candidate pairs. A word of n bytes
// takes n log n steps. One object is reused for all words of a text.
class Bpe::Word {
 public:
  explicit Word(const Bpe& bpe) : bpe_(bpe) {}

  void encode(std::string_view word, std::vector<std::int32_t>& ids) {
    start(word);
    while (!candidates_.empty()) merge_strongest();
    for (std::size_t at = 0; at != kNone; at = symbols_[at].next) ids.push_back(symbols_[at].id);
  }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  struct Symbol {
    std::int32_t id;  // -1: merged into the symbol before it
    std::size_t before, next;
  };
  struct Candidate {
    std::int32_t rank;
    std::size_t at;  // left symbol of the pair
    // Heap order: highest priority on top, then leftmost.
    bool operator<(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : at > other.at;
    }
  };

  void start(std::string_view word) {
    symbols_.clear();
    candidates_.clear();
    for (std::size_t i = 0; i < word.size(); ++i)
      symbols_.push_back({bpe_.byte_ids_[static_cast<unsigned char>(word[i])],
                          i == 0 ? kNone : i - 1, i + 1 == word.size() ? kNone : i + 1});
    for (std::size_t i = 0; i + 1 < word.size(); ++i) consider(i);
  }

  // New pairs wait until all pairs of this rank are merged, because they may have a higher
  // priority.
  void merge_strongest() {
    const std::int32_t rank = candidates_.front().rank;
    const Merge& merge = bpe_.model_.merges[usize(rank)];
    merged_.clear();
    while (!candidates_.empty() && candidates_.front().rank == rank) {
      const std::size_t at = candidates_.front().at;
      std::pop_heap(candidates_.begin(), candidates_.end());
      candidates_.pop_back();
      Symbol& left = symbols_[at];
      if (left.id != merge.left || left.next == kNone || symbols_[left.next].id != merge.right)
        continue;  // one of the two has been merged with another symbol
      Symbol& right = symbols_[left.next];
      left.id = merge.result;
      left.next = right.next;
      right.id = -1;
      if (left.next != kNone) symbols_[left.next].before = at;
      merged_.push_back(at);
    }
    for (const std::size_t at : merged_) {
      if (symbols_[at].before != kNone) consider(symbols_[at].before);
      consider(at);
    }
  }

  void consider(std::size_t at) {
    const Symbol& left = symbols_[at];
    if (left.next == kNone) return;
    const auto found = bpe_.ranks_.find(pair_key(left.id, symbols_[left.next].id));
    if (found == bpe_.ranks_.end()) return;
    candidates_.push_back({found->second, at});
    std::push_heap(candidates_.begin(), candidates_.end());
  }

  const Bpe& bpe_;
  std::vector<Symbol> symbols_;
  std::vector<Candidate> candidates_;
  std::vector<std::size_t> merged_;
};

Bpe::Bpe(BpeModel model) : model_(std::move(model)) {
  ids_.reserve(model_.tokens.size());
  for (std::size_t id = 0; id < model_.tokens.size(); ++id)
    ids_.emplace(model_.tokens[id], static_cast<std::int32_t>(id));
  ranks_.reserve(model_.merges.size());
  for (std::size_t rank = 0; rank < model_.merges.size(); ++rank)
    ranks_.emplace(pair_key(model_.merges[rank].left, model_.merges[rank].right),
                   static_cast<std::int32_t>(rank));
  for (int byte = 0; byte < 256; ++byte) {
    const char one = static_cast<char>(byte);
    byte_ids_[usize(byte)] = ids_.at(std::string_view(&one, 1));
  }
  std::vector<std::string> texts;
  for (const std::int32_t id : model_.special) texts.emplace_back(token(id));
  special_ = SpecialTokens(std::move(texts));
}

std::size_t Bpe::encode_some(std::string_view text, bool last,
                             std::vector<std::int32_t>& ids) const {
  // Cache of words seen before and the place of their ids. Texts repeat words: 20 MB of sources and
  // documents take 0.8 s instead of 2.1 s.
  struct Range {
    std::size_t begin, size;
  };
  std::unordered_map<std::string_view, Range> seen;
  constexpr std::size_t kMaxSeen = 1 << 16;

  Word merging(*this);
  Splitter parts(text, last, special_);
  while (const auto part = parts.next()) {
    if (part->special >= 0) {
      ids.push_back(model_.special[usize(part->special)]);
      continue;
    }
    if (part->text.size() == 1) {
      ids.push_back(byte_ids_[static_cast<unsigned char>(part->text[0])]);
      continue;
    }
    const auto [place, is_new] = seen.try_emplace(part->text);
    Range& range = place->second;
    if (is_new) {
      range.begin = ids.size();
      merging.encode(part->text, ids);
      range.size = ids.size() - range.begin;
      if (seen.size() == kMaxSeen) seen.clear();
    } else {
      for (std::size_t i = 0; i < range.size; ++i) ids.push_back(ids[range.begin + i]);
    }
  }
  return parts.consumed();
}

std::int32_t Bpe::find(std::string_view token) const {
  const auto found = ids_.find(token);
  return found == ids_.end() ? -1 : found->second;
}

}  // namespace tensorgrad::io
