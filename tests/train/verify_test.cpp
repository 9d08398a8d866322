// `tg verify` on the fixtures: ops and whole training runs against PyTorch (tests/fixtures) and
// against plain Python (tests/fixtures_more); and a proof that it detects a wrong value.
#include <gtest/gtest.h>

#include "tests/train/reference_directory.h"

namespace tensorgrad {
namespace {

using Json = nlohmann::ordered_json;

class Fixtures : public testing::TestWithParam<int> {};

TEST_P(Fixtures, AllOfPyTorchsPass) {
  const VerifyRun run =
      run_verify(kFixtures, "--device cpu --threads " + std::to_string(GetParam()));
  EXPECT_EQ(run.done.dump(), R"({"event":"done","passed":149,"failed":0,"skipped":0})")
      << run.tool.err;
  EXPECT_EQ(run.tool.exit_code, 0);
  EXPECT_EQ(run.cases.size(), 149u);
  for (const auto& [name, line] : run.cases) {
    EXPECT_EQ(keys(line), "case kind worst ok");
    EXPECT_EQ(line["kind"], name.rfind("train_", 0) == 0 ? "train" : "op");
    EXPECT_TRUE(line["ok"]) << line;
    EXPECT_GE(line["worst"].get<double>(), 0) << line;
    EXPECT_LE(line["worst"].get<double>(), 1) << line;
  }
  EXPECT_EQ(run.tool.err.find("skip"), run.tool.err.find("skipped on"));
  EXPECT_EQ(run.tool.err.find("skip", run.tool.err.find("skip") + 1), std::string::npos)
      << run.tool.err;
}

TEST_P(Fixtures, AllOfPythonsPass) {
  const VerifyRun run =
      run_verify(kMoreFixtures, "--device cpu --threads " + std::to_string(GetParam()));
  EXPECT_EQ(run.done.dump(), R"({"event":"done","passed":233,"failed":0,"skipped":0})")
      << run.tool.err;
  EXPECT_EQ(run.tool.exit_code, 0);
}

INSTANTIATE_TEST_SUITE_P(Threads, Fixtures, testing::Values(1, 2));

// ---- one number of the reference changed: that case fails and no other

struct Change {
  const char* file;    // without extension
  const char* tensor;  // or a key of the JSON file
  float by;
  const char* failed;
};

class WrongNumber : public testing::TestWithParam<Change> {};

TEST_P(WrongNumber, FailsItsCaseAlone) {
  const Change& change = GetParam();
  ReferenceDirectory directory;
  directory.copy_from(kFixtures);
  if (std::string(change.tensor) == "losses") {
    directory.change_json(std::string(change.file) + ".json", [&](Json& json) {
      json["losses"][7] = json["losses"][7].get<double>() + double{change.by};
    });
  } else {
    directory.change_tensors(std::string(change.file) + ".safetensors", [&](NamedArrays& tensors) {
      Array& array = tensors.at(change.tensor);
      if (array.dtype() == i32) {
        std::vector<std::int32_t> values(array.ints().begin(), array.ints().end());
        values.back() += static_cast<int>(change.by);
        array = Array(array.shape(), values);
      } else {
        array.floats().back() += change.by;
      }
    });
  }
  const VerifyRun run = run_verify(directory.path());
  EXPECT_EQ(run.failed(), change.failed);
  EXPECT_EQ(run.done.dump(), R"({"event":"done","passed":148,"failed":1,"skipped":0})");
  EXPECT_EQ(run.tool.exit_code, 1);
}

INSTANTIATE_TEST_SUITE_P(
    Fixtures, WrongNumber,
    testing::Values(Change{"ops", "gelu_2/out", 1e-3f, "gelu_2"},
                    Change{"ops", "gelu_2/grad/x", -1e-3f, "gelu_2"},
                    Change{"ops", "matmul_4/grad/other", 1e-3f, "matmul_4"},
                    Change{"ops", "conv2d_1/in/w", 1e-3f, "conv2d_1"},
                    Change{"ops", "layer_norm_1/cot", 1e-3f, "layer_norm_1"},
                    Change{"ops", "argmax_0/out", 1, "argmax_0"},
                    Change{"ops", "conv1d_causal_0/grad/w", 1e-3f, "conv1d_causal_0"},
                    Change{"ops", "ssd_1/grad/A_log", 1e-3f, "ssd_1"},
                    Change{"train_mamba", "losses", 1e-3f, "train_mamba"},
                    Change{"train_mamba", "grad1/layers.0.A_log", 1e-3f, "train_mamba"},
                    Change{"train_mlp_sin", "losses", 1e-3f, "train_mlp_sin"},
                    Change{"train_transformer", "losses", 1e-4f, "train_transformer"},
                    Change{"train_cnn", "grad1/fc.b", 1e-3f, "train_cnn"},
                    Change{"train_cnn", "final/c1.b", 1e-3f, "train_cnn"},
                    Change{"train_transformer", "init/lnf.g", 1e-3f, "train_transformer"},
                    Change{"train_mlp_sin", "batch/29/x", 1e-3f, "train_mlp_sin"}),
    [](const auto& test) {
      std::string name = std::string(test.param.failed) + "_" + test.param.tensor;
      for (char& c : name)
        if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
      return name;
    });

// ---- numbers without measure

struct Odd {
  const char* name;
  const char* op;
  float x, out;
  const char* line;
};

class OddNumber : public testing::TestWithParam<Odd> {};

TEST_P(OddNumber, IsComparedAsItIs) {
  const Odd& odd = GetParam();
  ReferenceDirectory directory;
  directory.write_case(std::string(R"({"op":")") + odd.op +
                           R"(","inputs":[{"name":"x","dtype":"f32","shape":[2]}]})",
                       {{"in/x", floats({2}, {odd.x, 1})},
                        {"out", floats({2}, {odd.out, odd.op[0] == 'l' ? 0.0f : 1.0f})}});
  const VerifyRun run = run_verify(directory.path());
  EXPECT_EQ(run.cases.at("one").dump(), odd.line);
}

constexpr float kNan = std::numeric_limits<float>::quiet_NaN(),
                kInf = std::numeric_limits<float>::infinity();
constexpr const char* kFine = R"({"case":"one","kind":"op","worst":0.0,"ok":true})";
constexpr const char* kWrong =
    R"({"case":"one","kind":"op","worst":null,"ok":false,"reason":"out is too far from the reference"})";

INSTANTIATE_TEST_SUITE_P(Verify, OddNumber,
                         testing::Values(Odd{"NanForANumber", "log", -1, 5, kWrong},
                                         Odd{"ANumberForNan", "sqrt", 1, kNan, kWrong},
                                         Odd{"NanForNan", "log", -1, kNan, kFine},
                                         Odd{"InfinityForANumber", "log", 0, -3e38f, kWrong},
                                         Odd{"ANumberForInfinity", "sqrt", 4, kInf, kWrong},
                                         Odd{"InfinityForInfinity", "log", 0, -kInf, kFine},
                                         Odd{"TheOtherInfinity", "log", 0, kInf, kWrong},
                                         Odd{"NanForInfinity", "log", -1, kInf, kWrong}),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace tensorgrad
