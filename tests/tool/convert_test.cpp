// tg convert: a model goes to PyTorch's names and back, and generates the same text afterwards.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tensorgrad/checkpoint.h"
#include "tensorgrad/safetensors.h"
#include "tests/support/run_tool.h"

namespace tensorgrad {
namespace {

namespace fs = std::filesystem;

class ToolConvert : public testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(folder);
    fs::create_directories(folder);
    std::ofstream out(folder / "text");
    for (int i = 0; i < 50; ++i) out << "a line " << i << "\n";
  }
  void TearDown() override { fs::remove_all(folder); }
  std::string in(const std::string& name) const { return "'" + (folder / name).string() + "'"; }
  const fs::path folder = fs::path(testing::TempDir()) / "tg convert";
};

TEST_F(ToolConvert, ThereAndBack) {
  for (const std::string model : {"gpt", "mamba", "mamba2"}) {
    SCOPED_TRACE(model);
    const ToolRun trained =
        run_tool("train text " + in("text") + " --model " + model +
                 " --tokenizer bytes --dim 16 --layers 2 --context 8 "
                 "--batch 2 --steps 3 --sample 0 --device cpu --out " +
                 in(model) + (model == "gpt" ? " --heads 2 --positions learned" : ""));
    ASSERT_EQ(trained.exit_code, 0) << trained.err;
    const ToolRun there =
        run_tool("convert " + in(model) + " " + in(model + ".torch") + " --to torch");
    ASSERT_EQ(there.exit_code, 0) << there.err;
    expect_contains(there.out, "weights of a model of kind " + model + " under PyTorch's names\n");
    const TensorFile torch = read_safetensors(folder / (model + ".torch"));
    EXPECT_TRUE(torch.tensors.count(model == "gpt" ? "transformer.h.1.attn.c_attn.weight"
                                                   : "backbone.layers.1.mixer.in_proj.weight"));
    EXPECT_EQ(torch.metadata.at("format"), "pt");
    const ToolRun back = run_tool("convert " + in(model + ".torch") + " " + in(model + ".ours") +
                                  " --to tensorgrad --json");
    ASSERT_EQ(back.exit_code, 0) << back.err;
    EXPECT_EQ(json_lines(back).at(0)["model"]["kind"], model);
    const auto says = [&](const std::string& checkpoint) {
      return run_tool("generate " + in(checkpoint) +
                      " --prompt 'a li' --tokens 20 --temperature 0 --device cpu")
          .out;
    };
    EXPECT_EQ(says(model + ".ours"), says(model));
    const Checkpoint was = load_checkpoint(folder / model / "checkpoints" /
                                           "step-00000003.safetensors"),
                     is = load_checkpoint(folder / (model + ".ours"));
    for (const auto& [name, array] : was.parameters) {
      ASSERT_TRUE(is.parameters.count(name)) << name;
      EXPECT_TRUE(std::ranges::equal(array.floats(), is.parameters.at(name).floats())) << name;
    }
  }
}

const fs::path kFixtures = fs::path(TENSORGRAD_SOURCE_DIR) / "tests/fixtures_more";

// Settings that weights do not show come from config.json, or are reported as assumed.
TEST_F(ToolConvert, ReadsTheConfigBesideTheWeights) {
  fs::create_directories(folder / "hub");
  fs::copy_file(kFixtures / "torch_gpt2.safetensors", folder / "hub/model.safetensors");
  const auto convert = [&](const std::string& more) {
    return run_tool("convert " + in("hub/model.safetensors") + " " + in("out") +
                    " --force --to tensorgrad " + more);
  };
  const auto config = [&](const std::string& text) {
    std::ofstream(folder / "hub/config.json") << text;
  };
  const ToolRun without = convert("");
  ASSERT_EQ(without.exit_code, 0) << without.err;
  const std::string assumed = "heads 1, activation gelu_tanh, epsilon 1e-05";
  expect_contains(without.out, "no config.json was read; assumed: " + assumed +
                                   "\n  hint: --config FILE, --heads N or --activation NAME\n");
  EXPECT_EQ(json_lines(convert("--json --heads 4")).at(0)["assumed"],
            (nlohmann::ordered_json{"activation gelu_tanh", "epsilon 1e-05"}));

  config(R"({"model_type": "gpt2", "n_head": 2, "activation_function": "relu"})");
  const ToolRun with = convert("");
  ASSERT_EQ(with.exit_code, 0) << with.err;
  expect_contains(with.out, "config read from " + (folder / "hub/config.json").string() + "\n");
  const nlohmann::ordered_json told = json_lines(convert("--json")).at(0);
  EXPECT_EQ(told["model"]["heads"], 2);
  EXPECT_EQ(told["model"]["activation"], "relu");
  EXPECT_TRUE(told["assumed"].empty());
  EXPECT_EQ(json_lines(convert("--json --heads 4")).at(0)["model"]["heads"], 4);

  config(R"({"model_type": "llama"})");
  EXPECT_EQ(convert("").err,
            "tg: " + (folder / "hub/config.json").string() +
                ": model_type is \"llama\": not supported: gpt2, mamba and mamba2 are\n"
                "  hint: --config FILE reads another one, --config none reads none\n");
  expect_contains(convert("--config none").out, "assumed: " + assumed);
  expect_contains(convert("--config " + in("none.json")).err,
                  "none.json: cannot read: No such file or directory\n");
}

// Weights written by convert contain their config; explicit options have priority.
TEST_F(ToolConvert, AnExplicitConfigWins) {
  const std::string torch = in("model.torch");
  ASSERT_EQ(run_tool("train text " + in("text") +
                     " --model gpt --positions learned --tokenizer bytes --dim 16 --layers 1 "
                     "--heads 4 --context 8 --batch 2 --steps 1 --sample 0 --device cpu --out " +
                     in("run"))
                .exit_code,
            0);
  ASSERT_EQ(run_tool("convert " + in("run") + " " + torch + " --to torch").exit_code, 0);
  const auto model = [&](const std::string& more) {
    const ToolRun run =
        run_tool("convert " + torch + " " + in("out") + " --force --to tensorgrad --json " + more);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return json_lines(run).at(0);
  };
  EXPECT_EQ(model("")["model"]["heads"], 4);
  std::ofstream(folder / "other.json")
      << R"({"model_type": "gpt2", "n_head": 2, "activation_function": "relu"})";
  const auto told = model("--config " + in("other.json"));
  EXPECT_EQ(told["model"]["heads"], 2);
  EXPECT_EQ(told["model"]["activation"], "relu");
  const auto without = model("--config none");
  EXPECT_EQ(without["model"]["heads"], 1);
  EXPECT_EQ(without["assumed"].size(), 3u);
  // A file beside the weights is not an explicit option.
  std::ofstream(folder / "config.json") << R"({"model_type": "gpt2", "n_head": 2})";
  EXPECT_EQ(model("")["model"]["heads"], 4);
}

TEST_F(ToolConvert, OptionsOfPyTorchWeightsAreRefusedForOurs) {
  for (const std::string option : {"--config config.json", "--heads 2", "--activation relu"}) {
    const ToolRun run =
        run_tool("convert " + in("none") + " " + in("out") + " --to torch " + option);
    EXPECT_EQ(run.exit_code, 2);
    expect_starts_with(
        run.err,
        "tg: " + option.substr(0, option.find(' ')) +
            ": only for --to tensorgrad: with --to torch the checkpoint describes the model\n");
  }
}

// Two groups have other norms, so it would be another model.
TEST_F(ToolConvert, RefusesMamba2WithGroups) {
  fs::copy_file(kFixtures / "torch_mamba2.safetensors", folder / "model.safetensors");
  std::ofstream(folder / "config.json") << R"({"model_type": "mamba2", "n_groups": 2})";
  const auto convert = [&](const std::string& more) {
    return run_tool("convert " + in("model.safetensors") + " " + in("out") + " --to tensorgrad " +
                    more);
  };
  const ToolRun run = convert("");
  EXPECT_EQ(run.exit_code, 1);
  expect_contains(run.err, "config.json: n_groups is 2: not supported: ");
  EXPECT_FALSE(fs::exists(folder / "out"));
  expect_contains(convert("--config none").out,
                  "assumed: one group with a state of 5, epsilon 1e-05\n");
}

TEST_F(ToolConvert, SaysWhatAPickleIs) {
  using namespace std::string_literals;
  const std::string zip = "PK\x03\x04\0\0\b\b\0\0"s;
  const std::string pickle = "\x80\x02\x8a\nl\xfc\x9c" + "F\xf9"s;
  for (const auto& [bytes, what] :
       {std::pair(zip, "a zip archive"), std::pair(pickle, "a Python pickle")}) {
    std::ofstream(folder / "model.pt", std::ios::binary) << bytes;
    EXPECT_EQ(run_tool("convert " + in("model.pt") + " " + in("out") + " --to tensorgrad").err,
              "tg: " + (folder / "model.pt").string() + ": not a safetensors file but " + what +
                  ", as torch.save writes it (.pt, .pth, .bin)\n"
                  "  hint: convert it in Python:\n"
                  "    import torch, safetensors.torch as st; w = torch.load('model.pt', "
                  "map_location='cpu')\n"
                  "    st.save_file({k: v.contiguous().clone() for k, v in w.items()}, "
                  "'model.safetensors')\n");
  }
}

// PyTorch's programs would compute something else with these weights.
TEST_F(ToolConvert, RefusesWhatPyTorchDoesNotCompute) {
  const std::pair<const char*, const char*> rows[] = {
      {"gpt --heads 2 --positions rotary",
       "GPT-2 has learned positions and layer norms: these are rotary and layer\n"
       "  hint: train with --positions learned --norm layer\n"},
      {"gpt --heads 2 --positions learned --norm rms",
       "GPT-2 has learned positions and layer norms: these are learned and rms\n"},
      {"mamba --discretisation zoh",
       "PyTorch's Mamba has the discretisation euler: this is zoh\n"}};
  int number = 0;
  for (const auto& [model, message] : rows) {
    const std::string run = in(std::to_string(++number));
    EXPECT_EQ(run_tool("train text " + in("text") + " --model " + model +
                       " --tokenizer bytes --dim 16 --layers 1 --context 8 --batch 2 "
                       "--steps 1 --sample 0 --device cpu --out " +
                       run)
                  .exit_code,
              0);
    const ToolRun refused = run_tool("convert " + run + " " + in("out") + " --to torch");
    EXPECT_EQ(refused.exit_code, 1);
    expect_contains(refused.err, message);
    EXPECT_FALSE(fs::exists(folder / "out"));
  }
}

TEST_F(ToolConvert, Errors) {
  const auto error = [&](const std::string& arguments, int exit_code) {
    const ToolRun run = run_tool("convert " + arguments);
    EXPECT_EQ(run.exit_code, exit_code) << run.err;
    return run.err;
  };
  write_safetensors(folder / "foreign", {.tensors = {{"w", Array({2}, std::vector<float>{1, 2})}}});
  expect_contains(error(in("foreign") + " " + in("out") + " --to torch", 1),
                  ": its config is missing, so the kind of model is unknown\n");
  expect_starts_with(error(in("foreign") + " " + in("out") + " --to tensorgrad", 1),
                     "tg: " + (folder / "foreign").string() + ": ");
  expect_contains(error(in("foreign") + " " + in("out") + " --to tensorflow", 2),
                  "'tensorflow' is not one of torch, tensorgrad");
  expect_contains(error(in("text") + " " + in("out") + " --to tensorgrad", 1),
                  (folder / "text").string() + ": ");
  EXPECT_FALSE(fs::exists(folder / "out"));
  expect_contains(error(in("foreign") + " " + in("foreign") + " --to torch", 2),
                  (folder / "foreign").string() + ": IN and OUT are the same file\n");
  expect_contains(
      error(in("foreign") + " " + in("text") + " --to torch", 2),
      (folder / "text").string() + ": the file exists\n  hint: --force overwrites it\n");
  expect_contains(
      error("'" + folder.string() + "' " + in("out") + " --to tensorgrad", 1),
      ": is a folder\n  hint: --to tensorgrad needs a safetensors file of PyTorch weights\n");
}

}  // namespace
}  // namespace tensorgrad
