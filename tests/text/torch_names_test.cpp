// Weights of PyTorch programs: small models from plain Python (tests/fixtures_more/torch_models.py)
// give the same logits here, and the same bytes when written again.
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "tests/errors/expect_error.h"
#include "tests/text/torch_fixtures.h"
#include "text/torch_rules.h"

namespace tensorgrad {
namespace {

using errors::text_of;
using Json = nlohmann::json;

// The config from the weights, and the heads of the fixture, which weights do not show.
TextModelConfig config_of(const NamedArrays& weights) {
  TextModelConfig config = config_of_torch_weights(weights);
  if (config.kind == "gpt") config.heads = 2;
  return config;
}

void expect_same_bits(const NamedArrays& a, const NamedArrays& b) {
  for (const auto& [name, array] : a) ASSERT_TRUE(b.count(name)) << name;
  for (const auto& [name, array] : b) {
    ASSERT_TRUE(a.count(name)) << name;
    ASSERT_EQ(a.at(name).shape(), array.shape()) << name;
    ASSERT_EQ(
        std::memcmp(a.at(name).floats().data(), array.floats().data(), array.floats().size_bytes()),
        0)
        << name;
  }
}

NamedArrays without(NamedArrays weights, std::string_view ending) {
  std::erase_if(weights, [&](const auto& item) { return item.first.ends_with(ending); });
  return weights;
}

NamedArrays without_masks(const NamedArrays& weights) {
  return without(without(weights, ".attn.bias"), ".attn.masked_bias");
}

Array transposed(const Array& a) {
  const std::int64_t rows = a.shape()[0], columns = a.shape()[1];
  std::vector<float> values;
  for (std::int64_t j = 0; j < columns; ++j)
    for (std::int64_t i = 0; i < rows; ++i)
      values.push_back(a.floats()[static_cast<std::size_t>(i * columns + j)]);
  return {{columns, rows}, std::move(values)};
}

// GPT-2's weights in the layout of nanoGPT.
NamedArrays in_linear_layout(NamedArrays weights) {
  for (auto& [name, array] : weights)
    if (name.find(".c_") != name.npos && name.ends_with(".weight")) array = transposed(array);
  return weights;
}

NamedArrays renamed(const NamedArrays& weights,
                    const std::function<std::string(const std::string&)>& rename) {
  NamedArrays out;
  for (const auto& [name, array] : weights) out[rename(name)] = array;
  return out;
}

class TorchWeights : public testing::TestWithParam<std::string> {};

TEST_P(TorchWeights, GiveTheLogitsOfThePythonModel) {
  const NamedArrays weights = torch_weights(GetParam());
  const TextModelConfig config = config_of(weights);
  expect_torch_logits(GetParam(), config, from_torch_names(config, weights));
}

TEST_P(TorchWeights, AreWrittenAsTheyWere) {
  const NamedArrays weights = torch_weights(GetParam());
  const TextModelConfig config = config_of(weights);
  expect_same_bits(to_torch_names(config, from_torch_names(config, weights)),
                   without_masks(weights));
}

TEST_P(TorchWeights, NeedNoHeadAndMayBeWrapped) {
  const NamedArrays weights = torch_weights(GetParam());
  const TextModelConfig config = config_of(weights);
  const NamedArrays parameters = from_torch_names(config, weights);
  expect_same_bits(from_torch_names(config, without(weights, "lm_head.weight")), parameters);
  for (const char* prefix : {"_orig_mod.", "module.", "module._orig_mod.", "_orig_mod.module.",
                             "_orig_mod.module._orig_mod.module.module."}) {
    const NamedArrays wrapped =
        renamed(weights, [&](const std::string& name) { return prefix + name; });
    EXPECT_EQ(config_of(wrapped).to_json(), config.to_json());
    expect_same_bits(from_torch_names(config, wrapped), parameters);
  }
}

INSTANTIATE_TEST_SUITE_P(, TorchWeights, testing::Values("gpt2", "mamba", "mamba2"),
                         [](const auto& test) { return test.param; });

// ---- what weights tell

TEST(TorchNames, ConfigOfWeights) {
  const TextModelConfig gpt = config_of_torch_weights(torch_weights("gpt2"));
  EXPECT_EQ(gpt.to_json(), (TextModelConfig{.kind = "gpt",
                                            .vocab = 11,
                                            .dim = 8,
                                            .context = 6,
                                            .layers = 2,
                                            .heads = 1,
                                            .biases = true,
                                            .activation = "gelu_tanh"})
                               .to_json());
  const TextModelConfig mamba = config_of_torch_weights(torch_weights("mamba"));
  EXPECT_EQ(mamba.to_json(), (TextModelConfig{.kind = "mamba",
                                              .vocab = 11,
                                              .dim = 8,
                                              .layers = 2,
                                              .state = 4,
                                              .dt_rank = 2,
                                              .conv = 3,
                                              .expand = 2})
                                 .to_json());
  const TextModelConfig mamba2 = config_of_torch_weights(torch_weights("mamba2"));
  EXPECT_EQ(mamba2.to_json(), (TextModelConfig{.kind = "mamba2",
                                               .vocab = 11,
                                               .dim = 8,
                                               .layers = 2,
                                               .state = 5,
                                               .conv = 4,
                                               .expand = 2,
                                               .head_size = 4})
                                  .to_json());
  NamedArrays wide = torch_weights("gpt2");
  wide["transformer.wte.weight"] = Array({2, 192}, std::vector<float>(384));
  EXPECT_EQ(config_of_torch_weights(wide).heads, 3);
}

// ---- other programs

TEST(TorchNames, Gpt2WithoutTheFirstWord) {
  const NamedArrays weights = torch_weights("gpt2");
  const TextModelConfig config = config_of(weights);
  const NamedArrays bare = renamed(weights, [](std::string name) {
    return name.starts_with("transformer.") ? name.substr(12) : name;
  });
  EXPECT_EQ(config_of(bare).to_json(), config.to_json());
  expect_same_bits(from_torch_names(config, bare), from_torch_names(config, weights));
}

TEST(TorchNames, NanoGptHoldsItsMatricesTheOtherWay) {
  const NamedArrays weights = torch_weights("gpt2"), nano = in_linear_layout(weights);
  const TextModelConfig config = config_of(weights);
  expect_same_bits(from_torch_names(config, nano), from_torch_names(config, weights));
  TextModelConfig exact = config;
  exact.activation = "gelu";
  EXPECT_EQ(config_of(nano).to_json(), exact.to_json());
}

// Its option bias=False: neither layers nor norms have biases.
TEST(TorchNames, NanoGptMayHaveNoBiases) {
  const NamedArrays nano = without(in_linear_layout(torch_weights("gpt2")), ".bias");
  const TextModelConfig config = config_of(nano);
  EXPECT_FALSE(config.biases);
  const NamedArrays parameters = from_torch_names(config, nano);
  EXPECT_FALSE(parameters.count("layers.0.attn.q.b"));
  for (const char* name : {"layers.0.ln1.b", "layers.1.mlp.up.b", "lnf.b"})
    for (const float x : parameters.at(name).floats()) EXPECT_EQ(x, 0) << name;
  // Zeros where GPT-2 has biases: the same model.
  const NamedArrays written = to_torch_names(config, parameters);
  EXPECT_EQ(written.at("transformer.h.1.attn.c_attn.bias").shape(), (Shape{24}));
  TextModelConfig biased = config;
  biased.biases = true;
  const Json tokens = {{1, 2, 3, 4}};
  const Array one = logits_of(config, parameters, tokens),
              other = logits_of(biased, from_torch_names(biased, written), tokens);
  for (std::size_t i = 0; i < one.floats().size(); ++i)
    ASSERT_NEAR(one.floats()[i], other.floats()[i], 1e-6);
  expect_same_bits(from_torch_names(config, written), parameters);  // biases of 0 are none
}

TEST(TorchNames, TransformersCallsMambasEmbeddingEmbeddings) {
  const NamedArrays weights = torch_weights("mamba2");
  const NamedArrays other = renamed(weights, [](const std::string& name) {
    return name == "backbone.embedding.weight" ? "backbone.embeddings.weight" : name;
  });
  const TextModelConfig config = config_of(weights);
  EXPECT_EQ(config_of(other).to_json(), config.to_json());
  expect_same_bits(from_torch_names(config, other), from_torch_names(config, weights));
}

// ---- errors

struct Row {
  const char* text;
  std::function<void(TextModelConfig&, NamedArrays&)> change;
};

// Reading the changed fixture gives that error.
void expect_reading_errors(const std::string& kind, const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    NamedArrays weights = torch_weights(kind);
    TextModelConfig config = config_of(weights);
    row.change(config, weights);
    EXPECT_EQ(text_of([&] { from_torch_names(config, weights); }), row.text);
  }
}

TEST(TorchNamesErrors, ReadingGpt2) {
  expect_reading_errors(
      "gpt2",
      {{"from_torch_names: 'transformer.h.1.ln_2.weight' is missing: the model needs f32[8] for "
        "layers.1.ln2.g\n"
        "  hint: config_of_torch_weights(weights) returns the sizes",
        [](auto&, auto& weights) { weights.erase("transformer.h.1.ln_2.weight"); }},
       {"from_torch_names: 'transformer.h.0.attn.c_attn.bias' is missing: the model needs f32[24] "
        "for "
        "layers.0.attn.q.b, layers.0.attn.k.b, layers.0.attn.v.b\n"
        "  hint: config_of_torch_weights(weights) returns the sizes",
        [](auto&, auto& weights) { weights.erase("transformer.h.0.attn.c_attn.bias"); }},
       {"from_torch_names: 'transformer.h.0.ln_1.bias' is missing: the model needs f32[8] for "
        "layers.0.ln1.b\n"
        "  hint: no tensor is a bias: biases = false?",
        [](auto&, auto& weights) { weights = without(weights, ".bias"); }},
       {"from_torch_names: 'transformer.h.0.attn.c_attn.bias' is not 0, and the model has no "
        "layers.0.attn.q.b, "
        "layers.0.attn.k.b, layers.0.attn.v.b\n  hint: biases = true",
        [](auto& config, auto&) { config.biases = false; }},
       {"from_torch_names: 'transformer.wte.weight' is f32[11,8], the model needs f32[12,8] for "
        "tok_emb\n"
        "  hint: config_of_torch_weights(weights) returns the sizes",
        [](auto& config, auto&) { config.vocab = 12; }},
       {"from_torch_names: '_orig_mod.wpe.weight' is i32[1], the model needs f32[6,8] for pos_emb\n"
        "  hint: config_of_torch_weights(weights) returns the sizes",
        [](auto&, auto& weights) {
          weights.erase("transformer.wpe.weight");
          weights["_orig_mod.wpe.weight"] = Array({1}, std::vector<std::int32_t>(1));
        }},
       {"from_torch_names: 'transformer.wte.weight' and 'wte.weight' are the same tensor",
        [](auto&, auto& weights) { weights["wte.weight"] = weights["transformer.wte.weight"]; }},
       {"from_torch_names: a model of kind gpt with layers = 1 has no tensor "
        "'transformer.h.1.attn.c_attn.bias'\n"
        "  hint: 'transformer.h.0.attn.c_attn.bias'?",
        [](auto& config, auto&) { config.layers = 1; }},
       {"from_torch_names: 'lm_head.weight' differs from 'transformer.wte.weight': the head must "
        "be tied to the "
        "embedding",
        [](auto&, auto& weights) { weights["lm_head.weight"].floats()[5] += 1; }},
       {"from_torch_names: GPT-2 has keys and values for each head: 1 groups for 2 heads",
        [](auto& config, auto&) { config.groups = 1; }},
       {"from_torch_names: PyTorch programs have no names for a model of kind 'hybrid'\n  hint: "
        "gpt, mamba or mamba2",
        [](auto& config, auto&) { config = {.kind = "hybrid"}; }},
       {"model config: layers must be between 1 and 4096: 0",
        [](auto& config, auto&) { config.layers = 0; }}});
}

TEST(TorchNamesErrors, ReadingMamba) {
  expect_reading_errors(
      "mamba", {{"from_torch_names: 'backbone.layers.0.mixer.x_proj.weight' is f32[10,16], the "
                 "model needs f32[9,16] for "
                 "layers.0.x_proj.W\n  hint: config_of_torch_weights(weights) returns the sizes",
                 [](auto& config, auto&) { config.dt_rank = 0; }},
                {"from_torch_names: 'backbone.layers.0.mixer.conv1d.weight' is f32[16,1,3], the "
                 "model needs f32[16,1,4] for "
                 "layers.0.conv.W\n  hint: config_of_torch_weights(weights) returns the sizes",
                 [](auto& config, auto&) { config.conv = 4; }},
                {"from_torch_names: a model of kind mamba with layers = 2 has no tensor "
                 "'backbone.layers.0.mixer.in_proj.bias'\n"
                 "  hint: 'backbone.layers.0.mixer.dt_proj.bias'?",
                 [](auto&, auto& weights) {
                   weights["backbone.layers.0.mixer.in_proj.bias"] =
                       Array({32}, std::vector<float>(32));
                 }}});
}

TEST(TorchNamesErrors, Writing) {
  const NamedArrays weights = torch_weights("gpt2");
  const TextModelConfig config = config_of(weights);
  NamedArrays missing = from_torch_names(config, weights), other = missing;
  missing.erase("layers.0.mlp.up.W");
  other["lnf.g"] = Array({9}, std::vector<float>(9));
  EXPECT_EQ(text_of([&] { to_torch_names(config, missing); }),
            "to_torch_names: 'layers.0.mlp.up.W' is missing: the model has f32[8,32]");
  EXPECT_EQ(text_of([&] { to_torch_names(config, other); }),
            "to_torch_names: 'lnf.g' is f32[9], the model has f32[8]");
  TextModelConfig bare = config;
  bare.biases = false;
  EXPECT_EQ(
      text_of([&] { to_torch_names(bare, from_torch_names(config, weights)); }),
      "to_torch_names: the model has no parameter 'layers.0.attn.k.b'\n  hint: biases = true");
  NamedArrays more = from_torch_names(config, weights);
  more["extra"] = Array();
  EXPECT_EQ(text_of([&] { to_torch_names(config, more); }),
            "to_torch_names: the model has no parameter 'extra'");
  // mamba_ssm normalises each group separately.
  const TextModelConfig grouped{.kind = "mamba2", .dim = 16, .head_size = 8, .state_groups = 2};
  NamedArrays zeros;
  for (const auto& [name, shape] : text::torch::parameters_of(grouped))
    zeros[name] = Array(shape, std::vector<float>(static_cast<std::size_t>(shape.count())));
  EXPECT_EQ(text_of([&] { to_torch_names(grouped, zeros); }),
            "model config: PyTorch's Mamba-2 has a norm for each of its groups, this one has a "
            "single norm for 2 groups");
}

TEST(TorchNamesErrors, ConfigOfWeights) {
  EXPECT_EQ(text_of([] {
              config_of_torch_weights({{"l1.weight", Array()}});
            }),
            "config_of_torch_weights: not weights of GPT-2, Mamba or Mamba-2: no tensor is called "
            "'transformer.h.0.attn.c_attn.weight', 'backbone.layers.0.mixer.x_proj.weight' or "
            "'backbone.layers.0.mixer.dt_bias'\n  hint: there is l1.weight");
  NamedArrays weights = torch_weights("mamba2");
  weights.erase("backbone.layers.0.mixer.conv1d.weight");
  EXPECT_EQ(text_of([&] { config_of_torch_weights(weights); }),
            "config_of_torch_weights: 'backbone.layers.0.mixer.conv1d.weight' is missing");
  weights = torch_weights("mamba2");
  weights["backbone.layers.0.mixer.A_log"] = Array({4, 1}, std::vector<float>(4));
  EXPECT_EQ(text_of([&] { config_of_torch_weights(weights); }),
            "config_of_torch_weights: 'backbone.layers.0.mixer.A_log' is f32[4,1], it should have "
            "rank 1 and "
            "not be empty");
  weights = torch_weights("mamba");
  weights["backbone.embedding.weight"] = Array({11, 7}, std::vector<float>(77));
  EXPECT_EQ(text_of([&] { config_of_torch_weights(weights); }),
            "config_of_torch_weights: the inner width 16 is not a multiple of the width 7");
}

}  // namespace
}  // namespace tensorgrad
