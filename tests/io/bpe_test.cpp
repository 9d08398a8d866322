// Byte pairs against plain Python (bpe_cases.h): words, ids, and training; and texts that arrive in
// pieces.
#include <gtest/gtest.h>

#include <random>

#include "io/bpe_split.h"
#include "io/byte_characters.h"
#include "io/unicode.h"
#include "support/sha256.h"
#include "tensorgrad/tokenizer.h"
#include "tests/io/bpe_cases.h"

namespace tensorgrad {
namespace {

using Ids = std::vector<std::int32_t>;

const std::vector<std::string> kSpecial = {"<|endoftext|>", "<|pad|>"};

const Tokenizer& learned() {
  static const Tokenizer tokenizer =
      Tokenizer::read_bpe(kBpe / "vocab.json", kBpe / "merges.txt", kSpecial);
  return tokenizer;
}

// The lines that write_bpe() would write, without the first.
std::vector<std::string> merges_of(const Tokenizer& tokenizer) {
  return nlohmann::json::parse(tokenizer.to_json())["merges"];
}

TEST(Bpe, KindsOfCharactersAreUnicodes) {
  std::string kinds;
  for (char32_t code = 0; code < 0x110000; ++code) kinds += "LNSo"[io::kind_of(code)];
  Sha256 hash;
  hash.update(std::as_bytes(std::span(kinds)));
  EXPECT_EQ(hash.finish(), bpe_cases()["characters"]["sha256"])
      << "the tables are of another Unicode than " << bpe_cases()["characters"]["unicode"];
}

TEST(Bpe, WordsAreThoseOfTheRegularExpression) {
  for (const auto& one : bpe_cases()["words"]) {
    const std::string text = text_of(one);
    std::vector<std::string> words, expected;
    for (std::string_view rest = text; !rest.empty(); rest.remove_prefix(words.back().size()))
      words.emplace_back(rest.substr(0, io::word_length(rest, true)));
    for (const auto& word : one["words"]) expected.push_back(from_hex(word.get<std::string>()));
    EXPECT_EQ(words, expected) << one["text"];
  }
}

TEST(Bpe, IdsAreThoseOfPlainPython) {
  const Tokenizer scrambled =
      Tokenizer::read_bpe(kBpe / "scrambled_vocab.json", kBpe / "scrambled_merges.txt");
  std::size_t cases = 0;
  for (const auto& [name, tokenizer] :
       {std::pair<const char*, const Tokenizer&>{"learned", learned()}, {"scrambled", scrambled}}) {
    for (const auto& one : bpe_cases()[name]) {
      const std::string text = text_of(one);
      EXPECT_EQ(tokenizer.encode(text), one["ids"].get<Ids>()) << name << " " << one["text"];
      EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
      ++cases;
    }
  }
  EXPECT_GT(cases, 400u);
}

TEST(Bpe, TrainingLearnsWhatPlainPythonLearns) {
  Tokenizer::Training training(kSpecial);
  training.add(file_text(kBpe / "text.txt"));
  const Tokenizer tokenizer = training.finish(380);
  EXPECT_EQ(tokenizer.to_json(), learned().to_json());
  for (const auto& one : bpe_cases()["trainings"]) {
    Tokenizer::Training small(one["special"].get<std::vector<std::string>>());
    small.add(text_of(one));
    const Tokenizer result = small.finish(one["vocab"].get<std::int64_t>());
    EXPECT_EQ(merges_of(result), one["merges"].get<std::vector<std::string>>()) << one["text"];
    EXPECT_LE(result.vocab_size(), one["vocab"].get<std::int64_t>());
  }
}

TEST(Bpe, TrainingTakesATextInPiecesOfAnySize) {
  const std::string text = file_text(kBpe / "text.txt");
  std::mt19937 random(5);
  for (const std::size_t longest : {1u, 2u, 7u, 100u, 1000u}) {
    Tokenizer::Training training(kSpecial);
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t size = random() % longest + 1;
      training.add(std::string_view(text).substr(at, size));
      at += size;
    }
    EXPECT_EQ(training.finish(380).to_json(), learned().to_json()) << longest;
  }
}

TEST(Bpe, TrainingFillsTheVocabularyExactly) {
  const std::string text = file_text(kBpe / "text.txt");
  for (const std::int64_t vocab : {258, 259, 300}) {
    Tokenizer::Training training(kSpecial);
    training.add(text);
    const Tokenizer tokenizer = training.finish(vocab);
    EXPECT_EQ(tokenizer.vocab_size(), vocab);
    EXPECT_EQ(tokenizer.find("<|endoftext|>"), vocab - 2);
    EXPECT_EQ(tokenizer.find("<|pad|>"), vocab - 1);
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
  }
}

TEST(Bpe, TrainingGoesOnAfterItsEnd) {
  Tokenizer::Training training;
  training.add("abab");
  EXPECT_EQ(training.finish(300).vocab_size(), 257);
  training.add("cdcd");  // another text, not the rest of a word "ababcdcd"
  const Tokenizer both = training.finish(300);
  EXPECT_EQ(merges_of(both), (std::vector<std::string>{"a b", "c d"}));
}

TEST(Bpe, ASpecialTokenMayBeAByte) {
  Tokenizer::Training training({"\n", "##"});
  training.add("ab\nab\nab##ab");
  const Tokenizer tokenizer = training.finish(258);
  EXPECT_EQ(tokenizer.vocab_size(), 258);
  EXPECT_EQ(tokenizer.find("\n"), 10);
  EXPECT_EQ(tokenizer.encode("ab\n\nab##"), (Ids{256, 10, 10, 256, 257}));
}

// ---- texts in pieces

// The ids when the text comes in pieces of at most `longest` bytes.
Ids in_pieces(const Tokenizer& tokenizer, std::string_view text, std::size_t longest,
              std::mt19937& random) {
  Ids ids;
  std::string rest;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = random() % longest + 1;
    rest += text.substr(at, size);
    at += size;
    rest.erase(0, tokenizer.encode_some(rest, false, ids));
  }
  EXPECT_EQ(tokenizer.encode_some(rest, true, ids), rest.size());
  return ids;
}

TEST(Bpe, PiecesOfATextGiveTheSameIds) {
  // Special tokens that share a prefix, begin inside each other, or contain spaces, quotes and half
  // of a character.
  const std::vector<std::string> special = {
      "<|endoftext|>", "<|pad|>", "<|", "<|end", "ab", "bab", " x", "'r", "\n", "\xe5\x85", "t|>"};
  const Tokenizer greedy = Tokenizer::read_bpe(kBpe / "vocab.json", kBpe / "merges.txt", special);
  std::mt19937 random(11);
  for (const char* list : {"learned", "words", "scrambled"}) {
    for (const auto& one : bpe_cases()[list]) {
      const std::string text = text_of(one);
      for (const Tokenizer* tokenizer : {&learned(), &greedy}) {
        const Ids expected = tokenizer->encode(text);
        EXPECT_EQ(tokenizer->decode(expected), text);
        for (const std::size_t longest : {1u, 3u, 20u})
          EXPECT_EQ(in_pieces(*tokenizer, text, longest, random), expected) << one["text"];
      }
    }
  }
}

TEST(Bpe, WhatIsCertainIsNotKeptBack) {
  struct Row {
    const char* text;
    std::size_t certain;
  };
  for (const Row& row : {Row{"", 0},
                         {"one", 0},
                         {"one ", 3},
                         {"one two", 3},
                         {"one two.", 7},
                         {"'s", 2},
                         {"'r", 0},
                         {"it'", 2},
                         {"it's", 4},
                         {"a  ", 1},
                         {"a  b", 2},
                         {"a\n\nb", 3},
                         {"a.\xe5\x85", 1},
                         {"a <|endo", 1},
                         {"a <|endoftext|>", 15},
                         {"a .<|endo", 1},
                         {"a<|endof ", 8}}) {
    Ids ids;
    EXPECT_EQ(learned().encode_some(row.text, false, ids), row.certain) << row.text;
    EXPECT_EQ(learned().decode(ids), std::string_view(row.text).substr(0, row.certain));
  }
}

TEST(Bpe, AnyBytesComeBack) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    std::string text(random() % 200, '\0');
    const unsigned range = round % 3 == 0 ? 256 : round % 3 == 1 ? 128 : 8;
    const unsigned first = round % 3 == 2 ? random() % 249 : 0;
    for (char& byte : text) byte = static_cast<char>(first + random() % range);
    EXPECT_EQ(learned().decode(learned().encode(text)), text);
  }
}

TEST(Bpe, ManyWordsAreEncodedLikeFew) {
  std::string text;
  Ids expected;
  for (int i = 0; i < 140'000; ++i) {  // more different words than are remembered; then again
    const std::string word = " the" + std::to_string(i % 70'000);
    text += word;
    const Ids ids = learned().encode(word);
    expected.insert(expected.end(), ids.begin(), ids.end());
  }
  EXPECT_EQ(learned().encode(text), expected);
}

TEST(Bpe, LongWordsTakeNoLongerThanTheirBytes) {
  // A million letters: with quadratic merging, this test would take an hour.
  const std::string text(1'000'000, 'a');
  Tokenizer::Training training;
  training.add(text);
  const Tokenizer tokenizer = training.finish(270);
  EXPECT_EQ(tokenizer.token(269), std::string(16384, 'a'));
  const Ids ids = tokenizer.encode(text);
  EXPECT_EQ(ids.size(), 63u);  // 61 * 2^14 + 2^9 + 2^6
  EXPECT_EQ(tokenizer.decode(ids), text);
}

TEST(Bpe, SpecialTokensAreTheLongestThatBeginFirst) {
  const Tokenizer tokenizer =
      Tokenizer::read_bpe(kBpe / "vocab.json", kBpe / "merges.txt", {"<a>", "<a><b>", "><", "q r"});
  EXPECT_EQ(tokenizer.vocab_size(), 384);
  EXPECT_EQ(tokenizer.encode("<a><b><a>"), (Ids{381, 380}));
  EXPECT_EQ(tokenizer.encode("><a>q r"), (Ids{382, 'a', '>', 383}));
  EXPECT_EQ(tokenizer.find("q r"), 383);
  EXPECT_EQ(tokenizer.token(383), "q r");
}

TEST(Bpe, BytesAreWrittenAsPrintableCharacters) {
  EXPECT_EQ(io::printable(std::string_view("\0 a\n\x7f\xa0\xad\xff", 8)), "ĀĠaĊġłŃÿ");
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  EXPECT_EQ(io::bytes_of(io::printable(all)), all);
  for (const char* none : {" ", "\xc5\x84", "光", "\xff", "\xc2\xa0", "\xc2\xad"})
    EXPECT_EQ(io::bytes_of(none), std::nullopt) << none;
}

}  // namespace
}  // namespace tensorgrad
