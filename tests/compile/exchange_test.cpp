// Upload and download of parameters, gradients and optimizer state; a resumed run has the same
// bits.
#include <fmt/format.h>

#include <algorithm>

#include "ops/table.h"
#include "reference/interpret.h"
#include "tests/compile/common.h"
#include "tests/support/error_of.h"

namespace tensorgrad::compile_tests {
namespace {

TEST(Exchange, DownloadGivesBackWhatWasUploaded) {
  auto train = compile_mlp();
  NamedArrays values = train.download();
  EXPECT_EQ(values.size(), 6u);
  std::uint32_t seed = 1;
  for (auto& [name, array] : values) {
    const Floats fresh = numbers(static_cast<std::size_t>(array.count()), seed++);
    std::copy(fresh.begin(), fresh.end(), array.floats().begin());
  }
  train.upload(values);
  EXPECT_EQ(bytes_of(train.download()), bytes_of(values));
}

TEST(Exchange, PartialTouchesOnlyWhatItNames) {
  auto train = compile_mlp();
  NamedArrays expected = train.download();
  const Array b({8}, numbers(8, 5));
  train.upload({{"l2.b", b}}, Upload::partial);
  expected["l2.b"] = b;
  EXPECT_EQ(bytes_of(train.download()), bytes_of(expected));
  train.upload({}, Upload::partial);
  EXPECT_EQ(bytes_of(train.download()), bytes_of(expected));
}

TEST(Exchange, UploadLeavesOptimizerStateAlone) {
  auto train = compile_mlp();
  for (std::uint32_t i = 0; i < 3; ++i) train.step(Batch(i).feed());
  const std::string state = bytes_of(train.optimizer_state());
  train.upload(compile_mlp({.seed = 9}).download());
  EXPECT_EQ(bytes_of(train.optimizer_state()), state);
  EXPECT_EQ(train.steps(), 3);
}

// The loss in double precision, by the interpreter, as a function of the parameters.
class DoubleLoss {
 public:
  DoubleLoss(const TrainingHandle& train, const Batch& batch)
      : graph_(ir::parse(train.show("trace"), ops::find_primitive)) {
    for (const auto& [name, array] : train.download())
      leaves_["parameter:" + name] = {{f32, array.shape()}, doubles(array.floats())};
    leaves_["input:x"] = {{f32, {4, 3}}, doubles(batch.x)};
    leaves_["input:y"] = {{f32, {4, 2}}, doubles(batch.y)};
  }
  double at(const std::string& parameter, std::size_t i, double offset) {
    double& value = leaves_.at("parameter:" + parameter).data[i];
    const double before = value;
    value += offset;
    const double loss =
        reference::interpret(
            graph_,
            leaves_)[static_cast<std::size_t>(graph_.find(ir::Result::Kind::output, "loss"))]
            .data[0];
    value = before;
    return loss;
  }

 private:
  static std::vector<double> doubles(std::span<const float> v) { return {v.begin(), v.end()}; }
  ir::Graph graph_;
  reference::Leaves leaves_;
};

TEST(Gradients, AgreeWithFiniteDifferences) {
  auto train =
      compile_mlp({.clip_grad_norm = 0.01f});  // gradients() returns values before clipping
  const Batch batch(3);
  for (int i = 0; i < 2; ++i) {
    DoubleLoss loss(train, batch);
    EXPECT_NEAR(static_cast<double>(train.step(batch.feed()).loss()), loss.at("l1.W", 0, 0), 1e-6);
    const NamedArrays gradients = train.gradients();
    EXPECT_EQ(gradients.size(), 6u);
    for (const auto& [name, array] : gradients)
      for (std::size_t k = 0; k < static_cast<std::size_t>(array.count()); ++k) {
        constexpr double h = 1e-5;
        const double expected = (loss.at(name, k, h) - loss.at(name, k, -h)) / (2 * h);
        EXPECT_NEAR(static_cast<double>(array.floats()[k]), expected,
                    1e-6 + 1e-5 * std::abs(expected))
            << name << " " << k;
      }
  }
}

TEST(Gradients, AreZeroBeforeTheFirstStepAndAfterReset) {
  auto train = compile_mlp();
  const std::string zero = bytes_of(train.gradients());
  for (const auto& [name, array] : train.gradients())
    for (const float g : array.floats()) EXPECT_EQ(g, 0) << name;
  train.step(Batch(1).feed());
  EXPECT_NE(bytes_of(train.gradients()), zero);
  train.reset();
  EXPECT_EQ(bytes_of(train.gradients()), zero);
}

TEST(Gradients, OfParametersThatTheLossDoesNotUseAreZero) {
  auto train =
      compile(Mlp{}, {.inputs = mlp_inputs(), .threads = 1}, [](const Mlp& m, const Inputs& in) {
        return mean(square(m.l1(in["x"]))) + 0 * mean(in["y"]);
      });
  const NamedArrays before = train.download();
  train.step(Batch(1).feed());
  const NamedArrays after = train.download(), gradients = train.gradients();
  for (const auto& [name, array] : gradients) {
    const bool used = name.rfind("l1.", 0) == 0;
    EXPECT_EQ(array.shape(), before.at(name).shape()) << name;
    EXPECT_EQ(floats_of(array) == Floats(static_cast<std::size_t>(array.count())), !used) << name;
    EXPECT_EQ(floats_of(after.at(name)) == floats_of(before.at(name)), !used) << name;
  }
}

TEST(Gradients, GlobalNormIsThatOfTheGradients) {
  auto train = compile_mlp({.clip_grad_norm = 100});
  const Result step = train.step(Batch(1).feed());
  double squares = 0;
  for (const auto& [name, array] : train.gradients())
    for (const float g : array.floats()) squares += static_cast<double>(g) * static_cast<double>(g);
  EXPECT_NEAR(static_cast<double>(step.grad_norm()), std::sqrt(squares), 1e-6 * std::sqrt(squares));
}

TEST(OptimizerState, HasAnEntryPerParameterAndKind) {
  const auto names = [](const Optimizer& optimizer, int accumulate = 1) {
    std::vector<std::string> out;
    for (const auto& [name, array] :
         compile_mlp({.optimizer = optimizer, .accumulate = accumulate, .freeze = {"l1.*", "l2.*"}})
             .optimizer_state())
      out.push_back(name + " " + tensorgrad::name(array.dtype()) + array.shape().text());
    return out;
  };
  EXPECT_EQ(names(Sgd{}), (std::vector<std::string>{"step i32[]"}));
  EXPECT_EQ(
      names(Sgd{.momentum = 0.9f}),
      (std::vector<std::string>{"momentum:l3.W f32[8,2]", "momentum:l3.b f32[2]", "step i32[]"}));
  const std::vector<std::string> adam = {"adam:updates i32[]", "m:l3.W f32[8,2]", "m:l3.b f32[2]",
                                         "step i32[]",         "v:l3.W f32[8,2]", "v:l3.b f32[2]"};
  EXPECT_EQ(names(Adam{}), adam);
  EXPECT_EQ(names(AdamW{}), adam);
  EXPECT_EQ(names(Sgd{}, 2), (std::vector<std::string>{"accumulated:l3.W f32[8,2]",
                                                       "accumulated:l3.b f32[2]", "step i32[]"}));
}

// Checkpoints of version 0.1 count Adam's updates in an f32.
TEST(OptimizerState, CountsUpdatesOfOldCheckpoints) {
  auto train = compile_mlp({.optimizer = Adam{}});
  for (std::uint32_t i = 0; i < 3; ++i) train.step(Batch(i).feed());
  const NamedArrays state = train.optimizer_state();
  const auto with_count = [&](float count) {
    NamedArrays old = state;
    old.at("adam:updates") = Array({}, std::vector<float>{count});
    return old;
  };
  train.upload_optimizer_state(with_count(3));
  EXPECT_EQ(bytes_of(train.optimizer_state()), bytes_of(state));
  for (const float wrong : {-1.0f, 2.5f, 1e9f}) {
    EXPECT_EQ(error_of([&] { train.upload_optimizer_state(with_count(wrong)); }),
              fmt::format("upload_optimizer_state: 'adam:updates' counts updates: {}", wrong));
    EXPECT_EQ(bytes_of(train.optimizer_state()), bytes_of(state));
  }
}

// An f32 would stay at 2^24.
TEST(OptimizerState, CountsMoreUpdatesThanAnF32Can) {
  auto train = compile_mlp({.optimizer = Adam{}});
  NamedArrays state = train.optimizer_state();
  state.at("adam:updates") = Array({}, std::vector<std::int32_t>{1 << 24});
  train.upload_optimizer_state(state);
  train.step(Batch(0).feed());
  EXPECT_EQ(train.optimizer_state().at("adam:updates").ints()[0], (1 << 24) + 1);
}

// Ten steps, save, ten more; and ten steps from the saved state.
void expect_resume(const TrainingOptions& given, bool with_dropout) {
  TrainingOptions options = given;
  options.inputs = mlp_inputs();
  options.threads = 1;
  options.seed = 7;
  const auto loss = with_dropout ? dropout_loss : mlp_loss;
  auto first = compile(Mlp{}, options, loss);
  for (std::uint32_t i = 0; i < 10; ++i) first.step(Batch(i).feed());
  const NamedArrays parameters = first.download(), state = first.optimizer_state();

  auto second = compile(Mlp{}, options, loss);
  for (std::uint32_t i = 0; i < 4; ++i) second.step(Batch(50 + i).feed());  // to be overwritten
  second.upload(parameters);
  second.upload_optimizer_state(state);
  EXPECT_EQ(second.steps(), 10);
  EXPECT_EQ(bytes_of(second.optimizer_state()), bytes_of(state));
  for (std::uint32_t i = 10; i < 20; ++i) {
    EXPECT_EQ(first.lr(), second.lr());
    EXPECT_EQ(first.step(Batch(i).feed()).loss(), second.step(Batch(i).feed()).loss()) << i;
  }
  EXPECT_EQ(first.fingerprint(), second.fingerprint());
  EXPECT_EQ(bytes_of(first.optimizer_state()), bytes_of(second.optimizer_state()));
  EXPECT_NE(bytes_of(first.download()), bytes_of(parameters));
}

TEST(OptimizerState, ResumesBitForBit) {
  const std::vector<Optimizer> optimizers = {Adam{.lr = 0.01}, AdamW{.lr = cosine(0.02, 0, 15)},
                                             Sgd{.lr = 0.1, .momentum = 0.9f, .nesterov = true}};
  for (const Optimizer& optimizer : optimizers)
    for (const int accumulate : {1, 3})  // 10 is in the middle of a window of 3
      for (const bool with_dropout : {false, true}) {
        SCOPED_TRACE(testing::Message() << "optimizer " << optimizer.index() << ", accumulate "
                                        << accumulate << ", dropout " << with_dropout);
        expect_resume({.optimizer = optimizer, .clip_grad_norm = 0.5f, .accumulate = accumulate},
                      with_dropout);
      }
}

}  // namespace
}  // namespace tensorgrad::compile_tests
