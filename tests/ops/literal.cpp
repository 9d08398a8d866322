#include "tests/ops/literal.h"

#include <gtest/gtest.h>

#include <cmath>

#include "checks/eval_graph.h"
#include "checks/sample_graph.h"
#include "tensorgrad/error.h"

namespace tensorgrad::checks {
namespace {

void expect_numbers(const std::string& what, const Numbers& got, const Numbers& want,
                    double tolerance) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (std::size_t i = 0; i < want.size(); ++i) {
    const double g = got[i], w = want[i];
    const double allowed = w == 0 ? 1e-12 : tolerance * std::abs(w);
    const bool same = std::isnan(w) ? std::isnan(g) : g == w || std::abs(g - w) <= allowed;
    EXPECT_TRUE(same) << what << ", element " << i << ": " << g << " instead of " << w;
  }
}

}  // namespace

void expect(const std::vector<Arg>& args, const std::function<Tensor(const Tensors&)>& function,
            const Want& want) {
  SampleGraph made = build({"op", "literal", args, function});
  if (const auto leaf = made.leaves.find("input:cotangent"); leaf != made.leaves.end()) {
    Numbers& cotangent = leaf->second.data;
    for (std::size_t i = 0; i < cotangent.size(); ++i)
      cotangent[i] = want.cotangent[i % want.cotangent.size()];
  }
  const auto by_cpu = eval::evaluate(made.gradient, made.leaves);
  EXPECT_EQ(by_cpu.damage, "");
  for (const auto& [who, results] :
       {std::pair<std::string, std::vector<reference::Value>>{"CPU", by_cpu.results},
        {"interpreter", eval::interpret_results(made.gradient, made.leaves)}}) {
    std::vector<Numbers> gradients;
    for (std::size_t i = 0; i < results.size(); ++i) {
      const ir::Result& result = made.gradient.results[i];
      if (result.kind == ir::Result::Kind::gradient) gradients.push_back(results[i].data);
      if (result.kind == ir::Result::Kind::output)
        expect_numbers(who + ": value", results[i].data, want.value, want.tolerance);
    }
    if (want.gradients.empty()) continue;
    ASSERT_EQ(gradients.size(), want.gradients.size()) << who;
    for (std::size_t i = 0; i < gradients.size(); ++i)
      expect_numbers(who + ": gradient of operand " + std::to_string(i), gradients[i],
                     want.gradients[i], want.tolerance);
  }
}

std::string error_of(const std::vector<Arg>& args,
                     const std::function<Tensor(const Tensors&)>& function) {
  try {
    build({"op", "literal", args, function});
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace tensorgrad::checks
