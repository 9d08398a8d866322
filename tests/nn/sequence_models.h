// The language models of the tests in this folder, behind one interface.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/nn/plain.h"

namespace tensorgrad::nn_tests {

inline constexpr int kVocab = 11;

// One of the models as one type, so that tests need no templates.
struct AnyModel {
  std::optional<Mamba> mamba;
  std::optional<Mamba2> mamba2;
  std::optional<Transformer> transformer;
  std::optional<LanguageModel> mixed;

  Tensor operator()(const Tensor& tokens) const {
    return mamba         ? (*mamba)(tokens)
           : mamba2      ? (*mamba2)(tokens)
           : transformer ? (*transformer)(tokens)
                         : (*mixed)(tokens);
  }
  StateSpec state(std::int64_t batch, std::int64_t capacity) const {
    return mamba         ? mamba->state(batch, capacity)
           : mamba2      ? mamba2->state(batch, capacity)
           : transformer ? transformer->state(batch, capacity)
                         : mixed->state(batch, capacity);
  }
  Step step(const Tensor& tokens, const Inputs& in) const {
    return mamba         ? mamba->step(tokens, in)
           : mamba2      ? mamba2->step(tokens, in)
           : transformer ? transformer->step(tokens, in)
                         : mixed->step(tokens, in);
  }
};

struct ModelCase {
  const char* name;
  std::function<AnyModel()> make;
};

inline const std::vector<ModelCase>& model_cases() {
  static const std::vector<ModelCase> all = [] {
    std::vector<ModelCase> cases;
    const MambaConfig mamba{
        .vocab = kVocab, .layers = 2, .dim = 8, .state = 4, .conv = 3, .dt_rank = 2};
    MambaConfig zoh = mamba;
    zoh.discretisation = Discretisation::zoh, zoh.conv = 1, zoh.expand = 1;
    const Mamba2Config mamba2{.vocab = kVocab,
                              .layers = 2,
                              .dim = 8,
                              .state = 4,
                              .conv = 4,
                              .head_size = 4,
                              .groups = 2,
                              .chunk = 3};
    const TransformerConfig learned{
        .vocab = kVocab, .dim = 8, .context = 12, .layers = 2, .heads = 2};
    TransformerConfig rotary = learned;
    rotary.rope_base = 100.0f, rotary.groups = 1;
    TransformerConfig biased = learned;
    biased.biases = true;
    const LanguageModelConfig mixed{.vocab = kVocab,
                                    .dim = 8,
                                    .layers = "mamba attention mamba2",
                                    .mamba = mamba,
                                    .mamba2 = mamba2,
                                    .heads = 2,
                                    .groups = 1,
                                    .rope_base = 100};
    cases.push_back({"Mamba", [=] { return AnyModel{.mamba = Mamba(mamba)}; }});
    cases.push_back({"MambaZoh", [=] { return AnyModel{.mamba = Mamba(zoh)}; }});
    cases.push_back({"Mamba2", [=] { return AnyModel{.mamba2 = Mamba2(mamba2)}; }});
    cases.push_back({"Transformer", [=] { return AnyModel{.transformer = Transformer(learned)}; }});
    cases.push_back(
        {"BiasedTransformer", [=] { return AnyModel{.transformer = Transformer(biased)}; }});
    cases.push_back(
        {"RotaryTransformer", [=] { return AnyModel{.transformer = Transformer(rotary)}; }});
    cases.push_back({"Mixed", [=] { return AnyModel{.mixed = LanguageModel(mixed)}; }});
    return cases;
  }();
  return all;
}

inline std::vector<std::string> case_names() {
  std::vector<std::string> names;
  for (const ModelCase& each : model_cases()) names.push_back(each.name);
  return names;
}

inline AnyModel make_model(const std::string& name) {
  for (const ModelCase& each : model_cases())
    if (each.name == name) return each.make();
  ADD_FAILURE() << "no model " << name;
  return {};
}

}  // namespace tensorgrad::nn_tests
