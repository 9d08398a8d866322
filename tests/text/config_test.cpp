// Configs of language models: to and from JSON, the models they describe, and errors.
#include <gtest/gtest.h>

#include "tests/errors/expect_error.h"
#include "text/models.h"

namespace tensorgrad {
namespace {

using errors::text_of;

TEST(TextModelConfig, IsOneLineOfJson) {
  EXPECT_EQ(TextModelConfig{}.to_json(),
            R"({"kind":"gpt","vocab":256,"dim":128,"context":128,"layers":4,"heads":4,"groups":0,)"
            R"("biases":false,"activation":"gelu","state":0,"dt_rank":0,"conv":4,"expand":2,)"
            R"("head_size":0,"chunk":64,"state_groups":1,"discretisation":"euler","schedule":"",)"
            R"("eps":1e-05,"positions":"learned","rope_base":10000.0,"norm":"layer",)"
            R"("embedding_std":0.05})");
}

TEST(TextModelConfig, ComesBackAsItWas) {
  const TextModelConfig configs[] = {
      {},
      {.kind = "gpt",
       .vocab = 50257,
       .dim = 768,
       .context = 1024,
       .layers = 12,
       .heads = 12,
       .biases = true,
       .activation = "gelu_tanh"},
      {.kind = "mamba", .state = 8, .dt_rank = 3, .conv = 2, .expand = 3, .eps = 1.2345678e-6f},
      {.kind = "mamba", .discretisation = Discretisation::zoh, .embedding_std = 0.3f},
      {.kind = "mamba2", .dim = 96, .expand = 1, .head_size = 32},
      {.kind = "mamba2", .head_size = 32, .chunk = 16, .state_groups = 4},
      {.positions = Positions::rotary, .rope_base = 500, .norm = NormKind::rms},
      {.kind = "hybrid",
       .heads = 8,
       .groups = 2,
       .activation = "silu",
       .schedule = "mamba2 attention"}};
  for (const TextModelConfig& config : configs) {
    const TextModelConfig again = TextModelConfig::from_json(config.to_json());
    EXPECT_EQ(again.to_json(), config.to_json());
    EXPECT_EQ(again.eps, config.eps);
  }
}

TEST(TextModelConfig, WhatIsLeftOutIsTheDefault) {
  EXPECT_EQ(TextModelConfig::from_json("{}").to_json(), TextModelConfig{}.to_json());
  const TextModelConfig config = TextModelConfig::from_json(R"( {"kind": "mamba",
      "dim": 64, "eps": 1} )");
  EXPECT_EQ(config.kind, "mamba");
  EXPECT_EQ(config.dim, 64);
  EXPECT_EQ(config.eps, 1);
  EXPECT_EQ(config.layers, 4);
}

// An old file without these fields describes the model of that time.
TEST(TextModelConfig, ReadsFilesFromBefore) {
  const TextModelConfig config = TextModelConfig::from_json(
      R"({"kind":"gpt","vocab":50257,"dim":64,"context":32,"layers":2,"heads":2,"groups":0,)"
      R"("biases":true,"activation":"gelu_tanh","state":0,"dt_rank":0,"conv":4,"expand":2,)"
      R"("head_size":0,"schedule":"","eps":1e-05})");
  EXPECT_EQ(config.positions, Positions::learned);
  EXPECT_EQ(config.norm, NormKind::layer);
  EXPECT_EQ(config.discretisation, Discretisation::euler);
  EXPECT_EQ(config.chunk, 64);
}

// ---- which model it is

std::vector<std::string> names_of(const TextModelConfig& config) {
  return text::with_model(config, [](const auto& model) {
    std::vector<std::string> names;
    walk_model<Param>(model, [&](const std::string& name, const Param& p) {
      names.push_back(name + p.shape().text());
    });
    return names;
  });
}

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::count(names.begin(), names.end(), name) == 1;
}

TEST(WithModel, MakesTheModelOfTheKind) {
  const auto gpt =
      names_of({.vocab = 11, .dim = 8, .context = 6, .layers = 2, .heads = 2, .biases = true});
  EXPECT_TRUE(has(gpt, "tok_emb[11,8]") && has(gpt, "pos_emb[6,8]") &&
              has(gpt, "layers.1.attn.q.b[8]"));
  EXPECT_FALSE(has(names_of({}), "layers.1.attn.q.b[128]"));
  const auto mamba = names_of({.kind = "mamba", .dim = 32, .layers = 2});
  EXPECT_TRUE(has(mamba, "layers.1.A_log[64,16]") && has(mamba, "layers.1.x_proj.W[64,34]"));
  EXPECT_TRUE(has(names_of({.kind = "mamba", .dim = 32, .state = 4, .dt_rank = 5}),
                  "layers.1.x_proj.W[64,13]"));
  const auto mamba2 = names_of({.kind = "mamba2", .dim = 32, .layers = 2, .head_size = 16});
  EXPECT_TRUE(has(mamba2, "layers.1.A_log[4]") && has(mamba2, "layers.1.conv.W[192,4]"));
}

TEST(WithModel, PassesEveryFieldOn) {
  const auto rotary = names_of(
      {.dim = 8, .layers = 1, .heads = 2, .positions = Positions::rotary, .norm = NormKind::rms});
  EXPECT_TRUE(has(rotary, "layers.0.ln1.g[8]") && has(rotary, "lnf.g[8]"));
  for (const char* absent :
       {"pos_emb[128,8]", "layers.0.ln1.b[8]", "layers.0.ln2.b[8]", "lnf.b[8]"})
    EXPECT_FALSE(has(rotary, absent)) << absent;
  const TextModelConfig all{.kind = "hybrid",
                            .dim = 32,
                            .state = 8,
                            .head_size = 16,
                            .chunk = 16,
                            .state_groups = 2,
                            .discretisation = Discretisation::zoh,
                            .rope_base = 500,
                            .norm = NormKind::rms,
                            .embedding_std = 0.25f};
  const LanguageModelConfig hybrid = text::hybrid_config(all);
  EXPECT_EQ(hybrid.mamba.discretisation, Discretisation::zoh);
  EXPECT_EQ(hybrid.mamba.state, 8);
  EXPECT_EQ(hybrid.mamba2.chunk, 16);
  EXPECT_EQ(hybrid.mamba2.groups, 2);
  EXPECT_EQ(hybrid.rope_base, 500);
  EXPECT_EQ(hybrid.norm, NormKind::rms);
  for (const char* kind : {"gpt", "mamba", "mamba2", "hybrid"}) {
    TextModelConfig config = all;
    config.kind = kind;
    const float start = text::with_model(config, [](const auto& m) { return m.tok_emb.init().b; });
    EXPECT_EQ(start, 0.25f) << kind;
  }
  // B and C of two groups: 64 + 2 * 2 * 8 channels.
  EXPECT_TRUE(
      has(names_of({.kind = "mamba2", .dim = 32, .state = 8, .head_size = 16, .state_groups = 2}),
          "layers.0.conv.W[96,4]"));
}

TEST(WithModel, EveryThirdLayerOfAHybridAttends) {
  const auto names = names_of({.kind = "hybrid", .dim = 32, .layers = 7});
  for (const int i : {0, 1, 3, 4, 6})
    EXPECT_TRUE(has(names, "layers." + std::to_string(i) + ".mamba.D[64]")) << i;
  for (const int i : {2, 5})
    EXPECT_TRUE(has(names, "layers." + std::to_string(i) + ".attention.attn.q.W[32,32]")) << i;
  EXPECT_EQ(text::hybrid_config({.kind = "hybrid", .schedule = "attention mamba2"}).layers,
            "attention mamba2");
}

TEST(WithModel, GivesTheModelAway) {
  const auto layers =
      text::with_model({.dim = 8}, [](auto& model) { return std::move(model).layers.size(); });
  EXPECT_EQ(layers, 4u);
}

// ---- what is refused

TEST(TextModelConfigErrors, OfTheForm) {
  const std::pair<const char*, const char*> rows[] = {
      {"{", "model config: not JSON: line 1, column 2: expected a name in quotes, found the end"},
      {"[1]", "model config: not a JSON object: [1]"},
      {R"({"dim": 8, "dim": 16})", "model config: \"dim\" occurs twice"},
      {R"({"dims": 8})", "model config: unknown name 'dims'\n  hint: 'dim'?"},
      {R"({"dim": "8"})", "model config: 'dim' must be an integer: \"8\""},
      {R"({"dim": 8.5})", "model config: 'dim' must be an integer: 8.5"},
      {R"({"dim": {"a": [1]}})", "model config: nested too deeply"},
      {R"({"dim": 1e308})", "model config: 'dim' must be an integer: 1e+308"},
      {R"({"dim": 1e999})", "model config: not JSON: line 1, column 9: the number is too large"},
      {R"({"layers": 3000000000})", "model config: 'layers' must be in range: 3000000000"},
      {R"({"layers": -3000000000})", "model config: 'layers' must be in range: -3000000000"},
      {R"({"vocab": 9223372036854775808})",
       "model config: 'vocab' must be in range: 9223372036854775808"},
      {R"({"biases": 1})", "model config: 'biases' must be true or false: 1"},
      {R"({"kind": null})", "model config: 'kind' must be a string: null"},
      {R"({"eps": "small"})", "model config: 'eps' must be a number: \"small\""},
      {R"({"eps": 1e300})", "model config: 'eps' must be in range: 1e+300"},
      {R"({"embedding_std": -1e308})", "model config: 'embedding_std' must be in range: -1e+308"},
      {R"({"positions": 1})", "model config: 'positions' must be a string: 1"},
      {R"({"dim": 8} x)",
       "model config: not JSON: line 1, column 12: expected the end, found \"x\""},
  };
  for (const auto& [json, text] : rows)
    EXPECT_EQ(text_of([json = json] { TextModelConfig::from_json(json); }), text) << json;
}

TEST(TextModelConfigErrors, OfBytesAfterTheEnd) {
  const std::string text = std::string("{}") + '\0' + "{";
  EXPECT_EQ(text_of([&] { TextModelConfig::from_json(text); }),
            "model config: not JSON: line 1, column 3: expected the end, found \"\\u0000{\"");
}

TEST(TextModelConfigErrors, OfTheModel) {
  const std::pair<const char*, const char*> rows[] = {
      {R"({"kind": "rnn"})",
       "model config: unknown kind 'rnn'\n  hint: gpt, mamba, mamba2 or hybrid"},
      {R"({"activation": "swish"})",
       "model config: unknown activation 'swish'\n  hint: gelu, gelu_tanh, relu, silu, tanh"},
      {R"({"kind": "hybrid", "activation": "swish"})",
       "model config: unknown activation 'swish'\n  hint: gelu, gelu_tanh, relu, silu, tanh"},
      {R"({"layers": 0})", "model config: layers must be between 1 and 4096: 0"},
      {R"({"layers": 2000000000})", "model config: layers must be between 1 and 4096: 2000000000"},
      {R"({"vocab": 0})", "model config: vocab must be between 1 and 2147483647: 0"},
      {R"({"dim": -1})", "model config: dim must be between 1 and 1048576: -1"},
      {R"({"context": 0})", "model config: context must be between 1 and 2147483647: 0"},
      {R"({"kind": "mamba", "state": -1})",
       "model config: state must be between 0 and 1048576: -1"},
      {R"({"kind": "mamba", "dim": 1048576, "expand": 64})",
       "model config: more than 268435456 states: 4 layers of 64 x 1048576 x 64 (expand, dim, "
       "state)"},
      {R"({"eps": 0})", "model config: eps must be a positive number: 0"},
      {R"({"rope_base": 0})", "model config: rope_base must be a positive number: 0"},
      {R"({"embedding_std": 0})", "model config: embedding_std must be a positive number: 0"},
      {R"({"positions": "sine"})",
       "model config: unknown positions 'sine'\n  hint: learned, rotary"},
      {R"({"norm": "batch"})", "model config: unknown norm 'batch'\n  hint: layer, rms"},
      {R"({"kind": "mamba", "discretisation": "tustin"})",
       "model config: unknown discretisation 'tustin'\n  hint: euler, zoh"},
      {R"({"kind": "mamba2", "chunk": 0})", "model config: chunk must be between 1 and 1048576: 0"},
      {R"({"kind": "mamba2", "state_groups": 0})",
       "model config: state_groups must be between 1 and 1048576: 0"},
      {R"({"kind": "mamba", "biases": true})",
       "model config: biases are only for models of kind gpt: the kind is mamba"},
      {R"({"schedule": "mamba"})",
       "model config: a schedule is only for models of kind hybrid: the kind is gpt"},
      // Errors of the models themselves.
      {R"({"heads": 3})", "SelfAttention: heads must divide dim: dim 128, heads 3"},
      {R"({"heads": 4, "groups": 3})",
       "SelfAttention: groups must divide heads: heads 4, groups 3"},
      {R"({"kind": "hybrid", "heads": 3})",
       "SelfAttention: heads must divide dim: dim 128, heads 3"},
      {R"({"kind": "hybrid", "dim": 6, "heads": 2})",
       "SelfAttention: rotary positions need heads of an even size, dim / heads: dim 6, heads 2 "
       "(size 3)"},
      {R"({"positions": "rotary", "dim": 6, "heads": 2})",
       "SelfAttention: rotary positions need heads of an even size, dim / heads: dim 6, heads 2 "
       "(size 3)"},
      {R"({"kind": "mamba2", "state_groups": 3})",
       "Mamba2Block: groups must divide the heads, expand * dim / head_size: 4 heads, groups 3"},
      {R"({"kind": "mamba2", "head_size": 48})",
       "Mamba2Block: head_size must divide expand * dim: expand 2, dim 128, head_size 48"},
      {R"({"kind": "hybrid", "schedule": "mamba attends"})",
       "LanguageModel: unknown layer 'attends' in \"mamba attends\"\n  hint: mamba, mamba2 or "
       "attention"},
  };
  for (const auto& [json, text] : rows)
    EXPECT_EQ(text_of([json = json] { TextModelConfig::from_json(json); }), text) << json;
  std::string words;
  for (int i = 0; i < 5000; ++i) words += "mamba ";
  EXPECT_EQ(text_of([&] {
              TextModelConfig::from_json(R"({"kind": "hybrid", "schedule": ")" + words + "\"}");
            }),
            "model config: schedule's length must be between 0 and 4096: 5000");
}

// Also without JSON.
TEST(TextModelConfigErrors, OfAModelThatIsMade) {
  EXPECT_EQ(text_of([] { names_of({.layers = 2000000000}); }),
            "model config: layers must be between 1 and 4096: 2000000000");
}

}  // namespace
}  // namespace tensorgrad
