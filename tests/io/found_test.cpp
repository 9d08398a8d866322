// What the fuzzer found once, and the inputs it starts from: nothing of it may be wrong again.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/fuzzers/vocabulary_check.h"
#include "tests/io/bpe_cases.h"

namespace tensorgrad {
namespace {

namespace fs = std::filesystem;

TEST(Found, VocabulariesAreHandledNow) {
  const fs::path folder = fs::path(TENSORGRAD_SOURCE_DIR) / "tests/fuzzers";
  int inputs = 0;
  for (const fs::path& part : {folder / "vocabulary_seeds", folder / "found/vocabulary"}) {
    if (!fs::exists(part)) continue;
    for (const auto& entry : fs::directory_iterator(part)) {
      EXPECT_EQ(fuzzers::check_vocabulary(file_text(entry.path())), "") << entry.path();
      ++inputs;
    }
  }
  EXPECT_GT(inputs, 0);
}

// The check itself.
TEST(Found, BadErrorsAreNoticed) {
  EXPECT_EQ(fuzzers::wrong_with_error("x: a\n  hint: b", "x"), "");
  EXPECT_EQ(fuzzers::wrong_with_error("a", "x"), "an error that does not say where: a");
  EXPECT_EQ(fuzzers::wrong_with_error("x: a\tb", "x"), "an error with control characters");
  EXPECT_EQ(fuzzers::wrong_with_error("x: \xff", "x"), "an error that is not UTF-8");
  EXPECT_EQ(fuzzers::wrong_with_error("x: " + std::string(500, 'a'), "x"),
            "an error that is too long");
}

TEST(Found, PlainMergingIsAnotherWay) {
  const Tokenizer tokenizer =
      Tokenizer::parse_bpe(fuzzers::vocabulary_of(R"(+,"ab":256,"ba":257})"), "b a\na b\n");
  EXPECT_EQ(fuzzers::plainly_encoded(tokenizer, "aba bab"), tokenizer.encode("aba bab"));
  EXPECT_EQ(fuzzers::plainly_encoded(tokenizer, "aba"), (fuzzers::Ids{'a', 257}));
}

}  // namespace
}  // namespace tensorgrad
