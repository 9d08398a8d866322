// Learns byte pairs: counts the words of the text, then repeatedly merges the most frequent pair of
// neighbours. Memory grows with the number of distinct words. A merge touches only the words that
// contain its pair.
#include <algorithm>
#include <unordered_map>
#include <utility>

#include "io/bpe.h"
#include "io/bpe_split.h"
#include "io/named.h"
#include "support/fail.h"
#include "support/integers.h"

namespace tensorgrad {
namespace {

using io::BpeModel;
using io::pair_key;

struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const {
    return std::hash<std::string_view>()(text);
  }
};
using WordCounts = std::unordered_map<std::string, std::int64_t, TextHash, std::equal_to<>>;

struct Word {
  std::vector<std::int32_t> tokens;
  std::int64_t count;
};

// A pair of neighbours: its count, and the words that contain it. Words that no longer contain it
// stay listed.
struct Pair {
  std::int64_t count = 0;
  std::vector<std::uint32_t> words;
};

class Learner {
 public:
  explicit Learner(const WordCounts& counts) {
    for (int byte = 0; byte < 256; ++byte) {
      model_.tokens.emplace_back(1, static_cast<char>(byte));
      ids_.emplace(model_.tokens.back(), byte);
    }
    for (const auto& [text, count] : counts) {
      if (text.size() < 2) continue;
      Word word{.count = count};
      for (const char byte : text) word.tokens.push_back(static_cast<unsigned char>(byte));
      const auto index = static_cast<std::uint32_t>(words_.size());
      for (std::size_t i = 0; i + 1 < word.tokens.size(); ++i)
        count_pair(word.tokens[i], word.tokens[i + 1], count, index);
      words_.push_back(std::move(word));
    }
    for (const auto& [key, pair] : pairs_) queue(key, pair.count);
  }

  // Merges until there are that many tokens, or no pair occurs twice.
  BpeModel learn(std::size_t tokens) && {
    std::uint64_t key = 0;
    while (model_.tokens.size() < tokens && next_pair(key)) merge(key);
    return std::move(model_);
  }

 private:
  struct Candidate {
    std::int64_t count;
    std::uint64_t key;
  };

  static std::int32_t left_of(std::uint64_t key) { return static_cast<std::int32_t>(key >> 32); }
  static std::int32_t right_of(std::uint64_t key) {
    return static_cast<std::int32_t>(key & 0xffffffff);
  }
  const std::string& bytes(std::int32_t id) const { return model_.tokens[usize(id)]; }

  // Heap order: the pair to merge next is on top.
  bool later(const Candidate& a, const Candidate& b) const {
    if (a.count != b.count) return a.count < b.count;
    if (left_of(a.key) != left_of(b.key)) return bytes(left_of(a.key)) > bytes(left_of(b.key));
    return bytes(right_of(a.key)) > bytes(right_of(b.key));
  }
  void queue(std::uint64_t key, std::int64_t count) {
    if (count < 2) return;
    queue_.push_back({count, key});
    std::push_heap(queue_.begin(), queue_.end(),
                   [this](const Candidate& a, const Candidate& b) { return later(a, b); });
  }

  // Counts in the queue may be stale. A pair that became rarer is queued again with its new count;
  // a pair that became more frequent has a second entry.
  bool next_pair(std::uint64_t& key) {
    while (!queue_.empty()) {
      const Candidate top = queue_.front();
      std::pop_heap(queue_.begin(), queue_.end(),
                    [this](const Candidate& a, const Candidate& b) { return later(a, b); });
      queue_.pop_back();
      const auto pair = pairs_.find(top.key);
      const std::int64_t count = pair == pairs_.end() ? 0 : pair->second.count;
      if (count == top.count) return key = top.key, true;
      if (count < top.count) queue(top.key, count);
    }
    return false;
  }

  void count_pair(std::int32_t left, std::int32_t right, std::int64_t count, std::uint32_t word) {
    Pair& pair = pairs_[pair_key(left, right)];
    pair.count += count;
    if (pair.words.empty() || pair.words.back() != word) pair.words.push_back(word);
  }
  void uncount_pair(std::int32_t left, std::int32_t right, std::int64_t count) {
    pairs_[pair_key(left, right)].count -= count;
  }

  void merge(std::uint64_t key) {
    const std::int32_t left = left_of(key), right = right_of(key);
    const std::string both = bytes(left) + bytes(right);
    // Another pair may have produced the same token.
    const auto [known, is_new] =
        ids_.emplace(both, static_cast<std::int32_t>(model_.tokens.size()));
    const std::int32_t result = known->second;
    if (is_new) model_.tokens.push_back(both);
    model_.merges.push_back({left, right, result});

    const std::vector<std::uint32_t> places = std::move(pairs_[key].words);
    grown_.clear();
    for (const std::uint32_t index : places) merge_in(index, left, right, result);
    pairs_.erase(key);
    std::sort(grown_.begin(), grown_.end());
    grown_.erase(std::unique(grown_.begin(), grown_.end()), grown_.end());
    for (const std::uint64_t pair : grown_) queue(pair, pairs_[pair].count);
  }

  // Each merge removes up to three pairs and adds up to two. Neighbours to the left are already
  // merged.
  void merge_in(std::uint32_t index, std::int32_t left, std::int32_t right, std::int32_t result) {
    Word& word = words_[index];
    std::vector<std::int32_t>& tokens = word.tokens;
    std::size_t out = 0;
    for (std::size_t in = 0; in < tokens.size(); ++in, ++out) {
      if (tokens[in] != left || in + 1 == tokens.size() || tokens[in + 1] != right) {
        tokens[out] = tokens[in];
        continue;
      }
      uncount_pair(left, right, word.count);
      if (out > 0) {
        uncount_pair(tokens[out - 1], left, word.count);
        grow(tokens[out - 1], result, word.count, index);
      }
      if (in + 2 < tokens.size()) {
        uncount_pair(right, tokens[in + 2], word.count);
        grow(result, tokens[in + 2], word.count, index);
      }
      tokens[out] = result;
      ++in;
    }
    tokens.resize(out);
  }
  void grow(std::int32_t left, std::int32_t right, std::int64_t count, std::uint32_t word) {
    count_pair(left, right, count, word);
    grown_.push_back(pair_key(left, right));
  }

  BpeModel model_;
  std::unordered_map<std::string, std::int32_t> ids_;
  std::vector<Word> words_;
  std::unordered_map<std::uint64_t, Pair> pairs_;
  std::vector<Candidate> queue_;
  std::vector<std::uint64_t> grown_;  // pairs that the current merge created
};

}  // namespace

struct Tokenizer::Training::Counts {
  io::SpecialTokens special;
  WordCounts words;
  std::string rest;            // depends on the text to come
  std::size_t look_again = 0;  // size at which the rest is examined again

  // Counts the words of `text` that are certain; returns their bytes.
  std::size_t count(std::string_view text, bool last) {
    io::Splitter parts(text, last, special);
    while (const auto part = parts.next()) {
      if (part->special >= 0) continue;
      const auto found = words.find(part->text);
      if (found != words.end())
        ++found->second;
      else
        words.emplace(part->text, 1);
    }
    return parts.consumed();
  }
};

Tokenizer::Training::Training(std::vector<std::string> special)
    : counts_(std::make_unique<Counts>()) {
  counts_->special = io::named("Training", [&] { return io::SpecialTokens(std::move(special)); });
}

Tokenizer::Training::~Training() = default;
Tokenizer::Training::Training(Training&&) noexcept = default;
Tokenizer::Training& Tokenizer::Training::operator=(Training&&) noexcept = default;

void Tokenizer::Training::add(std::string_view piece) {
  std::string& rest = counts_->rest;
  rest += piece;
  if (rest.size() < counts_->look_again) return;
  rest.erase(0, counts_->count(rest, false));
  // A word that spans many pieces is examined each time its size doubles, not at every piece.
  counts_->look_again = 2 * rest.size();
}

Tokenizer Tokenizer::Training::finish(std::int64_t vocab) {
  const std::vector<std::string>& special = counts_->special.texts();
  const auto least = static_cast<std::int64_t>(256 + special.size());
  if (vocab < least)
    user_error("finish: vocab is {}, but 256 bytes and {} special tokens need {}", vocab,
               special.size(), least);
  counts_->count(std::exchange(counts_->rest, {}), true);
  const auto multi_byte = [](const std::string& text) { return text.size() > 1; };
  const auto added = std::count_if(special.begin(), special.end(), multi_byte);
  BpeModel model = Learner(counts_->words).learn(usize(vocab - added));
  io::add_special(model, special);
  return Tokenizer(std::make_shared<io::Bpe>(std::move(model)));
}

}  // namespace tensorgrad
