// The guard in the graph. On the CPU a failed step is known before the next one starts. A device
// with a queue may already have more steps in it, which must change nothing either.
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

using Values = std::map<std::string, std::vector<double>>;

struct Step {
  Values before, after;  // of everything that the step writes
};

// Interprets one step.
Step interpret_step(const TrainingHandle& train, const std::vector<double>& x, double failed) {
  const ir::Graph graph = ir::parse(train.show("update"), ops::find_primitive);
  reference::Leaves leaves;
  for (const ir::Node& node : graph.nodes)
    if (const auto* leaf = std::get_if<ir::LeafAttrs>(&node.attrs)) {
      std::vector<double> data(static_cast<std::size_t>(node.type.shape.count()),
                               node.type.dtype == i32 ? 3 : 0.25);
      if (leaf->name == "x") data = x;
      if (leaf->name == "guard:failed") data = {failed};
      leaves[std::string(node.op->name) + ":" + leaf->name] = {node.type, data};
    }
  const auto values = reference::interpret(graph, leaves);
  Step step;
  for (const ir::Result& result : graph.results) {
    if (!ir::is_update(result)) continue;
    const bool flat = result.kind == ir::Result::Kind::flat_update;
    const std::string kind = !flat                 ? "state:"
                             : result.name.empty() ? "flat_parameters:"
                                                   : "flat_state:";
    step.before[result.name] = leaves.at(kind + result.name).data;
    step.after[result.name] = values[static_cast<std::size_t>(result.node)].data;
  }
  return step;
}

Training<Model> train(NonFinite policy, int accumulate = 1) {
  return compile(
      Model{},
      {.inputs = {{"x", {2}}}, .accumulate = accumulate, .non_finite = policy, .threads = 1},
      [](const Model& m, const Inputs& in) { return sum(log(m.w * in["x"])); });
}

TEST(Guard, StepsBehindAFailedOneChangeNothing) {
  const auto program = train(NonFinite::fail);
  const Step good = interpret_step(program, {1, 1}, 0);
  EXPECT_EQ(good.after.size(), 5u);  // parameters, m, v, the count of updates, the flag
  for (const auto& [name, values] : good.after)
    EXPECT_EQ(values == good.before.at(name), name == "guard:failed") << name;
  Step behind = interpret_step(program, {1, 1}, 1);
  EXPECT_EQ(behind.after.at("guard:failed"), std::vector<double>{2});  // the one before it
  behind.after.erase("guard:failed"), behind.before.erase("guard:failed");
  EXPECT_EQ(behind.after, behind.before);
  Step bad = interpret_step(program, {1, -1}, 0);
  EXPECT_EQ(bad.after.at("guard:failed"), std::vector<double>{1});
  bad.after.erase("guard:failed"), bad.before.erase("guard:failed");
  EXPECT_EQ(bad.after, bad.before);
}

// The last step of a round. Under `skip` the device itself drops the sums of a round whose last
// step is not finite.
TEST(Guard, ABadStepLeavesTheSumsUnlessItIsSkipped) {
  const auto sums_after = [](NonFinite policy, const std::vector<double>& x, double failed) {
    const Step step = interpret_step(train(policy, 2), x, failed);
    const std::vector<double> before = step.before.at("accumulated");
    const std::vector<double> after = step.after.at("accumulated");
    EXPECT_EQ(before, std::vector<double>(before.size(), 0.25));
    return after == before ? "kept" : after == std::vector<double>(after.size(), 0) ? "zero" : "?";
  };
  const std::vector<double> good{1, 1}, bad{1, -1};
  EXPECT_STREQ(sums_after(NonFinite::fail, good, 0), "zero");
  EXPECT_STREQ(sums_after(NonFinite::fail, bad, 0), "kept");
  EXPECT_STREQ(sums_after(NonFinite::fail, good, 1), "kept");  // after a bad step
  EXPECT_STREQ(sums_after(NonFinite::skip, good, 0), "zero");
  EXPECT_STREQ(sums_after(NonFinite::skip, bad, 0), "zero");
}

TEST(Guard, SkipForgets) {
  const Step bad = interpret_step(train(NonFinite::skip), {1, -1}, 0);
  EXPECT_EQ(bad.after.count("guard:failed"), 0u);
  EXPECT_EQ(bad.after.size(), 4u);
  EXPECT_EQ(bad.after, bad.before);
}

}  // namespace
}  // namespace tensorgrad::optim_tests
