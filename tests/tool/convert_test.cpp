// tg convert: a model goes to PyTorch's names and back, and says the same afterwards.
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
    const ToolRun trained = run_tool("train text " + in("text") + " --model " + model +
                                     " --tokenizer bytes --dim 16 --layers 2 --heads 2 --context 8 "
                                     "--batch 2 --steps 3 --sample 0 --device cpu --out " +
                                     in(model));
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

TEST_F(ToolConvert, Errors) {
  const auto error = [&](const std::string& arguments, int exit_code) {
    const ToolRun run = run_tool("convert " + arguments);
    EXPECT_EQ(run.exit_code, exit_code) << run.err;
    return run.err;
  };
  write_safetensors(folder / "foreign", {.tensors = {{"w", Array({2}, std::vector<float>{1, 2})}}});
  expect_contains(error(in("foreign") + " " + in("out") + " --to torch", 1),
                  ": it does not say which model it is: its config is missing\n");
  EXPECT_EQ(error(in("foreign") + " " + in("out") + " --to tensorgrad", 1).substr(0, 4), "tg: ");
  expect_contains(error(in("foreign") + " " + in("out") + " --to tensorflow", 2),
                  "'tensorflow' is none of torch, tensorgrad");
  expect_contains(error(in("text") + " " + in("out") + " --to tensorgrad", 1),
                  (folder / "text").string() + ": ");
  EXPECT_FALSE(fs::exists(folder / "out"));
  expect_contains(error(in("foreign") + " " + in("foreign") + " --to torch", 2),
                  (folder / "foreign").string() + ": both to read and to write\n");
  expect_contains(error(in("foreign") + " " + in("text") + " --to torch", 2),
                  (folder / "text").string() + ": there already\n  hint: --force writes over it\n");
  expect_contains(
      error("'" + folder.string() + "' " + in("out") + " --to tensorgrad", 1),
      ": a folder\n  hint: --to tensorgrad takes a safetensors file of PyTorch weights\n");
}

}  // namespace
}  // namespace tensorgrad
