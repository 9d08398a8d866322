// The guard as the graph has it. On the CPU a failed step is known before the next one starts; a
// device with a queue may have steps behind it already, which must change nothing either.
#include <gtest/gtest.h>

#include <algorithm>

#include "ops/table.h"
#include "reference/interpret.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::optim_tests {
namespace {

struct Model {
  Param w{{2}, init::literal({1, 2})};
};

// One step by the interpreter: what each update writes, by name.
std::map<std::string, std::vector<double>> updates_of(const TrainingHandle& train, std::vector<double> x, double failed) {
  const ir::Graph graph = ir::parse(train.show("update"), ops::find_primitive);
  reference::Leaves leaves;
  for (const ir::Node& node : graph.nodes)
    if (const auto* leaf = std::get_if<ir::LeafAttrs>(&node.attrs))
      leaves[std::string(node.op->name) + ":" + leaf->name] = {node.type, std::vector<double>(static_cast<std::size_t>(node.type.shape.count()), 0.25)};
  leaves.at("parameter:w").data = {1, 2};
  leaves.at("input:x").data = std::move(x);
  if (leaves.count("state:guard:failed")) leaves.at("state:guard:failed").data = {failed};
  const auto values = reference::interpret(graph, leaves);
  std::map<std::string, std::vector<double>> out;
  for (const ir::Result& result : graph.results)
    if (result.kind == ir::Result::Kind::update) out[result.name] = values[static_cast<std::size_t>(result.node)].data;
  return out;
}

Training<Model> train(NonFinite policy) {
  return compile(Model{}, {.inputs = {{"x", {2}}}, .non_finite = policy, .threads = 1},
                 [](const Model& m, const Inputs& in) { return sum(log(m.w * in["x"])); });
}

TEST(Guard, StepsBehindAFailedOneChangeNothing) {
  const auto program = train(NonFinite::fail);
  const auto good = updates_of(program, {1, 1}, 0), behind = updates_of(program, {1, 1}, 1), bad = updates_of(program, {1, -1}, 0);
  const std::map<std::string, std::vector<double>> unchanged = {
      {"w", {1, 2}}, {"m:w", {0.25, 0.25}}, {"v:w", {0.25, 0.25}}, {"adam:updates", {0.25}}, {"guard:failed", {1}}};
  EXPECT_EQ(behind, unchanged);
  EXPECT_EQ(bad, unchanged);
  ASSERT_EQ(good.size(), unchanged.size());
  for (const auto& [name, values] : good) EXPECT_NE(values, unchanged.at(name)) << name;
  EXPECT_EQ(good.at("guard:failed"), std::vector<double>{0});
}

TEST(Guard, SkipForgets) {
  const auto program = train(NonFinite::skip);
  const auto bad = updates_of(program, {1, -1}, 0);
  EXPECT_EQ(bad.count("guard:failed"), 0u);
  EXPECT_EQ(bad.at("w"), (std::vector<double>{1, 2}));
}

}  // namespace
}  // namespace tensorgrad::optim_tests
