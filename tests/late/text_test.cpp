// Trainers and generators that do not block: the same values as the blocking ones on the CPU.
#include <gtest/gtest.h>

#include "tests/support/error_of.h"
#include "tests/support/late_device.h"
#include "tests/text/common.h"

namespace tensorgrad {
namespace {

class AsyncText : public testing::TestWithParam<const char*> {
 protected:
  AsyncText() { add_late_device("hand", device); }
  ~AsyncText() override { settle(); }

  void settle() const {
    for (int idle = 0; idle < 3;) {
      const bool busy = poll();
      idle = device->pump_all() > 0 || busy ? 0 : idle + 1;
    }
  }
  template <class T>
  T settled(const Future<T>& future) const {
    settle();
    EXPECT_TRUE(future.ready());
    return future.take();
  }
  Future<Trainer> make(const char* name, TrainerOptions options) const {
    options.device = name;
    options.batch = 2;
    return Trainer::make_async(small_config(GetParam()), Tokenizer::bytes(),
                               TextData::of(small_text(), Tokenizer::bytes()), options);
  }

  static Checkpoint small_checkpoint() {
    return small_trainer(GetParam(), {.steps = 1, .threads = 1}).checkpoint();
  }

  const std::shared_ptr<LateDevice> device =
      std::make_shared<LateDevice>(LateDevice::Pace::by_hand);
};

INSTANTIATE_TEST_SUITE_P(Kinds, AsyncText, testing::Values("gpt", "mamba"),
                         [](const auto& test) { return std::string(test.param); });

TEST_P(AsyncText, TrainsValidatesAndGeneratesAsTheBlockingCallsDo) {
  const TrainerOptions options{.steps = 6, .accumulate = 2, .threads = 1};
  Trainer expected = small_trainer(GetParam(), options);
  const auto making = make("hand", options);
  EXPECT_FALSE(making.ready());
  Trainer trainer = settled(making);
  std::vector<StepReport> reports;
  for (int i = 0; i < 3; ++i)
    trainer.step_async().then(
        [&](const Future<StepReport>& report) { reports.push_back(report.get()); });
  EXPECT_EQ(trainer.steps(), 3);
  EXPECT_TRUE(reports.empty());
  const auto validating = trainer.validate_async(70);
  const auto saving = trainer.checkpoint_async();
  settle();
  ASSERT_EQ(reports.size(), 3u);
  for (const StepReport& report : reports) {
    expected.step();
    const StepReport wanted = expected.report();
    EXPECT_EQ(report.step, wanted.step);
    EXPECT_EQ(report.loss, wanted.loss);
    EXPECT_EQ(report.grad_norm, wanted.grad_norm);
    EXPECT_EQ(report.lr, wanted.lr);
  }
  const Validation wanted = expected.validate(70);
  ASSERT_TRUE(validating.ready());
  EXPECT_EQ(validating.get().loss, wanted.loss);
  EXPECT_EQ(validating.get().bits_per_byte, wanted.bits_per_byte);
  const Checkpoint saved = saving.get(), wanted_file = expected.checkpoint();
  EXPECT_EQ(saved.step, wanted_file.step);
  EXPECT_EQ(saved.position, wanted_file.position);
  EXPECT_EQ(saved.more, wanted_file.more);

  Generator& generator = *settled(trainer.generator_async());
  const auto text = generator.generate_async("the cat", {.tokens = 9, .seed = 5});
  const auto logits = generator.listen_async(generator.tokenizer().encode("!"));
  EXPECT_EQ(error_of([&] { generator.forget(); }),
            "Generator: forget() while it reads or generates\n  hint: wait for the future");
  EXPECT_FALSE(text.ready());
  settle();
  Generator& blocking = expected.generator();
  // The two calls share one state: "!" is read while the text is generated, behind the prompt.
  EXPECT_EQ(text.get().size(), 9u);
  EXPECT_EQ(generator.heard().size(), 7u + 9u + 1u);
  EXPECT_EQ(logits.get().size(), static_cast<std::size_t>(blocking.tokenizer().vocab_size()));
  generator.forget();
  const auto alone = generator.generate_async("the cat", {.tokens = 9, .seed = 5});
  settle();
  EXPECT_EQ(alone.get(), generate(blocking, "the cat", {.tokens = 9, .seed = 5}));
  EXPECT_EQ(generator.heard().size(), blocking.heard().size());

  Trainer resumed = settled(make("hand", options));
  const auto restored = resumed.restore_async(saved);
  settle();
  EXPECT_TRUE(restored.ready());
  EXPECT_EQ(resumed.steps(), 3);
  const auto report = resumed.step_async();
  settle();
  expected.step();
  EXPECT_EQ(report.get().loss, expected.report().loss);

  const auto reading = Generator::make_async(saved, {.device = "hand"});
  EXPECT_FALSE(reading.ready());
  Generator read = settled(reading);
  const auto same = read.generate_async("the cat", {.tokens = 9, .seed = 5});
  settle();
  EXPECT_EQ(same.get(), alone.get());
}

TEST_P(AsyncText, WhatIsWrongIsSaidInTheCall) {
  EXPECT_EQ(error_of([&] { make("hand", {.steps = 0}); }), "Trainer: steps must be at least 1: 0");
  Trainer trainer = settled(make("hand", {.steps = 3}));
  Generator& generator = *settled(trainer.generator_async());
  EXPECT_EQ(error_of([&] { generator.listen_async({}); }),
            "Generator: listen() needs at least one token");
  EXPECT_EQ(error_of([&] { generator.generate_async("a", {.tokens = -1}); }),
            "generate: tokens must not be negative: -1");
  EXPECT_EQ(error_of([&] { Generator::make_async({}); }),
            "Generator: the checkpoint has no config, so the kind of model is unknown");
  Checkpoint other = settled(trainer.checkpoint_async());
  other.seed = 4;
  EXPECT_EQ(error_of([&] { trainer.restore_async(other); }),
            "Trainer: the checkpoint was trained with seed 4, not 0");
}

TEST_P(AsyncText, OneThatWasMovedFromSaysSo) {
  Trainer first = settled(make("hand", {.steps = 3}));
  const Trainer second = std::move(first);
  EXPECT_EQ(error_of([&] { first.step_async(); }), "Trainer: it was moved from");
  Generator reader(small_checkpoint(), {.device = "cpu", .threads = 1});
  const Generator other = std::move(reader);
  EXPECT_EQ(error_of([&] { reader.listen_async({}); }), "Generator: it was moved from");
}

// On the CPU each poll reads one token.
TEST_P(AsyncText, ATokenTakesOnePoll) {
  Generator reader(small_checkpoint(), {.device = "cpu", .threads = 1});
  const auto text = reader.generate_async("a", {.tokens = 10});
  int polls = 0;
  for (; !text.ready(); ++polls) poll();
  EXPECT_EQ(polls, 11);
}

TEST_P(AsyncText, ALostDeviceIsTheErrorOfEveryFuture) {
  Trainer trainer = settled(make("hand", {.steps = 3}));
  Generator& generator = *settled(trainer.generator_async());
  const auto step = trainer.step_async();
  const auto validation = trainer.validate_async();
  const auto checkpoint = trainer.checkpoint_async();
  const auto text = generator.generate_async("the", {.tokens = 5});
  device->pump(4);
  device->lose();
  settle();
  for (const bool ready : {step.ready(), validation.ready(), checkpoint.ready(), text.ready()})
    EXPECT_TRUE(ready);
  EXPECT_THROW(step.get(), DeviceError);
  EXPECT_THROW(validation.get(), DeviceError);
  EXPECT_THROW(checkpoint.get(), DeviceError);
  EXPECT_THROW(text.get(), DeviceError);
}

TEST_P(AsyncText, DroppingAtAnyMomentIsSafe) {
  for (std::size_t moment = 0; moment < 150; moment += 7) {
    std::vector<std::string> ended;
    {
      const auto making = make("hand", {.steps = 3});
      for (std::size_t i = 0; i < moment && !making.ready(); ++i) poll(), device->pump();
      if (making.ready()) {
        Trainer trainer = making.take();
        trainer.step_async().then([&](const auto&) { ended.emplace_back("step"); });
        trainer.validate_async(60).then([&](const auto&) { ended.emplace_back("validation"); });
        Generator& generator = *settled(trainer.generator_async());
        generator.generate_async("the", {.tokens = 20}).then([&](const auto& text) {
          ended.push_back(error_of([&] { text.get(); }));
        });
        for (std::size_t i = 0; i < moment / 7; ++i) poll(), device->pump();
      } else {
        ended = {"", "", ""};
      }
    }
    settle();
    EXPECT_EQ(ended.size(), 3u) << moment;
  }
}

}  // namespace
}  // namespace tensorgrad
