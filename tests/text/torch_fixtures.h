// Small models of PyTorch programs, written and computed by plain Python
// (tests/fixtures_more/torch_models.py): their weights and their logits.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tensorgrad/safetensors.h"
#include "text/models.h"

namespace tensorgrad {

inline const std::filesystem::path kTorchFixtures =
    std::filesystem::path(TENSORGRAD_SOURCE_DIR) / "tests/fixtures_more";

inline NamedArrays torch_weights(const std::string& kind) {
  return read_safetensors(kTorchFixtures / ("torch_" + kind + ".safetensors")).tensors;
}

inline Array logits_of(const TextModelConfig& config, const NamedArrays& parameters,
                       const nlohmann::json& tokens) {
  std::vector<std::int32_t> ids;
  for (const nlohmann::json& row : tokens) ids.insert(ids.end(), row.begin(), row.end());
  const Shape shape{static_cast<std::int64_t>(tokens.size()),
                    static_cast<std::int64_t>(tokens[0].size())};
  return text::with_model(config, [&](auto& model) -> Array {
    using Model = std::remove_reference_t<decltype(model)>;
    auto program =
        compile_forward(std::move(model), {.inputs = {{"tokens", shape, i32}}, .device = "cpu"},
                        [](const Model& m, const Inputs& in) { return m(in["tokens"]); });
    program.upload(parameters);
    return program.run({{"tokens", ids}}).output();
  });
}

// Compares with the logits that Python computed.
inline void expect_torch_logits(const std::string& kind, const TextModelConfig& config,
                                const NamedArrays& parameters) {
  std::ifstream in(kTorchFixtures / ("torch_" + kind + ".json"));
  const nlohmann::json expected = nlohmann::json::parse(in);
  const Array logits = logits_of(config, parameters, expected.at("tokens"));
  std::size_t at = 0;
  for (const nlohmann::json& row : expected.at("logits"))
    for (const nlohmann::json& position : row)
      for (const nlohmann::json& logit : position) {
        ASSERT_NEAR(logits.floats()[at], logit.get<double>(), 1e-5) << kind << ", logit " << at;
        ++at;
      }
  ASSERT_EQ(static_cast<std::int64_t>(at), logits.count());
}

}  // namespace tensorgrad
