// Training on text: a resumed run has the same bits, validation agrees with generation on the same
// text, and every kind of model learns.
#include "tensorgrad/trainer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

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
    first.step();  // steps after this are not in the file
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
        const auto other = b.optimizer.at(name).floats();
        EXPECT_TRUE(
            std::equal(array.floats().begin(), array.floats().end(), other.begin(), other.end()))
            << name;
      }
  }
  std::filesystem::remove(path);
}

TEST_P(EveryKind, ValidationIsWhatTheModelSaysTokenByToken) {
  Trainer trainer = small_trainer(GetParam(), {.steps = 3});
  for (int i = 0; i < 3; ++i) trainer.step();
  // Two windows and a bit; each window begins with an empty state.
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
            "Trainer: the checkpoint has no optimizer state, so training cannot continue");
  EXPECT_EQ(restoring([](Checkpoint& c) { c.more.at("options") = "batch 3"; }),
            "Trainer: the checkpoint was trained with other options: batch 3, not batch 2 "
            "accumulate 1 lr 0.003 last_lr_share 0.1 "
            "weight_decay 0.1 clip_grad_norm 1");
  EXPECT_NE(restoring([](Checkpoint& c) { c.parameters.erase("lnf.g"); }).find("missing: lnf.g"),
            std::string::npos);
  // Nothing is restored before everything was checked.
  EXPECT_NE(restoring([](Checkpoint& c) {
              c.parameters.at("lnf.g").floats()[0] = 7;
              c.optimizer.erase(c.optimizer.begin());
            }).find("upload_optimizer_state: missing"),
            std::string::npos);
  EXPECT_EQ(trainer.training().fingerprint(), before);
  trainer.step();
}

// Old files lack some fields; they can be resumed all the same.
TEST(Trainer, GoesOnFromACheckpointFromBefore) {
  Trainer trainer = small_trainer("gpt", {.steps = 3});
  trainer.step();
  Checkpoint old = trainer.checkpoint();
  const auto erase = [&](const std::string& from, const std::string& to) {
    const std::size_t first = old.config.find(from), last = old.config.find(to);
    ASSERT_TRUE(first < last && last != std::string::npos) << old.config;
    old.config.erase(first, last - first);
  };
  erase(R"("chunk":)", R"("schedule":)");
  erase(R"(,"positions":)", "}");
  Trainer again = small_trainer("gpt", {.steps = 3});
  again.restore(old);
  EXPECT_EQ(again.training().fingerprint(), trainer.training().fingerprint());
}

// The rates of the formulas: a rise over 2 of 10 steps, then a fall over 8 to a fifth.
TEST(Trainer, TheLearningRateFollowsItsSchedule) {
  const auto rates = [](LrSchedule schedule) {
    Trainer trainer = small_trainer(
        "mamba",
        {.steps = 10, .lr = 1e-3, .warmup = 2, .lr_schedule = schedule, .last_lr_share = 0.2});
    std::vector<double> all;
    while (trainer.steps() < 10) trainer.step(), all.push_back(trainer.report().lr);
    return all;
  };
  const std::vector<double> constant = rates(LrSchedule::constant),
                            linear = rates(LrSchedule::linear), cosine = rates(LrSchedule::cosine);
  for (std::size_t i = 0; i < 10; ++i) {
    const double rise = std::min(1.0, (static_cast<double>(i) + 1) / 2);
    const double way = i < 2 ? 0 : (static_cast<double>(i) - 2) / 8;
    EXPECT_NEAR(constant[i], 1e-3 * rise, 1e-9) << i;
    EXPECT_NEAR(linear[i], 1e-3 * (rise - 0.8 * way), 1e-9) << i;
    EXPECT_NEAR(cosine[i], 1e-3 * (rise - 0.8 * (1 - std::cos(way * std::acos(-1.0))) / 2), 1e-9)
        << i;
  }
}

std::vector<float> weights(const Trainer& trainer) {
  const Checkpoint checkpoint = trainer.checkpoint();
  const auto values = checkpoint.parameters.at("lnf.g").floats();
  return {values.begin(), values.end()};
}

// The steps of a profile have no report.
TEST(Trainer, AProfileKeepsTheReportOfTheLastStep) {
  Trainer trainer = small_trainer("gpt", {.steps = 20});
  trainer.step();
  const StepReport before = trainer.report();
  trainer.profile(2);
  EXPECT_EQ(trainer.steps(), 3);
  EXPECT_EQ(trainer.report().step, 1);
  EXPECT_EQ(trainer.report().loss, before.loss);
  trainer.step();
  EXPECT_EQ(trainer.report().step, 4);
}

// A number, then a schedule whose update 1 is the next step.
TEST(Trainer, TheLearningRateMayBeSet) {
  for (const int accumulate : {1, 2}) {
    Trainer trainer = small_trainer("gpt", {.steps = 20, .warmup = 4, .accumulate = accumulate});
    const auto rates = [&](int steps) {
      std::vector<double> all;
      for (int i = 0; i < steps; ++i) trainer.step(), all.push_back(trainer.report().lr);
      return all;
    };
    EXPECT_NEAR(rates(2)[1], 3e-3 / 2, 1e-9);  // warmup
    trainer.set_lr(0.5e-3);
    EXPECT_EQ(rates(2), (std::vector<double>{0.5e-3, 0.5e-3}));
    trainer.set_lr(linear(1e-2, 0, 4));
    const std::vector<double> falling = rates(3);
    for (std::size_t i = 0; i < 3; ++i)
      EXPECT_NEAR(falling[i], 1e-2 * (4 - static_cast<double>(i)) / 4, 1e-9);
    trainer.set_lr(0.0);
    const std::vector<float> before = weights(trainer);
    trainer.step();
    EXPECT_EQ(weights(trainer), before);
  }
}

// The schedule that was set goes on where it was.
TEST(Trainer, ARunWhoseLearningRateWasSetGoesOn) {
  const Schedule schedule = warmup(2, linear(1e-2, 0, 8));
  Trainer whole = small_trainer("mamba", {.steps = 9});
  for (int i = 0; i < 3; ++i) whole.step();
  whole.set_lr(schedule);
  whole.step();
  const Checkpoint checkpoint = whole.checkpoint();
  Trainer second = small_trainer("mamba", {.steps = 9});
  second.set_lr(schedule);
  second.restore(checkpoint);
  for (int i = 0; i < 4; ++i) {
    whole.step(), second.step();
    EXPECT_EQ(second.report().lr, whole.report().lr);
  }
  EXPECT_EQ(second.training().fingerprint(), whole.training().fingerprint());
}

TEST(Trainer, ACheckpointKnowsItsSchedule) {
  Trainer linear =
      small_trainer("gpt", {.steps = 3, .warmup = 1, .lr_schedule = LrSchedule::linear});
  linear.step();
  Trainer cosine = small_trainer("gpt", {.steps = 3});
  EXPECT_NE(error_of([&] {
              cosine.restore(linear.checkpoint());
            }).find("clip_grad_norm 1 warmup 1 lr_schedule linear, not batch 2"),
            std::string::npos);
}

TEST(Trainer, RefusesBadOptions) {
  EXPECT_EQ(error_of([] { small_trainer("gpt", {.warmup = -1}); }),
            "Trainer: warmup must not be negative: -1");
  EXPECT_EQ(error_of([] { small_trainer("gpt", {.last_lr_share = 1.5}); }),
            "Trainer: last_lr_share must be between 0 and 1: 1.5");
  EXPECT_EQ(error_of([] { small_trainer("gpt", {.batch = 0}); }),
            "Trainer: the batch must be at least 1: 0");
  EXPECT_EQ(error_of([] { small_trainer("gpt", {.steps = 0}); }),
            "Trainer: steps must be at least 1: 0");
  EXPECT_EQ(error_of([] { small_trainer("gpt", {.accumulate = 0}); }),
            "Trainer: accumulate must be at least 1: 0");
  EXPECT_EQ(error_of([] { small_trainer("gpt", {.clip_grad_norm = 0}); }),
            "Trainer: clip_grad_norm must be above 0: 0");
  EXPECT_EQ(error_of([] { small_trainer("gpt", {}).report(); }),
            "Trainer: there is no step to report yet");
  EXPECT_EQ(error_of([] {
              Trainer({.context = 100}, Tokenizer::bytes(),
                      TextData::of("much too short", Tokenizer::bytes()));
            }),
            "windows: the text has 12 tokens, a window of 100 and the token after it need 101\n  "
            "hint: a shorter context");
}

// Memory for validation is allocated with the trainer, so that a shortage is an error before the
// first step: logits [64, 64, 256] are 4 MB.
TEST(Trainer, ValidationTakesNoFurtherMemory) {
  const auto megabytes = [] {
    std::ifstream in("/proc/self/statm");
    double pages = 0;
    in >> pages;
    return pages * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
  };
  Trainer trainer({.dim = 16, .context = 64, .layers = 1, .heads = 2}, Tokenizer::bytes(),
                  TextData::of(small_text(), Tokenizer::bytes()),
                  {.batch = 64, .device = "cpu", .threads = 1});
  trainer.step();
  trainer.report();
  const double before = megabytes();
  EXPECT_TRUE(std::isfinite(trainer.validate().loss));
  EXPECT_LT(megabytes() - before, 2);
}

// The peak memory of this process in megabytes since the last reset; 0 if the system does not
// report it.
double peak_megabytes(bool set_back = false) {
  if (set_back) {
    std::ofstream out("/proc/self/clear_refs");
    out << "5" << std::flush;
    if (!out) return 0;
  }
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("VmHWM:")) return std::stod(line.substr(6)) / 1024;
  return 0;
}

// A restore does not copy the current values to check the new ones: weights of 13 MB, state of 25
// MB.
TEST(Trainer, RestoringTakesNoFurtherMemory) {
  Trainer trainer({.dim = 256, .context = 8, .layers = 4, .heads = 2}, Tokenizer::bytes(),
                  TextData::of(small_text(), Tokenizer::bytes()),
                  {.batch = 1, .device = "cpu", .threads = 1});
  trainer.step();
  trainer.report();
  const Checkpoint checkpoint = trainer.checkpoint();
  const double before = peak_megabytes(true);
  if (before == 0) GTEST_SKIP() << "the system does not tell how much memory was used";
  trainer.restore(checkpoint);
  EXPECT_LT(peak_megabytes() - before, 8);
}

TEST(Trainer, WithoutAValidationPartThereIsNothingToSay) {
  Trainer trainer({.dim = 16, .context = 8, .layers = 1, .heads = 2}, Tokenizer::bytes(),
                  TextData::of(small_text(), Tokenizer::bytes(), {.validation = 0}),
                  {.batch = 2, .device = "cpu"});
  EXPECT_TRUE(std::isnan(trainer.validate().loss));
}

}  // namespace
}  // namespace tensorgrad
