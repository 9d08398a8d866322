// Tokenizers of all kinds: bytes, characters, and writing and reading.
#include "tensorgrad/tokenizer.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "tests/io/bpe_cases.h"
#include "tests/support/error_of.h"

namespace tensorgrad {
namespace {

namespace fs = std::filesystem;
using Ids = std::vector<std::int32_t>;

std::string all_bytes() {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  return all;
}

Tokenizer small_bpe(std::vector<std::string> special = {"<|end|>"}) {
  Tokenizer::Training training(std::move(special));
  training.add("the cat and the other cat<|end|>\n\nthe \xff\xff");
  return training.finish(270);
}

std::vector<Tokenizer> one_of_each() {
  return {Tokenizer::bytes(), Tokenizer::characters("héllo 光 \t\"\\"), small_bpe()};
}

TEST(Tokenizer, BytesAreThemselves) {
  const Tokenizer tokenizer = Tokenizer::bytes();
  EXPECT_EQ(tokenizer.kind(), "bytes");
  EXPECT_EQ(tokenizer.vocab_size(), 256);
  EXPECT_EQ(tokenizer.encode("a\xff\n"), (Ids{97, 255, 10}));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(all_bytes())), all_bytes());
  EXPECT_EQ(tokenizer.token(0), std::string(1, '\0'));
  EXPECT_EQ(tokenizer.find("\xff"), 255);
  EXPECT_EQ(tokenizer.find(""), -1);
  EXPECT_EQ(tokenizer.find("ab"), -1);
  EXPECT_EQ(tokenizer.to_json(), R"({"kind":"bytes"})");
}

TEST(Tokenizer, CharactersAreInTheOrderOfTheirCodePoints) {
  const Tokenizer tokenizer = Tokenizer::characters("😀bab光é");
  EXPECT_EQ(tokenizer.kind(), "chars");
  EXPECT_EQ(tokenizer.vocab_size(), 6);
  EXPECT_EQ(tokenizer.encode("abé光😀"), (Ids{1, 2, 3, 4, 5}));
  EXPECT_EQ(tokenizer.decode(Ids{5, 1}), "😀a");
  EXPECT_EQ(tokenizer.token(4), "光");
  EXPECT_EQ(tokenizer.find("光"), 4);
  EXPECT_EQ(tokenizer.find("x"), -1);
  EXPECT_EQ(tokenizer.find("ab"), -1);
  EXPECT_EQ(tokenizer.find(""), -1);
  EXPECT_EQ(tokenizer.find("\xff"), -1);
  EXPECT_EQ(tokenizer.to_json(), R"({"kind":"chars","characters":"abé光😀"})");
}

TEST(Tokenizer, OtherCharactersAndBytesThatAreNoneBecomeZero) {
  const Tokenizer tokenizer = Tokenizer::characters("ab");
  EXPECT_EQ(tokenizer.encode("axb光"), (Ids{1, 0, 2, 0}));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("ax")), "a\xef\xbf\xbd");
  EXPECT_EQ(tokenizer.token(0), "\xef\xbf\xbd");
  EXPECT_EQ(tokenizer.find("\xef\xbf\xbd"), 0);
  EXPECT_EQ(tokenizer.encode("\xe5\x85"), (Ids{0, 0}));  // cut off
  EXPECT_EQ(tokenizer.encode("\xe5\x85"
                             "a"),
            (Ids{0, 0, 1}));
  EXPECT_EQ(tokenizer.encode("\xed\xa0\x80"), (Ids{0, 0, 0}));  // a surrogate
  EXPECT_EQ(tokenizer.encode("\xf4\x90\x80\x80"), (Ids{0, 0, 0, 0}));
}

TEST(Tokenizer, TheCharacterForOthersHasOneIdOnly) {
  const Tokenizer tokenizer = Tokenizer::characters(
      "a\xef\xbf\xbd"
      "b");
  EXPECT_EQ(tokenizer.vocab_size(), 3);
  EXPECT_EQ(tokenizer.encode("\xef\xbf\xbd"
                             "b"),
            (Ids{0, 2}));
}

TEST(Tokenizer, CharactersOfATextThatIsNotUtf8AreAnError) {
  struct Row {
    std::string text, byte;
  };
  for (const Row& row : {Row{"ab\xff", "2 is 0xff"},
                         {"\x80", "0 is 0x80"},
                         {"a\xc0\xaf", "1 is 0xc0"},         // overlong '/'
                         {"\xe0\x9f\xbf", "0 is 0xe0"},      // overlong U+07FF
                         {"\xf0\x8f\xbf\xbf", "0 is 0xf0"},  // overlong U+FFFF
                         {"\xed\xa0\x80", "0 is 0xed"},      // U+D800
                         {"\xed\xbf\xbf", "0 is 0xed"},      // U+DFFF
                         {"\xf4\x90\x80\x80", "0 is 0xf4"},  // U+110000
                         {"\xf5\x80\x80\x80", "0 is 0xf5"},
                         {"光\xe5\x85", "3 is 0xe5"},  // cut off
                         {"\xc3(", "0 is 0xc3"}})
    EXPECT_EQ(error_of([&] { Tokenizer::characters(row.text); }),
              "characters: the text is not UTF-8: byte " + row.byte);
  // Just inside the limits.
  EXPECT_EQ(
      Tokenizer::characters("\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf"
                            "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf")
          .vocab_size(),
      10);
}

TEST(Tokenizer, AnEmptyTextIsATextToo) {
  for (const Tokenizer& tokenizer : one_of_each()) {
    EXPECT_EQ(tokenizer.encode(""), Ids{});
    EXPECT_EQ(tokenizer.decode({}), "");
    EXPECT_EQ(tokenizer.find(""), -1);
  }
  EXPECT_EQ(Tokenizer::characters("").vocab_size(), 1);
  EXPECT_EQ(Tokenizer::Training().finish(256).vocab_size(), 256);
}

TEST(Tokenizer, PiecesOfATextGiveTheSameIds) {
  const std::string text = "héllo\xe5\x85 光光\xff\xf0\x9f\x98 hé😀 the cat'r<|end|>";
  for (const Tokenizer& tokenizer : one_of_each()) {
    const Ids expected = tokenizer.encode(text);
    for (std::size_t first = 0; first <= text.size(); ++first) {
      for (std::size_t second = first; second <= text.size(); ++second) {
        Ids ids;
        std::string rest = text.substr(0, first);
        rest.erase(0, tokenizer.encode_some(rest, false, ids));
        rest += text.substr(first, second - first);
        rest.erase(0, tokenizer.encode_some(rest, false, ids));
        rest += text.substr(second);
        EXPECT_EQ(tokenizer.encode_some(rest, true, ids), rest.size());
        ASSERT_EQ(ids, expected) << tokenizer.kind() << " cut at " << first << " and " << second;
      }
    }
  }
}

TEST(Tokenizer, EncodeSomeAppends) {
  for (const Tokenizer& tokenizer : one_of_each()) {
    Ids ids = {7};
    tokenizer.encode_some("hello hello", true, ids);
    Ids expected = tokenizer.encode("hello hello");
    expected.insert(expected.begin(), 7);
    EXPECT_EQ(ids, expected);
  }
}

TEST(Tokenizer, TokensAreFoundByTheirBytes) {
  for (const Tokenizer& tokenizer : one_of_each())
    for (std::int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
      EXPECT_EQ(tokenizer.find(tokenizer.token(id)), id);
      EXPECT_EQ(tokenizer.decode(Ids{id}), tokenizer.token(id));
    }
}

TEST(Tokenizer, IdsOutOfRangeAreErrors) {
  const Tokenizer tokenizer = small_bpe();
  ASSERT_EQ(tokenizer.vocab_size(), 262);
  EXPECT_EQ(error_of([&] {
              tokenizer.decode(Ids{1, 262});
            }),
            "decode: id 262 is out of range, the vocabulary has 262 tokens");
  EXPECT_EQ(error_of([&] { tokenizer.decode(Ids{-1}); }),
            "decode: id -1 is out of range, the vocabulary has 262 tokens");
  EXPECT_EQ(error_of([&] { tokenizer.token(2147483647); }),
            "token: id 2147483647 is out of range, the vocabulary has 262 tokens");
  EXPECT_EQ(error_of([&] { Tokenizer::bytes().token(256); }),
            "token: id 256 is out of range, the vocabulary has 256 tokens");
}

TEST(Tokenizer, JsonHoldsAllOfIt) {
  for (const Tokenizer& tokenizer : one_of_each()) {
    const std::string json = tokenizer.to_json();
    const Tokenizer again = Tokenizer::from_json(json);
    EXPECT_EQ(again.to_json(), json);
    EXPECT_EQ(again.kind(), tokenizer.kind());
    ASSERT_EQ(again.vocab_size(), tokenizer.vocab_size());
    for (std::int32_t id = 0; id < tokenizer.vocab_size(); ++id)
      EXPECT_EQ(again.token(id), tokenizer.token(id));
    for (const std::string& text :
         {all_bytes(), std::string("the cat<|end|> and the other"), std::string("hé<|end")})
      EXPECT_EQ(again.encode(text), tokenizer.encode(text));
  }
}

TEST(Tokenizer, JsonOfBytePairs) {
  Tokenizer::Training training({"<\xff >"});
  training.add(" a a");
  const nlohmann::json json = nlohmann::json::parse(training.finish(300).to_json());
  EXPECT_EQ(json["tokens"].size(), 258u);
  EXPECT_EQ(json["tokens"][' '], "Ġ");
  EXPECT_EQ(json["tokens"][256], "Ġa");
  EXPECT_EQ(json["tokens"][257], "<ÿĠ>");
  EXPECT_EQ(json["merges"], nlohmann::json({"Ġ a"}));
  EXPECT_EQ(json["special"], nlohmann::json({257}));
}

class TokenizerFiles : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(path_); }
  void TearDown() override { fs::remove_all(path_); }
  void write(const char* name, std::string_view text) const {
    std::ofstream(path_ / name, std::ios::binary) << text;
  }
  const fs::path path_ =
      fs::path(testing::TempDir()) /
      (std::string("tg_") + testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(TokenizerFiles, WhatIsWrittenIsReadBack) {
  // With a space, only UTF-8, a character that represents a byte, and a byte that is no character.
  const std::vector<std::string> special = {"<|end|>", "< end >", "<光>", "<é>", "<\xff>", "\n"};
  const Tokenizer tokenizer = small_bpe(special);
  tokenizer.write_bpe(path_ / "vocab.json", path_ / "merges.txt");
  const Tokenizer again = Tokenizer::read_bpe(path_ / "vocab.json", path_ / "merges.txt", special);
  EXPECT_EQ(again.to_json(), tokenizer.to_json());
  const nlohmann::json vocab = nlohmann::json::parse(file_text(path_ / "vocab.json"));
  for (const char* key : {"<|end|>", "< end >", "<光>", "<Ã©>", "<ÿ>", "Ċ", "Ġ", "the"})
    EXPECT_TRUE(vocab.contains(key)) << key;
  EXPECT_EQ(file_text(path_ / "merges.txt").substr(0, 28), "#version: 0.2\nh e\nt he\nĠ c\n");
  EXPECT_EQ(std::distance(fs::directory_iterator(path_), {}), 2) << "a temporary file is left";
}

TEST_F(TokenizerFiles, AreWrittenAsPythonWritesThem) {
  const Tokenizer tokenizer =
      Tokenizer::read_bpe(kBpe / "vocab.json", kBpe / "merges.txt", {"<|pad|>"});
  tokenizer.write_bpe(path_ / "vocab.json", path_ / "merges.txt");
  EXPECT_EQ(file_text(path_ / "merges.txt"), file_text(kBpe / "merges.txt"));
  EXPECT_EQ(nlohmann::ordered_json::parse(file_text(path_ / "vocab.json")),
            nlohmann::ordered_json::parse(file_text(kBpe / "vocab.json")));
}

TEST_F(TokenizerFiles, ThatCannotBeReadOrWrittenAreNamed) {
  const std::string none = (path_ / "none.json").string(), folder = path_.string();
  write("vocab.json", "{}");
  EXPECT_EQ(error_of([&] { Tokenizer::read_bpe(none, none); }),
            none + ": cannot read: No such file or directory");
  EXPECT_EQ(error_of([&] { Tokenizer::read_bpe(path_ / "vocab.json", folder); }),
            folder + ": cannot read: Is a directory");
  const std::string nowhere = (path_ / "no" / "vocab.json").string();
  EXPECT_EQ(error_of([&] { small_bpe().write_bpe(nowhere, path_ / "merges.txt"); }),
            nowhere + ": cannot write: No such file or directory");
  fs::create_directories(path_ / "taken" / "inside");
  const std::string taken = (path_ / "taken").string();
  EXPECT_EQ(error_of([&] { small_bpe().write_bpe(path_ / "v.json", taken); }),
            taken + ": cannot write: Is a directory");
  EXPECT_FALSE(fs::exists(path_ / "taken.tmp"));
}

TEST_F(TokenizerFiles, ErrorsNameTheFileThatIsWrong) {
  const fs::path vocab = kBpe / "vocab.json", merges = kBpe / "merges.txt";
  write("bad", "x");
  const std::string bad = (path_ / "bad").string();
  EXPECT_EQ(error_of([&] { Tokenizer::read_bpe(bad, merges); }).substr(0, bad.size() + 12),
            bad + ": not JSON: ");
  EXPECT_EQ(error_of([&] { Tokenizer::read_bpe(vocab, bad); }),
            bad + ": line 1: not two tokens: \"x\"");
  EXPECT_EQ(error_of([&] { Tokenizer::read_bpe(vocab, merges, {""}); }),
            vocab.string() + ": a special token is empty");
}

TEST_F(TokenizerFiles, HugeOnesAreNotEvenRead) {
  write("huge", "");
  fs::resize_file(path_ / "huge", 100'000'001);  // sparse
  EXPECT_EQ(error_of([&] { Tokenizer::read_bpe(path_ / "huge", path_ / "huge"); }),
            (path_ / "huge").string() + ": 100000001 bytes, at most 100000000 are allowed");
}

TEST(Tokenizer, OtherKindsHaveNoBytePairsToWrite) {
  EXPECT_EQ(error_of([] { Tokenizer::bytes().write_bpe("v", "m"); }),
            "write_bpe: a tokenizer of kind 'bytes' has no byte pairs");
  EXPECT_EQ(error_of([] { Tokenizer::characters("a").write_bpe("v", "m"); }),
            "write_bpe: a tokenizer of kind 'chars' has no byte pairs");
}

TEST(Tokenizer, TrainingNeedsRoomForBytesAndSpecialTokens) {
  EXPECT_EQ(error_of([] { Tokenizer::Training().finish(255); }),
            "finish: vocab is 255, but 256 bytes and 0 special tokens need 256");
  Tokenizer::Training training({"<|end|>", "<|pad|>"});
  training.add("abab");
  EXPECT_EQ(error_of([&] { training.finish(257); }),
            "finish: vocab is 257, but 256 bytes and 2 special tokens need 258");
  EXPECT_EQ(training.finish(300).vocab_size(), 259) << "the text is still there";
}

TEST(Tokenizer, SpecialTokensAreCheckedAtOnce) {
  EXPECT_EQ(error_of([] { Tokenizer::Training({"a", ""}); }), "Training: a special token is empty");
  EXPECT_EQ(error_of([] {
              Tokenizer::Training({"a b", "c", "a b"});
            }),
            "Training: special token \"aĠb\" is given twice");
}

}  // namespace
}  // namespace tensorgrad
