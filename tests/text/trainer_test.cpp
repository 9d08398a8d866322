// Training on text: what is restored goes on bit for bit, validation is what generation says about
// the same text, and every kind of model learns.
#include "tensorgrad/trainer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "tests/support/error_of.h"
#include "tests/text/common.h"

namespace tensorgrad {
namespace {

class EveryKind : public testing::TestWithParam<const char*> {};

TEST_P(EveryKind, GoesOnAsIfItHadNeverStopped) {
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) /
                                     (std::string("trainer ") + GetParam() + ".safetensors");
  for (const int threads : {1, 2}) {
    Trainer whole = small_trainer(GetParam(), {.steps = 9, .threads = threads});
    for (int i = 0; i < 9; ++i) whole.step();
    Trainer first = small_trainer(GetParam(), {.steps = 9, .threads = threads});
    for (int i = 0; i < 4; ++i) first.step();
    save_checkpoint(path, first.checkpoint());
    first.step();  // whatever it does then is not in the file
    Trainer second = small_trainer(GetParam(), {.steps = 9, .threads = threads});
    second.restore(load_checkpoint(path));
    EXPECT_EQ(second.steps(), 4);
    while (second.steps() < 9) second.step();
    EXPECT_EQ(second.training().fingerprint(), whole.training().fingerprint());
    EXPECT_EQ(second.report().loss, whole.report().loss);
    EXPECT_EQ(second.report().lr, whole.report().lr);
    const Checkpoint a = second.checkpoint(), b = whole.checkpoint();
    EXPECT_EQ(a.position, b.position);
    ASSERT_EQ(a.optimizer.size(), b.optimizer.size());
    for (const auto& [name, array] : a.optimizer)
      if (array.dtype() == f32) {
        EXPECT_TRUE(std::ranges::equal(array.floats(), b.optimizer.at(name).floats())) << name;
      }
  }
  std::filesystem::remove(path);
}

TEST_P(EveryKind, ValidationIsWhatTheModelSaysTokenByToken) {
  Trainer trainer = small_trainer(GetParam(), {.steps = 3});
  for (int i = 0; i < 3; ++i) trainer.step();
  // Two windows and a bit; each window begins with nothing remembered.
  const std::int64_t T = trainer.config().context, count = 2 * T + 3;
  std::vector<std::int32_t> ids(static_cast<std::size_t>(count) + 1);
  trainer.data().validation().read(0, ids);
  double sum = 0;
  for (std::int64_t t = 0; t < count; ++t) {
    if (t % T == 0) trainer.generator().forget();
    const std::vector<float> logits =
        trainer.generator().listen(std::span(ids).subspan(static_cast<std::size_t>(t), 1));
    double total = 0;
    for (const float x : logits) total += std::exp(static_cast<double>(x));
    sum +=
        std::log(total) -
        static_cast<double>(logits[static_cast<std::size_t>(ids[static_cast<std::size_t>(t) + 1])]);
  }
  const Validation said = trainer.validate(count);
  EXPECT_NEAR(said.loss, sum / static_cast<double>(count), 1e-5);
  EXPECT_NEAR(said.perplexity, std::exp(said.loss), 1e-9);
  const double bytes_per_token = static_cast<double>(trainer.data().validation_bytes()) /
                                 static_cast<double>(trainer.data().validation().size());
  EXPECT_NEAR(said.bits_per_byte, said.loss / std::log(2.0) / bytes_per_token, 1e-9);
  EXPECT_NE(trainer.validate().loss, said.loss);  // all of it is more
}

TEST_P(EveryKind, Learns) {
  Trainer trainer = small_trainer(GetParam(), {.steps = 120, .lr = 1e-2});
  const double before = trainer.validate().loss;
  while (trainer.step() < 120) {
  }
  const double after = trainer.validate().loss;
  const double counting =
      unigram_loss(trainer.data().training(), trainer.data().validation(), trainer.config().vocab);
  EXPECT_NEAR(before, std::log(256.0), 0.5);
  EXPECT_LT(after, 0.8 * counting);
}

INSTANTIATE_TEST_SUITE_P(Kinds, EveryKind, testing::Values("gpt", "mamba", "mamba2", "hybrid"));

TEST(Trainer, GradientsOfSeveralBatchesMakeAStep) {
  Trainer whole = small_trainer("gpt", {.batch = 4, .steps = 5}),
          parts = small_trainer("gpt", {.batch = 2, .steps = 5, .accumulate = 2});
  for (int i = 0; i < 5; ++i) whole.step(), parts.step();
  EXPECT_EQ(parts.steps(), 5);
  EXPECT_EQ(parts.checkpoint().position, whole.checkpoint().position);
  EXPECT_NEAR(parts.report().loss, whole.report().loss, 1e-4);
}

TEST(Trainer, RefusesWhatItCannotGoOnFrom) {
  Trainer trainer = small_trainer("gpt", {.steps = 3});
  trainer.step();
  const std::string before = trainer.training().fingerprint();
  const Checkpoint good = trainer.checkpoint();
  const auto restoring = [&](const std::function<void(Checkpoint&)>& change) {
    Checkpoint changed = good;
    change(changed);
    return error_of([&] { trainer.restore(changed); });
  };
  EXPECT_EQ(restoring([](Checkpoint&) {}), "no error");
  EXPECT_EQ(restoring([](Checkpoint& c) { c.seed = 5; }),
            "Trainer: the checkpoint was trained with seed 5, not 0");
  EXPECT_EQ(restoring([](Checkpoint& c) { c.config = "{}"; }),
            "Trainer: the checkpoint is of another model: {}, not " + trainer.config().to_json());
  EXPECT_EQ(restoring([](Checkpoint& c) { c.tokenizer = ""; }),
            "Trainer: the checkpoint has another tokenizer");
  EXPECT_EQ(restoring([](Checkpoint& c) { c.more.clear(); }),
            "Trainer: the checkpoint was trained on another text, or on another part of it");
  EXPECT_EQ(restoring([](Checkpoint& c) { c.optimizer.clear(); }),
            "Trainer: the checkpoint has no optimizer state to go on with");
  EXPECT_EQ(restoring([](Checkpoint& c) { c.more.at("options") = "batch 3"; }),
            "Trainer: the checkpoint was trained with other options: batch 3, not batch 2 "
            "accumulate 1 lr 0.003 last_lr_share 0.1 "
            "weight_decay 0.1 clip_grad_norm 1");
  EXPECT_NE(restoring([](Checkpoint& c) { c.parameters.erase("lnf.g"); }).find("missing: lnf.g"),
            std::string::npos);
  // The parameters had already been put in place.
  EXPECT_NE(restoring([](Checkpoint& c) {
              c.parameters.at("lnf.g").floats()[0] = 7;
              c.optimizer.erase(c.optimizer.begin());
            }).find("upload_optimizer_state: missing"),
            std::string::npos);
  EXPECT_EQ(trainer.training().fingerprint(), before);
  trainer.step();
}

TEST(Trainer, RefusesBadOptions) {
  EXPECT_EQ(error_of([] { small_trainer("gpt", {.batch = 0}); }),
            "Trainer: the batch must be at least 1: 0");
  EXPECT_EQ(error_of([] { small_trainer("gpt", {.steps = 0}); }),
            "Trainer: steps must be at least 1: 0");
  EXPECT_EQ(error_of([] { small_trainer("gpt", {.accumulate = 0}); }),
            "Trainer: accumulate must be at least 1: 0");
  EXPECT_EQ(error_of([] { small_trainer("gpt", {.clip_grad_norm = 0}); }),
            "Trainer: clip_grad_norm must be above 0: 0");
  EXPECT_EQ(error_of([] { small_trainer("gpt", {}).report(); }),
            "Trainer: there was no step to report");
  EXPECT_EQ(error_of([] {
              Trainer({.context = 100}, Tokenizer::bytes(),
                      TextData::of("much too short", Tokenizer::bytes()));
            }),
            "windows: the text has 12 tokens, a window of 100 and the token after it need 101\n  "
            "hint: a shorter context");
}

TEST(Trainer, WithoutAValidationPartThereIsNothingToSay) {
  Trainer trainer({.dim = 16, .context = 8, .layers = 1, .heads = 2}, Tokenizer::bytes(),
                  TextData::of(small_text(), Tokenizer::bytes(), {.validation = 0}),
                  {.batch = 2, .device = "cpu"});
  EXPECT_TRUE(std::isnan(trainer.validate().loss));
}

}  // namespace
}  // namespace tensorgrad
