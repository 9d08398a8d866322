// Parameters and options without a device: names, ties, what is trained, where it lies, what is
// refused.
#include "compile/parameters.h"

#include "compile/options.h"
#include "tests/compile/common.h"
#include "tests/support/error_of.h"

namespace tensorgrad::compile_tests {
namespace {

using detail::Parameters;

// Four parameters: a.W and b.W decay, a.b and b.b do not.
struct Two {
  Linear a{2, 3}, b{3, 5};
};

Parameters of_two() {
  Two model;
  return detail::collect_parameters(detail::find_params(model), 1);
}

// "a.W@0": names and offsets in the order of memory.
std::vector<std::string> places(const detail::ParameterLayout& made) {
  std::vector<std::string> out;
  for (const auto& entry : made.layout.entries())
    out.push_back(entry.name + "@" + std::to_string(entry.offset));
  return out;
}

std::string refusal(const TrainingOptions& options) {
  return error_of([&] { detail::check_options(options, of_two()); });
}

TEST(Parameters, AreCollectedInFieldOrder) {
  const Parameters found = of_two();
  EXPECT_EQ(found.names(), (std::vector<std::string>{"a.W", "a.b", "b.W", "b.b"}));
  EXPECT_EQ(found.list[0].shape, Shape({2, 3}));
  EXPECT_TRUE(found.list[0].decay);
  EXPECT_FALSE(found.list[1].decay);
  EXPECT_TRUE(found.aliases.empty());
}

TEST(Parameters, TiedFieldsAreOne) {
  struct Couple {
    Linear first{4, 4, false}, second{4, 4, false};
  } model;
  model.second.W = model.first.W.shared();
  const Parameters found = detail::collect_parameters(detail::find_params(model), 1);
  EXPECT_EQ(found.names(), std::vector<std::string>{"first.W"});
  EXPECT_EQ(found.aliases, (std::map<std::string, std::string>{{"second.W", "first.W"}}));
}

// 6 + 3 + 15 + 5 elements; tensors start at multiples of 64 elements.
TEST(Parameters, ThoseThatDecayComeFirstAndFrozenOnesLast) {
  Parameters all = of_two();
  const auto trained = detail::lay_out(all);
  EXPECT_EQ(places(trained), (std::vector<std::string>{"a.W@0", "b.W@64", "a.b@128", "b.b@192"}));
  EXPECT_EQ(trained.trained_elements, trained.layout.elements());
  detail::select_trained(all, {.freeze = {"a.*"}});
  const auto frozen = detail::lay_out(all);
  EXPECT_EQ(places(frozen), (std::vector<std::string>{"b.W@0", "b.b@64", "a.W@128", "a.b@192"}));
  EXPECT_EQ(frozen.trained_elements, 128);
}

TEST(Parameters, OptionsSelectWhatIsTrainedAndWhatDecays) {
  const auto flags = [](const TrainingOptions& options) {
    Parameters all = of_two();
    detail::select_trained(all, options);
    std::string out;
    for (const detail::Parameter& p : all.list) out += p.frozen ? 'f' : p.decay ? 'd' : '-';
    return out;
  };
  EXPECT_EQ(flags({}), "d-d-");
  EXPECT_EQ(flags({.freeze = {"b.W"}}), "d-f-");
  EXPECT_EQ(flags({.train_only = NameFilter{"*.b"}}), "f-f-");
  EXPECT_EQ(flags({.freeze = {"a.b"}, .decay = NameFilter{"*.b"}}), "-f-d");
}

TEST(Parameters, AnInitialiserThatIsAFunctionIsCalledAtOnce) {
  int calls = 0;
  struct Single {
    Param w;
  } model{Param({3}, init::function([&](std::int64_t) { return ++calls, 2.0f; }))};
  Parameters found = detail::collect_parameters(detail::find_params(model), 1);
  detail::prepare_initialisers(found, 0);
  EXPECT_EQ(calls, 3);  // once per element
  EXPECT_EQ(found.list[0].init.kind, Init::Kind::literal);
}

TEST(Options, AreRefusedWithoutADevice) {
  EXPECT_EQ(refusal({}), "no error");
  EXPECT_EQ(refusal({.accumulate = 0}), "compile: accumulate must be at least 1: 0");
  EXPECT_EQ(refusal({.clip_grad_norm = -1}), "compile: clip_grad_norm must not be negative: -1");
  EXPECT_EQ(refusal({.optimizer = NoOptimizer{}, .accumulate = 2}),
            "compile: accumulate needs an optimizer, NoOptimizer updates nothing");
  EXPECT_EQ(refusal({.freeze = {"a.X"}}),
            "compile: freeze names no parameter: 'a.X'\n  hint: 'a.W'?");
}

TEST(Options, ARequestListsWhatIsTrained) {
  Parameters all = of_two();
  detail::select_trained(all, {.freeze = {"a.W"}});
  const auto layout = detail::lay_out(all);
  const detail::Request request =
      detail::training_request({.normalize_grads = {"b.W"}}, all, layout, 7);
  std::string out;
  for (const detail::Request::Parameter& p : request.trained)
    out += p.name + "@" + std::to_string(p.offset) + (p.decay ? " decays" : "") +
           (p.normalize ? " normalized" : "") + "; ";
  EXPECT_EQ(out, "a.b@64; b.W@0 decays normalized; b.b@128; ");
  EXPECT_EQ(request.flat_elements, layout.trained_elements);
  EXPECT_TRUE(request.trains());
}

TEST(Options, ARequestThatTrainsNothingIsRefused) {
  const auto refused = [](const Parameters& parameters) {
    return error_of(
        [&] { detail::training_request({}, parameters, detail::lay_out(parameters), 1); });
  };
  EXPECT_EQ(refused({}), "compile: the model has no parameters to train\n  hint: compile_forward?");
  Parameters all = of_two();
  detail::select_trained(all, {.freeze = {"*"}});
  EXPECT_EQ(refused(all), "compile: all parameters are frozen");
}

}  // namespace
}  // namespace tensorgrad::compile_tests
