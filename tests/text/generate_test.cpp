// Generation: it continues from its state, emits whole characters, stops where it should, and keeps
// its memory.
#include "tensorgrad/generate.h"

#include <gtest/gtest.h>

#include <functional>

#include "support/utf8.h"
#include "tests/support/error_of.h"
#include "tests/text/common.h"

namespace tensorgrad {
namespace {

// A model with a little training on the text.
const Checkpoint& trained(const std::string& kind) {
  static std::map<std::string, Checkpoint> made;
  if (!made.count(kind)) {
    Trainer trainer = small_trainer(kind, {.steps = 40, .lr = 1e-2});
    while (trainer.step() < 40) {
    }
    made[kind] = trainer.checkpoint();
  }
  return made[kind];
}

Generator small_generator(const std::string& kind, std::int64_t capacity = 0) {
  return Generator(trained(kind), {.device = "cpu", .threads = 1, .capacity = capacity});
}

class GenerateKind : public testing::TestWithParam<const char*> {};

TEST_P(GenerateKind, IsTheSameAgainAndGoesOn) {
  Generator model = small_generator(GetParam());
  const std::string once = generate(model, "the ", {.tokens = 30, .seed = 3});
  EXPECT_EQ(model.heard().size(), 34u);
  model.forget();
  EXPECT_EQ(generate(model, "the ", {.tokens = 30, .seed = 3}), once);
  model.forget();
  EXPECT_NE(generate(model, "the ", {.tokens = 30, .seed = 4}), once);
  // The most likely tokens, in one call and in two: the second call begins with the last token of
  // the first, which is already in the state.
  model.forget();
  const std::string whole = generate(model, "the ", {.tokens = 8, .temperature = 0});
  model.forget();
  std::vector<float> logits = model.listen(model.tokenizer().encode("the "));
  std::string by_hand;
  for (int i = 0; i < 8; ++i) {
    const std::int32_t id = Sampler({.temperature = 0}).pick(logits);
    by_hand += model.tokenizer().token(id);
    logits = model.listen(std::vector<std::int32_t>{id});
  }
  EXPECT_EQ(by_hand, whole);
}

TEST_P(GenerateKind, WhatItRemembersCanBePutBack) {
  Generator model = small_generator(GetParam()), other = small_generator(GetParam());
  model.listen(model.tokenizer().encode("the cat"));
  const NamedArrays memory = model.memory();
  const std::vector<std::int32_t> heard(model.heard().begin(), model.heard().end());
  const std::vector<std::int32_t> next = model.tokenizer().encode(" ");
  const std::vector<float> wanted = model.listen(next);
  other.remember(memory, heard);
  EXPECT_EQ(other.listen(next), wanted);
  EXPECT_EQ(other.heard().size(), heard.size() + 1);
}

INSTANTIATE_TEST_SUITE_P(Kinds, GenerateKind, testing::Values("gpt", "mamba", "mamba2", "hybrid"));

// A full cache restarts with the later half of its tokens.
TEST(Generate, GoesOnPastTheCache) {
  Generator model = small_generator("gpt");  // 12 positions
  std::vector<std::int32_t> ids = model.tokenizer().encode("the cat sat on mat 1\nthe");
  ASSERT_EQ(ids.size(), 24u);
  const std::vector<float> logits = model.listen(std::span(ids).first(13));
  Generator fresh = small_generator("gpt");
  EXPECT_EQ(fresh.listen(std::span(ids).subspan(6, 7)), logits);
  EXPECT_EQ(generate(model, "x", {.tokens = 50}).size(), 50u);
  Generator wide = small_generator("hybrid", 40);
  wide.listen(ids);
  EXPECT_EQ(wide.memory().at("position").ints()[0], 24);
}

TEST(Generate, MambaRemembersTheSameAmount) {
  Generator model = small_generator("mamba");
  const auto size = [&] {
    std::int64_t count = 0;
    for (const auto& [name, array] : model.memory()) count += array.count();
    return count;
  };
  model.listen(std::vector<std::int32_t>(3, 97));
  const std::int64_t after_three = size();
  model.listen(std::vector<std::int32_t>(300, 98));
  EXPECT_EQ(size(), after_three);
}

TEST(Generate, StreamsWhatItReturns) {
  Generator model = small_generator("gpt");
  std::string streamed;
  const std::string text =
      generate(model, "the", {.tokens = 40, .on_text = [&](std::string_view piece) {
                                streamed += piece;
                                return true;
                              }});
  EXPECT_EQ(streamed, text);
  EXPECT_EQ(text.size(), 40u);
  model.forget();
  int pieces = 0;
  EXPECT_EQ(generate(model, "the",
                     {.tokens = 40, .on_text = [&](std::string_view) { return ++pieces < 5; }})
                .size(),
            5u);
}

// The output consists of whole characters, although the tokens are bytes.
TEST(Generate, GivesOutWholeCharacters) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += "äöü€😀\n";
  Trainer trainer({.dim = 32, .context = 16, .layers = 1, .heads = 2}, Tokenizer::bytes(),
                  TextData::of(text, Tokenizer::bytes()),
                  {.batch = 4, .steps = 80, .lr = 1e-2, .device = "cpu"});
  while (trainer.step() < 80) {
  }
  std::vector<std::string> pieces;
  generate(trainer.generator(), "ä",
           {.tokens = 60, .temperature = 0, .on_text = [&](std::string_view piece) {
              pieces.emplace_back(piece);
              return true;
            }});
  int wide = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (i + 1 < pieces.size()) {
      EXPECT_EQ(incomplete_tail(pieces[i]), 0u) << "ends inside a character";
    }
    wide += pieces[i].size() >= 2;
  }
  EXPECT_GT(wide, 5);
}

TEST(Generate, StopsBeforeAStopText) {
  Generator model = small_generator("gpt");
  const std::string all = generate(model, "the ", {.tokens = 60, .temperature = 0});
  ASSERT_GT(all.size(), 20u);
  const std::string stop = all.substr(10, 4);  // longer than a token, so that it arrives in parts
  const std::string wanted = all.substr(0, all.find(stop));
  model.forget();
  std::string streamed;
  EXPECT_EQ(generate(model, "the ",
                     {.tokens = 60,
                      .temperature = 0,
                      .stop = {"never there", stop},
                      .on_text =
                          [&](std::string_view piece) {
                            streamed += piece;
                            return true;
                          }}),
            wanted);
  EXPECT_EQ(streamed, wanted);
  // A prefix of the stop text at the very end is text.
  model.forget();
  EXPECT_EQ(generate(model, "the ",
                     {.tokens = 12, .temperature = 0, .stop = {all.substr(10, 2) + "never"}}),
            all.substr(0, 12));
}

TEST(Generate, AnEmptyPromptIsANewLine) {
  Generator model = small_generator("gpt");
  const std::string text = generate(model, "", {.tokens = 10, .temperature = 0});
  EXPECT_EQ(model.heard()[0], '\n');
  model.forget();
  EXPECT_EQ(generate(model, "\n", {.tokens = 10, .temperature = 0}), text);
}

TEST(Generate, ACheckpointThatIsHandedOver) {
  Checkpoint checkpoint = trained("gpt");
  Generator model(std::move(checkpoint), {.device = "cpu", .threads = 1}),
      other = small_generator("gpt");
  EXPECT_EQ(generate(model, "a", {.tokens = 10}), generate(other, "a", {.tokens = 10}));
  const auto loading = [](const std::function<void(Checkpoint&)>& change) {
    Checkpoint changed = trained("gpt");
    change(changed);
    return error_of([&] { Generator(std::move(changed), {.device = "cpu"}); });
  };
  EXPECT_EQ(loading([](Checkpoint& c) { c.parameters.erase("lnf.g"); }),
            "upload: missing: lnf.g\n  hint: Upload::partial takes some of the parameters");
  EXPECT_EQ(loading([](Checkpoint& c) { c.parameters["lnf.h"] = Array(); }).substr(0, 40),
            "upload: there is no parameter 'lnf.h'\n  ");
  EXPECT_EQ(loading([](Checkpoint& c) { c.parameters["lnf.g"] = Array(); }).substr(0, 26),
            "upload: 'lnf.g' is f32[16]");
  EXPECT_EQ(loading([](Checkpoint& c) { c.tokenizer = ""; }),
            "Generator: the checkpoint has no tokenizer");
}

// Models often have more tokens than the tokenizer.
TEST(Generate, ATokenizerMayBeSmallerThanTheModel) {
  Checkpoint checkpoint = trained("gpt");
  checkpoint.tokenizer = Tokenizer::characters("abc\n").to_json();
  Generator model(checkpoint, {.device = "cpu"});
  EXPECT_EQ(model.listen(std::vector<std::int32_t>{1}).size(), 5u);
  EXPECT_GE(generate(model, "a", {.tokens = 30, .temperature = 5}).size(), 30u);
}

TEST(Generate, BadCalls) {
  Generator model = small_generator("gpt");
  EXPECT_EQ(error_of([&] { generate(model, "a", {.tokens = -1}); }),
            "generate: tokens must not be negative: -1");
  EXPECT_EQ(error_of([&] { generate(model, "a", {.stop = {""}}); }),
            "generate: an empty stop text would stop at once");
  EXPECT_EQ(error_of([&] { model.listen({}); }), "Generator: listen() needs at least one token");
  EXPECT_EQ(error_of([&] {
              model.listen(std::vector<std::int32_t>{3, 256});
            }),
            "Generator: token 256 is out of range: the vocabulary has 256 tokens");
  EXPECT_TRUE(model.heard().empty());
  const auto loading = [](const std::function<void(Checkpoint&)>& change,
                          std::int64_t capacity = 0) {
    Checkpoint changed = trained("gpt");
    change(changed);
    return error_of([&] { Generator(changed, {.device = "cpu", .capacity = capacity}); });
  };
  EXPECT_EQ(loading([](Checkpoint& c) { c.config = ""; }),
            "Generator: the checkpoint has no config, so the kind of model is unknown");
  EXPECT_EQ(loading([](Checkpoint& c) { c.tokenizer = ""; }),
            "Generator: the checkpoint has no tokenizer");
  EXPECT_EQ(loading([](Checkpoint&) {}, -1), "Generator: the capacity must not be negative: -1");
  std::string many;  // characters of two bytes
  for (char first = '\xc3'; first < '\xc9'; ++first)
    for (char second = '\x80'; second < '\xc0'; ++second) many += {first, second};
  EXPECT_EQ(loading([&](Checkpoint& c) { c.tokenizer = Tokenizer::characters(many).to_json(); }),
            "Generator: the tokenizer has 385 tokens, the model 256");
  const auto remembering = [&](const std::function<void(NamedArrays&)>& change, std::size_t heard) {
    NamedArrays memory = model.memory();
    change(memory);
    return error_of([&] { model.remember(memory, std::vector<std::int32_t>(heard)); });
  };
  EXPECT_EQ(remembering([](NamedArrays& m) { m.erase("position"); }, 0),
            "Generator: the memory has no 'position'");
  EXPECT_EQ(
      remembering([](NamedArrays& m) { m["position"] = Array({1}, std::vector<std::int32_t>{0}); },
                  0),
      "Generator: 'position' is i32[], the memory has i32[1]");
  EXPECT_EQ(remembering(
                [](NamedArrays& m) { m["position"] = Array({}, std::vector<std::int32_t>{5}); }, 3),
            "Generator: the memory holds 5 positions of 12, 3 tokens were heard");
}

}  // namespace
}  // namespace tensorgrad
