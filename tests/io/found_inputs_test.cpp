// Replays the inputs that the fuzzers of tests/fuzzers found, and their seeds.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/fuzzers/checkpoint_check.h"
#include "tests/fuzzers/safetensors_check.h"
#include "tests/fuzzers/torch_config_check.h"
#include "tests/fuzzers/vocabulary_check.h"
#include "tests/io/temporary_folder.h"

namespace tensorgrad {
namespace {

namespace fs = std::filesystem;

void replay(const std::string& target, std::string (*check)(std::string_view)) {
  const fs::path fuzzers = fs::path(TENSORGRAD_SOURCE_DIR) / "tests/fuzzers";
  int inputs = 0;
  for (const fs::path& folder : {fuzzers / (target + "_seeds"), fuzzers / "found" / target}) {
    if (!fs::exists(folder)) continue;
    for (const auto& entry : fs::directory_iterator(folder)) {
      EXPECT_EQ(check(content(entry.path())), "") << entry.path();
      ++inputs;
    }
  }
  EXPECT_GT(inputs, 0);
}

TEST(FoundInputs, OfSafetensors) { replay("safetensors", fuzzers::check_safetensors); }
TEST(FoundInputs, OfCheckpoints) { replay("checkpoint", fuzzers::check_checkpoint); }
TEST(FoundInputs, OfVocabularies) { replay("vocabulary", fuzzers::check_vocabulary); }
TEST(FoundInputs, OfTorchConfigs) { replay("torch_config", fuzzers::check_torch_config); }

// Tests of the checks themselves.
TEST(FoundInputs, BadErrorsAreNoticed) {
  EXPECT_EQ(fuzzers::check_error("input: cut off"), "");
  EXPECT_EQ(fuzzers::check_error("cut off"), "an error without its file: cut off");
  EXPECT_EQ(fuzzers::check_error("input: \x1b[2J"), "an error with control characters");
  EXPECT_EQ(fuzzers::check_error("input: " + std::string(1000, 'x')), "an error that is too long");
}

TEST(FoundInputs, BadErrorsOfVocabulariesAreNoticed) {
  EXPECT_EQ(fuzzers::wrong_with_error("x: a\n  hint: b", "x"), "");
  EXPECT_EQ(fuzzers::wrong_with_error("a", "x"), "an error that does not say where: a");
  EXPECT_EQ(fuzzers::wrong_with_error("x: a\tb", "x"), "an error with control characters");
  EXPECT_EQ(fuzzers::wrong_with_error("x: \xff", "x"), "an error that is not UTF-8");
  EXPECT_EQ(fuzzers::wrong_with_error("x: " + std::string(500, 'a'), "x"),
            "an error that is too long");
}

TEST(FoundInputs, PlainMergingIsAnotherWay) {
  const Tokenizer tokenizer =
      Tokenizer::parse_bpe(fuzzers::vocabulary_of(R"(+,"ab":256,"ba":257})"), "b a\na b\n");
  EXPECT_EQ(fuzzers::plainly_encoded(tokenizer, "aba bab"), tokenizer.encode("aba bab"));
  EXPECT_EQ(fuzzers::plainly_encoded(tokenizer, "aba"), (fuzzers::Ids{'a', 257}));
}

}  // namespace
}  // namespace tensorgrad
