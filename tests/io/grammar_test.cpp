// The text of tools/grammar_text: the same bytes everywhere, every line is a sentence, and near
// misses are not.
#include "tests/support/grammar.h"

#include <gtest/gtest.h>

#include <span>
#include <string>

#include "support/sha256.h"
#include "tests/support/run_tool.h"

namespace tensorgrad {
namespace {

constexpr std::size_t kStart = 100'000;

ToolRun grammar_text(const std::string& arguments, const std::string& setting = "") {
  return run_command(setting + " '" TENSORGRAD_SOURCE_DIR "/tools/grammar_text' " + arguments);
}

std::string sha256(std::string_view text) {
  Sha256 hash;
  hash.update(std::as_bytes(std::span(text)));
  return hash.finish();
}

// The line with the first `from` in it replaced.
std::string with(std::string line, std::string_view from, std::string_view to) {
  return line.replace(line.find(from), from.size(), to);
}

TEST(Grammar, EveryAwkWritesTheSameBytes) {
  int awks = 0;
  for (const std::string awk : {"awk", "mawk", "gawk", "original-awk", "busybox awk"}) {
    if (run_command("command -v " + awk.substr(0, awk.find(' '))).exit_code != 0) continue;
    ++awks;
    const ToolRun run = grammar_text("", "AWK='" + awk + "'");
    EXPECT_EQ(run.exit_code, 0) << awk << ": " << run.err;
    EXPECT_EQ(run.out.size(), 1'000'000u) << awk;
    EXPECT_EQ(sha256(run.out.substr(0, kStart)),
              "35530ced7f5b6c8673dcbea170e9e676fef1ae4625057fb6c309a96b726a76ca")
        << awk;
  }
  EXPECT_GE(awks, 1);
}

TEST(Grammar, SizeAndSeedAreArguments) {
  const std::string text = grammar_text("").out;
  EXPECT_EQ(grammar_text("1000000 1").out, text);
  const std::string part = grammar_text("5000").out, other = grammar_text("5000 2").out;
  EXPECT_EQ(part, text.substr(0, part.size()));
  EXPECT_GE(part.size(), 5000u);
  EXPECT_LT(part.size(), 5200u);
  EXPECT_NE(part, other);
  EXPECT_EQ(grammar_text("0").out, "");
}

TEST(Grammar, BadArgumentsAreToldApart) {
  const std::string usage = "\n  usage: tools/grammar_text [BYTES] [SEED] > text.txt\n";
  const std::string digits =
      "grammar_text: BYTES and SEED are whole numbers of at most nine digits, got ";
  for (const std::string bad : {"1e6", "-1", "1234567890", "''"}) {
    const ToolRun run = grammar_text(bad);
    EXPECT_EQ(run.exit_code, 2) << bad;
    EXPECT_EQ(run.err, digits + (bad == "''" ? bad : "'" + bad + "'") + usage);
    EXPECT_EQ(run.out, "");
  }
  EXPECT_EQ(grammar_text("1 2 3").err, "grammar_text: at most two arguments, got 3" + usage);
}

TEST(Grammar, EveryLineIsASentence) {
  for (const std::string arguments : {"", "300000 2", "300000 999999999"}) {
    const std::string text = grammar_text(arguments).out;
    ASSERT_EQ(text.back(), '\n');
    std::size_t lines = 0;
    for (std::size_t at = 0; at < text.size(); ++lines) {
      const std::size_t end = text.find('\n', at);
      const std::string line = text.substr(at, end - at);
      ASSERT_TRUE(is_sentence(line)) << line;
      at = end + 1;
    }
    EXPECT_GT(lines, text.size() / 100);
  }
}

TEST(Grammar, NearMissesAreNoSentences) {
  struct Miss {
    const char *right, *from, *to;
  };
  const Miss kMisses[] = {
      // agreement
      {"the dog runs .", "runs", "run"},
      {"the dogs run here .", "run", "runs"},
      {"every dog sleeps .", "dog", "dogs"},
      {"many geese sleep .", "geese", "goose"},
      {"a fox sleeps .", "a", "some"},
      {"the dogs near the red cat sing .", "sing", "sings"},
      {"the dogs that the small cat sees run .", "sees", "see"},
      {"the dogs that the small cat sees run .", "run", "runs"},
      {"the mouse that follows two cows waits today .", "follows", "follow"},
      {"the mouse that follows two cows waits today .", "waits", "wait"},
      {"some birds ( a cow jumps ) find three frogs .", "jumps", "jump"},
      {"some birds ( a cow jumps ) find three frogs .", "find", "finds"},
      {"the fox [ the ducks ( a dog runs ) wait ] jumps .", "wait", "waits"},
      {"anna and tom see a dog when they wait .", "see", "sees"},
      {"anna and tom see a dog when they wait .", "wait", "waits"},
      {"anna sees a dog when she waits .", "waits", "wait"},
      {"paul says \" a dog runs \" .", "says", "say"},
      {"paul counts from one to two : one two .", "counts", "count"},
      // who it was
      {"anna sees a dog when she waits .", "she", "he"},
      {"anna sees a dog when she waits .", "she", "they"},
      {"tom likes many kind mice . he helps them .", "he", "she"},
      {"tom likes many kind mice . he helps them .", "them", "it"},
      {"tom likes a horse because he hears it .", "it", "them"},
      {"john and lucy find a cat and open their box .", "their", "her"},
      {"john finds a cat and opens his box .", "his", "her"},
      {"john and lucy find a cat and open their box .", "lucy", "john"},
      // words
      {"the dog runs .", "dog", "dragon"},
      {"the dog runs .", "the", "The"},
      {"the dog runs .", "runs", "dog"},
      {"john finds a cat and opens his box .", "box", "cat"},
      // brackets and quotes
      {"some birds ( a cow jumps ) find three frogs .", ") ", ""},
      {"some birds ( a cow jumps ) find three frogs .", "( ", ""},
      {"some birds ( a cow jumps ) find three frogs .", ")", "]"},
      {"the fox [ the ducks ( a dog runs ) wait ] jumps .", ") wait ]", "] wait )"},
      {"the fox [ the ducks ( a dog runs ) wait ] jumps .", "( a dog runs )", "[ a dog runs ]"},
      {"the fox [ the ducks ( a dog runs ) wait ] jumps .", "a dog", "a dog [ a cow runs ]"},
      {"paul says \" a dog runs \" .", "runs \"", "runs"},
      {"paul says \" a dog runs \" .", "says \"", "says '"},
      {"paul says \" anna says ' a dog runs ' \" .", "' \"", "\" '"},
      {"paul says \" anna says ' a dog runs ' \" .", "' \"", "'"},
      // numbers
      {"ruth counts from two to five : two three four five .", "three ", ""},
      {"ruth counts from two to five : two three four five .", "three four", "four three"},
      {"ruth counts from two to five : two three four five .", "five .", "five six ."},
      {"ruth counts from two to five : two three four five .", "four five", "four"},
      {"ruth counts from two to five : two three four five .", "to five", "to six"},
      {"ruth counts from nine to eight : nine eight .", "nine eight", "eight nine"},
      {"ruth counts from nine to eight : nine eight .", "eight : nine eight", "nine : nine"},
      // order and what is missing
      {"the red dog runs .", "red dog", "dog red"},
      {"the dog runs again .", "runs again", "again runs"},
      {"the dog runs .", "the dog runs", "runs the dog"},
      {"the dog near a cat sees the cow .", "near", "near that"},
      {"the dog near a cat sees the cow .", " the cow", ""},
      {"the dog near a cat sees the cow .", "sees the cow ", ""},
      {"the dog runs .", " .", ""},
      {"the dog runs .", " .", "."},
      {"the dog runs .", " .", " . ."},
      {"the dog runs .", " .", " . "},
      {"the dog runs .", "the dog", "the  dog"},
      {"the dog runs .", "the", " the"},
      {"the dog runs .", "the dog runs .", ""},
      {"the dog runs .", "the dog runs .", "."},
      {"the dog runs .", " .", " .\n"},
  };
  for (const Miss& miss : kMisses) {
    EXPECT_TRUE(is_sentence(miss.right)) << miss.right;
    const std::string wrong = with(miss.right, miss.from, miss.to);
    EXPECT_FALSE(is_sentence(wrong)) << wrong;
  }
}

// Leaves out or repeats a word. The result is a sentence only by chance.
TEST(Grammar, TornLinesAreRarelySentences) {
  const std::string text = grammar_text("20000 3").out;
  int torn = 0, accepted = 0;
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
    const std::string line = text.substr(at, text.find('\n', at) - at);
    const std::size_t middle = line.find(' ', line.size() / 2), end = line.find(' ', middle + 1);
    if (end == std::string::npos) continue;
    const std::string before = line.substr(0, middle), word = line.substr(middle, end - middle),
                      after = line.substr(end);
    torn += 2;
    accepted += is_sentence(before + after) + is_sentence(before + word + word + after);
  }
  EXPECT_GT(torn, 400);
  EXPECT_LT(accepted, torn / 10);
}

TEST(Grammar, ShareCountsWholeLines) {
  EXPECT_EQ(share_of_sentences(""), 0);
  EXPECT_EQ(share_of_sentences("the dog runs ."), 0);
  EXPECT_EQ(share_of_sentences("the dog runs .\nthe cat sleeps ."), 0);
  EXPECT_EQ(share_of_sentences("un .\nthe cat sleeps .\nthe do"), 1);
  EXPECT_EQ(share_of_sentences("un .\nthe cat sleeps .\nthe cats sleeps .\n\nthe cats sleep .\n"),
            0.5);
  EXPECT_EQ(share_of_sentences(grammar_text("10000").out.substr(7, 9000)), 1);
}

}  // namespace
}  // namespace tensorgrad
