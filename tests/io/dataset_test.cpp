// Text as training data: the split, the order of windows, and that a file of any size gives the
// same as text in memory.
#include "tensorgrad/dataset.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "tests/support/error_of.h"

namespace tensorgrad {
namespace {

namespace fs = std::filesystem;

Tokens counting(std::int64_t count) {
  std::vector<std::int32_t> ids(static_cast<std::size_t>(count));
  std::iota(ids.begin(), ids.end(), 0);
  return Tokens(ids);
}

std::vector<std::int32_t> all_of(const Tokens& tokens) {
  std::vector<std::int32_t> ids(static_cast<std::size_t>(tokens.size()));
  tokens.read(0, ids);
  return ids;
}

class DatasetFile : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder); }
  void TearDown() override { fs::remove_all(folder); }
  fs::path write(const std::string& text, const char* name = "text.txt") const {
    std::ofstream(folder / name, std::ios::binary) << text;
    return folder / name;
  }
  const fs::path folder = fs::path(testing::TempDir()) / "tensorgrad dataset";
};

TEST(Windows, EveryWindowComesOnceInARound) {
  const Tokens tokens = counting(1003);
  const std::int64_t n = windows_per_round(tokens, 10);
  EXPECT_EQ(n, 99);
  std::set<std::int32_t> offsets;
  std::set<std::vector<std::int32_t>> orders;
  for (std::int64_t round = 0; round < 5; ++round) {
    std::set<std::int32_t> starts;
    std::vector<std::int32_t> order;
    for (std::int64_t i = 0; i < n; ++i) {
      const WindowBatch batch = windows(tokens, {.batch = 1, .length = 10}, round * n + i);
      for (std::size_t t = 0; t < 10; ++t) {
        EXPECT_EQ(batch.tokens[t], batch.tokens[0] + static_cast<std::int32_t>(t));
        EXPECT_EQ(batch.targets[t], batch.tokens[t] + 1);
      }
      starts.insert(batch.tokens[0]);
      order.push_back(batch.tokens[0] / 10);
    }
    ASSERT_EQ(starts.size(), static_cast<std::size_t>(n));
    // They are adjacent, so that they share no token.
    EXPECT_EQ(*starts.rbegin() - *starts.begin(), (n - 1) * 10);
    offsets.insert(*starts.begin());
    orders.insert(order);
  }
  EXPECT_GT(offsets.size(), 2u) << "rounds are cut at the same places";
  EXPECT_EQ(orders.size(), 5u) << "rounds have the same order";
}

TEST(Windows, ABatchIsItsWindowsOneByOne) {
  const Tokens tokens = counting(500);
  const WindowBatch batch =
      windows(tokens, {.batch = 40, .length = 16, .seed = 3}, 11);  // reaches into the second round
  for (std::int64_t b = 0; b < 40; ++b) {
    const WindowBatch one = windows(tokens, {.batch = 1, .length = 16, .seed = 3}, 11 + b);
    EXPECT_TRUE(std::equal(one.tokens.begin(), one.tokens.end(), batch.tokens.begin() + b * 16));
    EXPECT_TRUE(std::equal(one.targets.begin(), one.targets.end(), batch.targets.begin() + b * 16));
  }
  EXPECT_NE(batch.tokens, windows(tokens, {.batch = 40, .length = 16, .seed = 4}, 11).tokens);
}

TEST(Windows, ShortTexts) {
  for (std::int64_t count = 9; count < 40; ++count)
    for (std::int64_t i = 0; i < 20; ++i)
      EXPECT_LT(windows(counting(count), {.batch = 1, .length = 8}, i).targets.back(), count);
  EXPECT_EQ(error_of([] { windows(counting(8), {.batch = 1, .length = 8}, 0); }),
            "windows: the text has 8 tokens, a window of 8 and the token after it need 9\n  hint: "
            "a shorter context");
  EXPECT_EQ(error_of([] { windows(counting(9), {.batch = 0, .length = 8}, 0); }),
            "windows: the batch must be at least 1: 0");
  EXPECT_EQ(error_of([] { windows(counting(9), {.batch = 1, .length = 0}, 0); }),
            "windows: the length must be at least 1: 0");
  EXPECT_EQ(error_of([] { windows(counting(9), {.batch = 1, .length = 8}, -1); }),
            "windows: the position must not be negative: -1");
  std::vector<std::int32_t> out(3);
  EXPECT_EQ(error_of([&] { counting(9).read(7, out); }),
            "Tokens: the range 7 to 10 is out of bounds: there are 9 tokens");
}

TEST(TextData, IsCutAtALine) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "line " + std::to_string(i) + "\n";
  const TextData data = TextData::of(text, Tokenizer::bytes(), {.validation = 0.2});
  const std::string training = Tokenizer::bytes().decode(all_of(data.training()));
  const std::string validation = Tokenizer::bytes().decode(all_of(data.validation()));
  EXPECT_EQ(training + validation, text);
  EXPECT_EQ(training.back(), '\n');
  EXPECT_NEAR(static_cast<double>(validation.size()) / static_cast<double>(text.size()), 0.2, 0.02);
  EXPECT_EQ(data.training_bytes(), static_cast<std::int64_t>(training.size()));
  EXPECT_EQ(data.validation_bytes(), static_cast<std::int64_t>(validation.size()));
  EXPECT_EQ(TextData::of(text, Tokenizer::bytes(), {.validation = 0}).validation().size(), 0);
}

TEST(TextData, WithoutLinesIsCutBetweenCharacters) {
  std::string text;
  for (int i = 0; i < 101; ++i) text += "ü";
  const Tokenizer chars = Tokenizer::characters(text);
  const TextData data = TextData::of(text, chars, {.validation = 0.3});
  EXPECT_EQ(data.training().size() + data.validation().size(), 101);
  for (const std::int32_t id : all_of(data.validation())) EXPECT_EQ(id, 1);
}

// The end of the text is in no training window, in any round.
TEST(TextData, ValidationDoesNotLeak) {
  std::string text(900, 'a');
  text += "\n" + std::string(100, 'b');
  const TextData data = TextData::of(text, Tokenizer::bytes(), {.validation = 0.1});
  for (std::int64_t i = 0; i < 500; ++i) {
    const WindowBatch batch = windows(data.training(), {.batch = 1, .length = 17}, i);
    EXPECT_EQ(std::count(batch.tokens.begin(), batch.tokens.end(), 'b') +
                  std::count(batch.targets.begin(), batch.targets.end(), 'b'),
              0);
  }
  EXPECT_EQ(data.validation().size(), 100);
}

// Larger than the pieces that are encoded at a time, with multi-byte characters across the
// boundaries.
TEST_F(DatasetFile, GivesWhatTheTextGives) {
  std::mt19937 random(5);
  const std::vector<std::string> parts = {"word", " ", "\n",    "  ",    "ß",
                                          "字",   "😀", "don't", " 1234", "!?"};
  std::string text;
  while (text.size() < (std::size_t{5} << 20) / 2) text += parts[random() % parts.size()];
  const fs::path path = write(text);
  Tokenizer::Training training;
  training.add(std::string_view(text).substr(0, 20000));
  for (const Tokenizer& tokenizer :
       {Tokenizer::bytes(), Tokenizer::characters(text), training.finish(300)}) {
    SCOPED_TRACE(tokenizer.kind());
    const TextData memory = TextData::of(text, tokenizer), file = TextData::read(path, tokenizer);
    const TextData cached = TextData::read(path, tokenizer, {.cache = folder / "tokens.bin"});
    const std::vector<std::int32_t> ids = all_of(memory.training());
    EXPECT_EQ(ids, tokenizer.encode(std::string_view(text).substr(
                       0, static_cast<std::size_t>(memory.training_bytes()))));
    EXPECT_TRUE(ids == all_of(file.training()) && ids == all_of(cached.training()));
    EXPECT_TRUE(all_of(memory.validation()) == all_of(cached.validation()));
    EXPECT_EQ(memory.fingerprint(), file.fingerprint());
    EXPECT_EQ(memory.fingerprint(), cached.fingerprint());
    EXPECT_EQ(training_bytes_of(path, 0.1), memory.training_bytes());
  }
}

TEST_F(DatasetFile, ACacheServesItsTextAlone) {
  const fs::path path = write("one two three four five\n"), cache = folder / "tokens.bin";
  const auto read = [&](double validation) {
    return TextData::read(path, Tokenizer::bytes(), {.validation = validation, .cache = cache});
  };
  const std::string first = read(0.1).fingerprint();
  const auto made = fs::last_write_time(cache);
  EXPECT_EQ(read(0.1).fingerprint(), first);
  EXPECT_EQ(fs::last_write_time(cache), made) << "made again for nothing";
  EXPECT_NE(read(0.5).fingerprint(), first);
  write("one two three four six!\n");  // as long as before
  fs::last_write_time(path, fs::last_write_time(path) + std::chrono::seconds(2));
  EXPECT_EQ(Tokenizer::bytes().decode(all_of(read(0).training())), "one two three four six!\n");
  // Damaged, or of another text: written again.
  const std::string good = read(0.1).fingerprint();
  fs::resize_file(cache, fs::file_size(cache) - 1);
  EXPECT_EQ(read(0.1).fingerprint(), good);
  std::ofstream(cache) << std::string(5000, 'x');
  EXPECT_EQ(read(0.1).fingerprint(), good);
  // A changed id: written again.
  std::fstream ids(cache, std::ios::in | std::ios::out | std::ios::binary);
  ids.write("\x7f\x7f", 2), ids.close();
  EXPECT_EQ(read(0.1).fingerprint(), good);
  EXPECT_EQ(Tokenizer::bytes().decode(all_of(read(0).training())), "one two three four six!\n");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 2);
}

TEST_F(DatasetFile, HasToBeWhatWasAskedFor) {
  const fs::path path = write("one two three four five\n"), cache = folder / "tokens.bin";
  const TextData data = TextData::read(path, Tokenizer::bytes(), {.cache = cache});
  write("another text altogether\n");
  // With the cache it works; without it the text is a different one.
  EXPECT_EQ(
      TextData::read(path, Tokenizer::bytes(), {.cache = cache, .fingerprint = data.fingerprint()})
          .fingerprint(),
      data.fingerprint());
  const std::string wrong =
      ": not the text of the checkpoint: its content, its split or its tokenizer differs";
  EXPECT_EQ(error_of([&] {
              TextData::read(path, Tokenizer::bytes(), {.fingerprint = data.fingerprint()});
            }),
            path.string() + wrong);
  EXPECT_EQ(error_of([&] {
              TextData::read(path, Tokenizer::bytes(),
                             {.cache = folder / "other", .fingerprint = data.fingerprint()});
            }),
            path.string() + wrong);
  EXPECT_FALSE(fs::exists(folder / "other"));
}

// A part must not consist of only a heading or only a last line.
TEST(TextData, TheCutStaysNearItsPlace) {
  const TextData heading = TextData::of("Title\n" + std::string(50000, 'x'), Tokenizer::bytes());
  EXPECT_NEAR(static_cast<double>(heading.validation().size()), 5000, 10);
  const TextData ending = TextData::of(std::string(50000, 'x') + "\nEND", Tokenizer::bytes());
  EXPECT_NEAR(static_cast<double>(ending.validation().size()), 5000, 10);
}

TEST_F(DatasetFile, BadFiles) {
  const auto reading = [&](const fs::path& path, double validation = 0.1,
                           const fs::path& cache = {}) {
    return error_of([&] {
      TextData::read(path, Tokenizer::bytes(), {.validation = validation, .cache = cache});
    });
  };
  EXPECT_EQ(reading(folder / "none"),
            (folder / "none").string() + ": cannot read: No such file or directory");
  EXPECT_EQ(reading(folder), folder.string() + ": cannot read: Is a directory");
  EXPECT_EQ(reading(write("", "empty")), (folder / "empty").string() + ": the file is empty");
  EXPECT_EQ(reading("/dev/null"), "/dev/null: cannot read: a character device, not a regular file");
  const fs::path path = write("text\n");
  EXPECT_EQ(reading(path, 1), "TextData: validation must be at least 0 and below 1: 1");
  EXPECT_EQ(reading(path, std::nan("")),
            "TextData: validation must be at least 0 and below 1: nan");
  EXPECT_EQ(reading(path, 0.1, path / "tokens.bin"),
            (path / "tokens.bin").string() + ": cannot write: Not a directory");
  EXPECT_EQ(error_of([] { TextData::of("", Tokenizer::bytes()); }), "TextData: the text is empty");
}

TEST(TextData, UnigramLoss) {
  // Three of id 0 and one of id 1 were seen. One more of each of the three gives probabilities 4/7,
  // 2/7 and 1/7.
  const Tokens from(std::vector<std::int32_t>{0, 0, 0, 1}),
      of(std::vector<std::int32_t>{0, 1, 2, 0});
  const double wanted = -(2 * std::log(4 / 7.0) + std::log(2 / 7.0) + std::log(1 / 7.0)) / 4;
  EXPECT_NEAR(unigram_loss(from, of, 3), wanted, 1e-12);
}

}  // namespace
}  // namespace tensorgrad
