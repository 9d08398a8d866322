// Language models by the C interface: tokenizers, training, checkpoints and generation, with the
// results of the C++ interface.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "io/checkpoint_bytes.h"
#include "support/json_text.h"
#include "tensorgrad/c_text.h"
#include "tensorgrad/generate.h"
#include "tensorgrad/trainer.h"
#include "tests/c/calls.h"

namespace tensorgrad::c_tests {
namespace {

using Tokens = std::unique_ptr<tg_tokenizer, Freed<tg_tokenizer_free>>;
using CTrainer = std::unique_ptr<tg_trainer, Freed<tg_trainer_free>>;
using Writer = std::unique_ptr<tg_generator, Freed<tg_generator_free>>;

std::string text() {
  std::string all;
  for (int i = 0; i < 60; ++i)
    all += fmt::format("line {} of a text that says {} things\n", i, i % 7);
  return all;
}

std::string contents(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

constexpr const char* kModel =
    R"({"kind": "gpt", "dim": 16, "context": 16, "layers": 1, "heads": 2})";
constexpr const char* kTraining =
    R"({"batch": 4, "steps": 12, "lr": 0.01, "warmup": 2, "lr_schedule": "linear", "seed": 3,
        "device": "cpu", "threads": 1})";

const TextModelConfig kConfig{.kind = "gpt", .dim = 16, .context = 16, .layers = 1, .heads = 2};
const TrainerOptions kOptions{.batch = 4,
                              .steps = 12,
                              .lr = 0.01,
                              .warmup = 2,
                              .lr_schedule = LrSchedule::linear,
                              .seed = 3,
                              .device = "cpu",
                              .threads = 1};

CTrainer trainer(const Tokens& tokens) {
  const std::string all = text();
  const Waiting future = done(tg_trainer_new(
      tokens.get(), all.data(), all.size(),
      fmt::format(R"({{"model": {}, "training": {}, "validation": 0.2}})", kModel, kTraining)
          .c_str()));
  return CTrainer(tg_future_trainer(future.get()));
}

Trainer own_trainer() {
  const Tokenizer bytes = Tokenizer::bytes();
  return {kConfig, bytes, TextData::of(text(), bytes, {.validation = 0.2}), kOptions};
}

Json text_of(tg_future* future) {
  const Waiting ready = done(future);
  return Json::parse(tg_future_text(ready.get()));
}
std::string unquoted(const char* json) { return Json::parse(json).get<std::string>(); }
std::string written(tg_future* future) {
  const Waiting ready = done(future);
  return unquoted(tg_future_text(ready.get()));
}

std::vector<std::int32_t> encode(const Tokens& tokens, const std::string& what) {
  const std::int32_t* ids = nullptr;
  const long count = tg_tokenizer_encode(tokens.get(), what.data(), what.size(), &ids);
  EXPECT_GE(count, 0) << tg_error();
  return {ids, ids + std::max(count, 0L)};
}
std::string decode(const Tokens& tokens, const std::vector<std::int32_t>& ids) {
  std::size_t size = 0;
  const char* const bytes = tg_tokenizer_decode(tokens.get(), ids.data(), ids.size(), &size);
  EXPECT_NE(bytes, nullptr) << tg_error();
  return bytes ? std::string(bytes, size) : "";
}

TEST(CText, TokenizersAreThoseOfCpp) {
  const Tokens bytes(tg_tokenizer_new(R"({"kind": "bytes"})"));
  EXPECT_STREQ(tg_tokenizer_info(bytes.get()), R"({"kind":"bytes","vocab":256})");
  const std::string zero("a\0b", 3);
  EXPECT_EQ(encode(bytes, zero), (std::vector<std::int32_t>{'a', 0, 'b'}));
  EXPECT_EQ(decode(bytes, {'a', 0, 'b'}), zero);

  const Tokens chars(tg_tokenizer_new(R"({"kind": "characters", "text": "häh"})"));
  EXPECT_EQ(encode(chars, "häh"), Tokenizer::characters("häh").encode("häh"));

  const Json options{{"kind", "train"}, {"text", text()}, {"vocab", 300}, {"special", {"<end>"}}};
  const Tokens trained(tg_tokenizer_new(options.dump().c_str()));
  ASSERT_TRUE(trained) << tg_error();
  Tokenizer::Training training({"<end>"});
  training.add(text());
  const Tokenizer own = training.finish(300);
  EXPECT_EQ(tg_tokenizer_json(trained.get()), own.to_json());
  EXPECT_EQ(encode(trained, text() + "<end>"), own.encode(text() + "<end>"));
  const Tokens again(tg_tokenizer_from_json(tg_tokenizer_json(trained.get())));
  EXPECT_EQ(decode(again, encode(trained, "line 7")), "line 7");

  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "c_text_bpe";
  std::filesystem::create_directories(folder);
  own.write_bpe(folder / "vocab.json", folder / "merges.txt");
  const Json bpe{{"kind", "bpe"},
                 {"vocab", contents(folder / "vocab.json")},
                 {"merges", contents(folder / "merges.txt")},
                 {"special", {"<end>"}}};
  const Tokens read(tg_tokenizer_new(bpe.dump().c_str()));
  ASSERT_TRUE(read) << tg_error();
  EXPECT_EQ(encode(read, text() + "<end>"), own.encode(text() + "<end>"));
}

TEST(CText, TrainingHasTheBitsOfCpp) {
  const Tokens tokens(tg_tokenizer_new(R"({"kind": "bytes"})"));
  const CTrainer made = trainer(tokens);
  ASSERT_TRUE(made) << tg_error();
  Trainer own = own_trainer();
  for (int i = 0; i < 4; ++i) {
    const Json report = text_of(tg_trainer_step(made.get()));
    own.step();
    const StepReport want = own.report();
    EXPECT_EQ(report["step"], want.step);
    EXPECT_EQ(report["loss"].get<float>(), want.loss);
    EXPECT_EQ(report["grad_norm"].get<float>(), want.grad_norm);
    EXPECT_EQ(report["lr"], want.lr);
  }
  const Json validation = text_of(tg_trainer_validate(made.get(), 0));
  const Validation want = own.validate();
  EXPECT_EQ(validation["loss"], want.loss);
  EXPECT_EQ(validation["perplexity"], want.perplexity);
  EXPECT_EQ(validation["bits_per_byte"], want.bits_per_byte);
  const Json info = Json::parse(tg_trainer_info(made.get()));
  EXPECT_EQ(info["steps"], 4);
  EXPECT_EQ(info["device"], "cpu");
  EXPECT_EQ(info["config"]["dim"], 16);
  EXPECT_EQ(info["config"]["vocab"], 256);
  EXPECT_GT(info["parameters"], 256 * 16);
}

TEST(CText, ATrainerShowsItsStep) {
  const Tokens tokens(tg_tokenizer_new(R"({"kind": "bytes"})"));
  const CTrainer made = trainer(tokens);
  Trainer own = own_trainer();
  EXPECT_EQ(tg_trainer_show(made.get(), "plan"), own.training().show("plan"));
  EXPECT_EQ(tg_trainer_show(made.get(), "fused"), nullptr);
  EXPECT_TRUE(std::string(tg_error()).starts_with("show: there is no stage 'fused'")) << tg_error();
  EXPECT_EQ(tg_trainer_profile(made.get(), 0), nullptr);
  EXPECT_STREQ(tg_error(), "profile: at least one step: 0");
  const Json plan = Json::parse(tg_trainer_plan(made.get()));
  EXPECT_EQ(plan.size(), own.training().plan().size());
  const Json info = Json::parse(tg_trainer_info(made.get()));
  EXPECT_EQ(info["counts"]["kernels"], plan.size());
  EXPECT_EQ(info["counts"]["bytes_moved"], own.training().counts().bytes_moved);
  text_of(tg_trainer_step(made.get())), own.step();
  // Each step of a profile trains on the same batch.
  const Json times = text_of(tg_trainer_profile(made.get(), 2));
  ASSERT_EQ(times.size(), plan.size());
  EXPECT_GT(times[0]["microseconds"].get<double>(), 0);
  own.profile(2);
  own.step();
  EXPECT_EQ(text_of(tg_trainer_step(made.get()))["loss"].get<float>(), own.report().loss);
  EXPECT_EQ(own.steps(), 4);
}

TEST(CText, TheLearningRateMayBeSet) {
  const Tokens tokens(tg_tokenizer_new(R"({"kind": "bytes"})"));
  const CTrainer made = trainer(tokens);
  Trainer own = own_trainer();
  const auto steps = [&](int count) {
    for (int i = 0; i < count; ++i) {
      const Json report = text_of(tg_trainer_step(made.get()));
      own.step();
      EXPECT_EQ(report["lr"], own.report().lr);
      EXPECT_EQ(report["loss"].get<float>(), own.report().loss);
    }
  };
  steps(2);
  ASSERT_EQ(tg_trainer_set_lr(made.get(), "0.003"), 1) << tg_error();
  own.set_lr(0.003);
  steps(2);
  EXPECT_EQ(own.report().lr, 0.003);
  ASSERT_EQ(
      tg_trainer_set_lr(made.get(), R"({"kind": "linear", "peak": 0.01, "last": 0, "steps": 4})"),
      1)
      << tg_error();
  own.set_lr(linear(0.01, 0, 4));
  steps(3);
  EXPECT_EQ(tg_trainer_set_lr(made.get(), R"({"kind": "flat"})"), 0);
  EXPECT_STREQ(tg_error(),
               "lr: unknown kind 'flat'\n  hint: linear, cosine, warmup, staircase, multi_step");
}

// Checkpoints move between the languages, and a restored trainer goes on with the same bits.
TEST(CText, CheckpointsMoveBetweenLanguages) {
  const Tokens tokens(tg_tokenizer_new(R"({"kind": "bytes"})"));
  const CTrainer made = trainer(tokens);
  for (int i = 0; i < 3; ++i) text_of(tg_trainer_step(made.get()));
  const Waiting pointed = done(tg_trainer_checkpoint(made.get()));
  const Point point(tg_future_checkpoint(pointed.get()));
  const Bytes bytes(tg_checkpoint_save(point.get()));
  ASSERT_TRUE(bytes) << tg_error();
  const std::string file(static_cast<const char*>(tg_bytes_data(bytes.get())),
                         tg_bytes_size(bytes.get()));
  Trainer own = own_trainer();
  own.restore(io::parse_checkpoint(file, "run"));
  EXPECT_EQ(own.steps(), 3);

  const CTrainer other = trainer(tokens);
  const Point read(tg_checkpoint_load(file.data(), file.size(), "run"));
  done(tg_trainer_restore(other.get(), read.get()));
  for (int i = 0; i < 3; ++i) {
    own.step();
    const Json report = text_of(tg_trainer_step(other.get()));
    EXPECT_EQ(report["loss"].get<float>(), own.report().loss);
    EXPECT_EQ(report, text_of(tg_trainer_step(made.get())));
  }
  const std::string back = io::format_checkpoint(own.checkpoint(), "run");
  const Waiting last = done(tg_trainer_checkpoint(other.get()));
  const Point same(tg_future_checkpoint(last.get()));
  const Bytes saved(tg_checkpoint_save(same.get()));
  EXPECT_EQ(back, std::string(static_cast<const char*>(tg_bytes_data(saved.get())),
                              tg_bytes_size(saved.get())));
}

TEST(CText, GeneratesTheTextOfCpp) {
  Trainer own = own_trainer();
  for (int i = 0; i < 6; ++i) own.step();
  const Checkpoint checkpoint = own.checkpoint();
  const std::string file = io::format_checkpoint(checkpoint, "run");
  Generator model(checkpoint, {.device = "cpu"});
  const std::string want =
      generate(model, "line ", {.tokens = 20, .temperature = 0.9f, .top_k = 9, .seed = 4});
  const std::string more = generate(model, "that", {.tokens = 5, .seed = 4});

  const Point point(tg_checkpoint_load(file.data(), file.size(), "run"));
  const Waiting future =
      done(tg_generator_new(point.get(), R"({"device": "cpu", "capacity": 16})"));
  const Writer writer(tg_future_generator(future.get()));
  ASSERT_TRUE(writer) << tg_error();
  constexpr const char* kOptionsOfText =
      R"({"tokens": 20, "temperature": 0.9, "top_k": 9, "seed": 4})";
  EXPECT_EQ(written(tg_generator_generate(writer.get(), "line ", kOptionsOfText)), want);
  EXPECT_EQ(unquoted(tg_generator_pieces(writer.get())), want);
  EXPECT_STREQ(tg_generator_pieces(writer.get()), "\"\"");
  EXPECT_EQ(written(tg_generator_generate(writer.get(), "that", R"({"tokens": 5, "seed": 4})")),
            unquoted(JsonText().value(more).text().c_str()));
  ASSERT_EQ(tg_generator_forget(writer.get()), 1) << tg_error();
  EXPECT_EQ(written(tg_generator_generate(writer.get(), "line ", kOptionsOfText)), want);
  const Json info = Json::parse(tg_generator_info(writer.get()));
  EXPECT_EQ(info["vocab"], 256);
  EXPECT_EQ(info["device"], "cpu");
  EXPECT_EQ(info["config"]["kind"], "gpt");
  const Tokens tokens(tg_generator_tokenizer(writer.get()));
  EXPECT_STREQ(tg_tokenizer_info(tokens.get()), R"({"kind":"bytes","vocab":256})");

  // A trainer writes with its current weights, and forgets what it wrote before.
  const Tokens bytes(tg_tokenizer_new(R"({"kind": "bytes"})"));
  const CTrainer made = trainer(bytes);
  done(tg_trainer_restore(made.get(), point.get()));
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(written(tg_trainer_generate(made.get(), "line ", kOptionsOfText)), want);
  EXPECT_EQ(unquoted(tg_trainer_pieces(made.get())), want + want);
}

// What is written may be read and ended while the model writes.
TEST(CText, WritingMayBeEnded) {
  const Tokens bytes(tg_tokenizer_new(R"({"kind": "bytes"})"));
  const CTrainer made = trainer(bytes);
  const Waiting pointed = done(tg_trainer_checkpoint(made.get()));
  const Point point(tg_future_checkpoint(pointed.get()));
  const Waiting opened = done(tg_generator_new(point.get(), R"({"device": "cpu"})"));
  const Writer writer(tg_future_generator(opened.get()));
  constexpr const char* kLong = R"({"tokens": 100000, "seed": 1})";
  const auto check = [](tg_future* writing, auto pieces, auto stop) {
    const Waiting future(writing);
    ASSERT_TRUE(future) << tg_error();
    std::string seen;
    for (int i = 0; i < 10000 && seen.size() < 8; ++i) {
      ASSERT_GE(tg_poll(), 0);
      seen += unquoted(pieces());
    }
    EXPECT_EQ(tg_ready(future.get()), 0);
    EXPECT_GE(seen.size(), 8u);
    ASSERT_EQ(stop(), 1) << tg_error();
    while (tg_ready(future.get()) == 0) tg_poll();
    ASSERT_EQ(tg_ready(future.get()), 1) << tg_error();
    seen += unquoted(pieces());
    const std::string text = unquoted(tg_future_text(future.get()));
    EXPECT_TRUE(text.starts_with(seen));
    EXPECT_LT(text.size(), 2000u);
  };
  check(
      tg_generator_generate(writer.get(), "a", kLong),
      [&] { return tg_generator_pieces(writer.get()); },
      [&] { return tg_generator_stop(writer.get()); });
  check(
      tg_trainer_generate(made.get(), "a", kLong), [&] { return tg_trainer_pieces(made.get()); },
      [&] { return tg_trainer_stop(made.get()); });
  // The next text is written to its end.
  EXPECT_EQ(
      written(tg_generator_generate(writer.get(), "b", R"({"tokens": 3, "stop": ["zz"]})")).empty(),
      false);
}

TEST(CText, BadCallsAreErrors) {
  const Tokens bytes(tg_tokenizer_new(R"({"kind": "bytes"})"));
  const auto fails = [](const void* result, const std::string& want) {
    EXPECT_EQ(result, nullptr);
    EXPECT_EQ(tg_error(), want);
  };
  fails(tg_tokenizer_new("{}"), "tokenizer: 'kind' is missing");
  fails(tg_tokenizer_new(R"({"kind": "words"})"),
        "tokenizer: unknown kind 'words'\n  hint: bytes, characters, bpe, train");
  fails(tg_tokenizer_new(R"({"kind": "bytes", "vocab": 3})"),
        "tokenizer: unknown name 'vocab'\n  hint: one of kind");
  fails(tg_trainer_new(bytes.get(), "short", 5, R"({"training": {"batches": 4}})"),
        "training: unknown name 'batches'\n  hint: 'batch'?");
  fails(tg_trainer_new(bytes.get(), "short", 5, R"({"training": {"lr_schedule": "flat"}})"),
        "unknown lr schedule 'flat'\n  hint: cosine, linear, constant");
  const Point point(tg_checkpoint_new(Arrays(tg_arrays_new()).get(), nullptr, nullptr));
  fails(tg_generator_new(point.get(), "{}"),
        "Generator: the checkpoint has no config, so the kind of model is unknown");
  const CTrainer made = trainer(bytes);
  fails(tg_trainer_generate(made.get(), "a", R"({"token": 3})"),
        "generate: unknown name 'token'\n  hint: 'tokens'?");
  const Waiting step = done(tg_trainer_step(made.get()));
  fails(tg_future_trainer(step.get()), "future: its value is no trainer, or was taken");
  fails(tg_future_generator(step.get()), "future: its value is no generator, or was taken");
  std::size_t size = 0;
  const std::int32_t bad[] = {300};
  EXPECT_EQ(tg_tokenizer_decode(bytes.get(), bad, 1, &size), nullptr);
  EXPECT_STREQ(tg_error_kind(), "user");
}

}  // namespace
}  // namespace tensorgrad::c_tests
