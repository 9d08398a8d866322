// The config.json of PyTorch weights. The formats are those of Hugging Face's transformers and of
// state-spaces' mamba_ssm. The fixtures were computed in Python with two heads, which weights alone
// do not show.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tensorgrad/text_model.h"
#include "tests/errors/expect_error.h"
#include "tests/text/torch_fixtures.h"

namespace tensorgrad {
namespace {

using errors::text_of;
using Json = nlohmann::json;

Json gpt2_json() {
  return {{"model_type", "gpt2"}, {"architectures", {"GPT2LMHeadModel"}},
          {"n_embd", 8},          {"n_layer", 2},
          {"n_head", 2},          {"n_positions", 6},
          {"vocab_size", 11},     {"activation_function", "gelu_new"},
          {"n_inner", nullptr},   {"layer_norm_epsilon", 1e-5},
          {"resid_pdrop", 0.1},   {"task_specific_params", {{"a", {{"b", 1}}}}}};
}

Json mamba_json() {
  return {{"model_type", "mamba"}, {"hidden_size", 8},    {"num_hidden_layers", 2},
          {"vocab_size", 11},      {"state_size", 4},     {"conv_kernel", 3},
          {"expand", 2},           {"use_bias", false},   {"use_conv_bias", true},
          {"hidden_act", "silu"},  {"time_step_rank", 2}, {"layer_norm_epsilon", 1e-5}};
}

Json mamba2_json() {
  return {{"model_type", "mamba2"},
          {"hidden_size", 8},
          {"num_hidden_layers", 2},
          {"vocab_size", 11},
          {"state_size", 5},
          {"conv_kernel", 4},
          {"expand", 2},
          {"n_groups", 1},
          {"head_dim", 4},
          {"num_heads", 4},
          {"hidden_act", "silu"}};
}

Json state_spaces_json(const std::string& layer) {
  return {{"d_model", 8},
          {"d_intermediate", 0},
          {"n_layer", 2},
          {"vocab_size", 11},
          {"ssm_cfg", {{"layer", layer}}},
          {"attn_layer_idx", Json::array()},
          {"attn_cfg", Json::object()},
          {"rms_norm", true},
          {"residual_in_fp32", true},
          {"fused_add_norm", true},
          {"pad_vocab_size_multiple", 16},
          {"tie_embeddings", true}};
}

TextModelConfig read(const std::string& fixture, const Json& json) {
  return config_of_torch_weights(torch_weights(fixture), json.dump());
}

TEST(TorchConfig, Gpt2GivesTheLogitsOfThePythonModel) {
  const TextModelConfig config = read("gpt2", gpt2_json());
  EXPECT_EQ(config.heads, 2);
  expect_torch_logits("gpt2", config, from_torch_names(config, torch_weights("gpt2")));
}

TEST(TorchConfig, WhatItTells) {
  Json json = gpt2_json();
  json["activation_function"] = "relu", json["layer_norm_epsilon"] = 1e-6, json["n_head"] = 4;
  const TextModelConfig gpt = read("gpt2", json);
  EXPECT_EQ(gpt.activation, "relu");
  EXPECT_EQ(gpt.eps, 1e-6f);
  EXPECT_EQ(gpt.heads, 4);
  EXPECT_TRUE(gpt.biases);
  json = mamba_json(), json["layer_norm_epsilon"] = 2e-5, json["time_step_rank"] = "auto";
  EXPECT_EQ(read("mamba", json).eps, 2e-5f);
  json = mamba2_json(), json["layer_norm_epsilon"] = 3e-5;
  EXPECT_EQ(read("mamba2", json).eps, 3e-5f);
  for (const std::string kind : {"mamba", "mamba2"}) {
    const TextModelConfig config =
        read(kind, state_spaces_json(kind == "mamba" ? "Mamba1" : "Mamba2"));
    EXPECT_EQ(config.to_json(), config_of_torch_weights(torch_weights(kind)).to_json());
  }
}

// transformers leaves out defaults: 12 heads, and 8 groups.
TEST(TorchConfig, WhatIsLeftOutHasTheirDefault) {
  Json json = gpt2_json();
  json.erase("n_head");
  EXPECT_EQ(text_of([&] { read("gpt2", json); }),
            "n_head is 12, which does not divide the width 8");
  json = gpt2_json(), json.erase("activation_function"), json.erase("layer_norm_epsilon");
  EXPECT_EQ(read("gpt2", json).activation, "gelu_tanh");
  EXPECT_EQ(read("gpt2", json).eps, 1e-5f);
  json = mamba2_json(), json.erase("n_groups");
  EXPECT_EQ(text_of([&] { read("mamba2", json); }).substr(0, 13), "n_groups is 8");
}

// Python's json module writes values that JSON does not have.
TEST(TorchConfig, PythonsInfinity) {
  std::string text = mamba2_json().dump();
  text.insert(1, R"("time_step_limit": [0.0, Infinity], "note": "\"NaN Infinity", )");
  EXPECT_EQ(config_of_torch_weights(torch_weights("mamba2"), text).head_size, 4);
  text.replace(text.find("Infinity"), 8, "0.5");
  EXPECT_EQ(text_of([&] { config_of_torch_weights(torch_weights("mamba2"), text); }),
            "time_step_limit is [0.0,0.5]: not supported: dt has no limits here");
}

// A JSON patch of a config, and the error that it causes.
using Refused = std::vector<std::pair<const char*, std::string>>;

void expect_refused(const std::string& fixture, const Json& config, const Refused& rows) {
  for (const auto& [change, text] : rows) {
    Json json = config;
    json.merge_patch(Json::parse(change));
    EXPECT_EQ(text_of([&] { read(fixture, json); }), text) << change;
  }
}

TEST(TorchConfig, RefusesByName) {
  const std::string grouped =
      "not supported: with several groups each group has a norm of its own, which the model here "
      "has not";
  expect_refused(
      "gpt2", gpt2_json(),
      {{R"({"n_layer": 3})", "n_layer is 3, but the weights have 2"},
       {R"({"n_inner": 16})", "n_inner is 16, but the weights have 32"},
       {R"({"n_head": 1e308})", "n_head is 1e+308: an integer was expected"},
       {R"({"n_head": 3})", "n_head is 3, which does not divide the width 8"},
       {R"({"n_head": 0})", "n_head is 0, which does not divide the width 8"},
       {R"({"activation_function": "quick_gelu"})",
        "activation_function is \"quick_gelu\": not supported: gelu_new, gelu, relu, silu and "
        "tanh are"},
       {R"({"layer_norm_epsilon": 0})", "layer_norm_epsilon is 0: a positive number was expected"},
       {R"({"layer_norm_epsilon": 1e300})",
        "layer_norm_epsilon is 1e+300: a positive number was expected"},
       {R"({"scale_attn_by_inverse_layer_idx": true})",
        "scale_attn_by_inverse_layer_idx is true: not supported: all layers scale alike here"},
       {R"({"scale_attn_weights": false})",
        "scale_attn_weights is false: not supported: attention scales its scores here"},
       {R"({"add_cross_attention": true})",
        "add_cross_attention is true: not supported: there is no cross-attention here"},
       {R"({"model_type": "llama"})",
        "model_type is \"llama\": not supported: gpt2, mamba and mamba2 are"},
       {R"({"model_type": 2})", "model_type is 2: a string was expected"},
       {R"({"model_type": "mamba"})",
        "model_type is \"mamba\", but these are the weights of \"gpt2\""}});
  expect_refused("mamba", mamba_json(),
                 {{R"({"use_bias": true})",
                   "use_bias is true: not supported: the projections have no biases here"},
                  {R"({"use_conv_bias": false})",
                   "use_conv_bias is false: not supported: the convolution has a bias here"},
                  {R"({"hidden_act": "gelu"})",
                   "hidden_act is \"gelu\": not supported: Mamba's activation is silu here"},
                  {R"({"time_step_rank": 5})", "time_step_rank is 5, but the weights have 2"}});
  expect_refused("mamba2", mamba2_json(),
                 {{R"({"n_groups": 2})", "n_groups is 2: " + grouped},
                  {R"({"rms_norm": false})",
                   "rms_norm is false: not supported: the gated output has an RMSNorm here"},
                  {R"({"num_heads": 2})", "num_heads is 2, but the weights have 4"}});
  expect_refused(
      "mamba2", state_spaces_json("Mamba2"),
      {{R"({"ssm_cfg": {"ngroups": 2}})", "ssm_cfg.ngroups is 2: " + grouped},
       {R"({"ssm_cfg": {"layer": "Mamba1"}})",
        "ssm_cfg.layer is \"Mamba1\", but these are the weights of \"Mamba2\""},
       {R"({"ssm_cfg": 1})", "ssm_cfg is 1: an object was expected"},
       {R"({"ssm_cfg": {"twist": 1}})",
        "ssm_cfg.twist is 1: not supported: its meaning is unknown"},
       {R"({"ssm_cfg": {"norm_before_gate": true}})",
        "ssm_cfg.norm_before_gate is true: not supported: the gate comes before the norm here"},
       {R"({"ssm_cfg": {"D_has_hdim": true}})",
        "ssm_cfg.D_has_hdim is true: not supported: D has one number per head here"},
       {R"({"attn_layer_idx": [1]})",
        "attn_layer_idx is [1]: not supported: no layer attends here"},
       {R"({"d_intermediate": 8})",
        "d_intermediate is 8: not supported: there are no layers of an MLP between Mamba's here"},
       {R"({"rms_norm": false})", "rms_norm is false: not supported: the norms are RMSNorms here"},
       {R"({"vocab_size": 30})",
        "vocab_size is 30, padded to a multiple of 16, but the weights have 11"}});
}

TEST(TorchConfig, IsStrictJson) {
  const auto error = [](const std::string& text) {
    return text_of([&] { config_of_torch_weights(torch_weights("gpt2"), text); });
  };
  EXPECT_EQ(error(R"({"n_head": 2, "n_head": 2})"), "\"n_head\" occurs twice");
  EXPECT_EQ(error(gpt2_json().dump() + std::string(1, '\0')),
            "not JSON: line 1, column " + std::to_string(gpt2_json().dump().size() + 1) +
                ": expected the end, found \"\\u0000\"");
  EXPECT_EQ(error("").substr(0, 10), "not JSON: ");
  EXPECT_EQ(error(R"({"n_head": 1e999})").substr(0, 10), "not JSON: ");
  const std::string other =
      "not the config of a supported model: it has neither \"model_type\", as Hugging Face writes "
      "it, nor \"d_model\", as state-spaces writes it";
  EXPECT_EQ(error("[]"), other);
  EXPECT_EQ(error("{}"), other);
  EXPECT_EQ(error(R"({"d_model": 8})"), other);
}

}  // namespace
}  // namespace tensorgrad
