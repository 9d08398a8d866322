// The table is complete: a row for every function of ops.h, a graph for every primitive.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

#include "checks/sample_graph.h"
#include "ops/table.h"
#include "reference/interpret.h"

namespace tensorgrad::checks {
namespace {

// Names of the functions and operators that ops.h declares.
std::set<std::string> declared_ops() {
  std::ifstream in(TENSORGRAD_SOURCE_DIR "/include/tensorgrad/ops.h");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const std::regex declaration(
      R"((?:^|\n)(?:inline )?(?:std::vector<Tensor>|Tensor) (operator[^( ]+|\w+)\()");
  std::set<std::string> names;
  for (auto match = std::sregex_iterator(text.begin(), text.end(), declaration);
       match != std::sregex_iterator(); ++match)
    names.insert((*match)[1]);
  return names;
}

// The ops of a graph: the primitives of its nodes, and the composite that the row called.
std::set<std::string> called_in(const ir::Graph& graph) {
  std::set<std::string> names;
  for (const ir::Node& node : graph.nodes) {
    names.insert(std::string(node.op->name));
    names.insert(graph.sites[static_cast<std::size_t>(node.site)].composite);
  }
  for (const ir::Result& result : graph.results)
    if (result.kind == ir::Result::Kind::capture) names.insert("capture");
  return names;
}

TEST(Coverage, TheHeaderIsReadRight) {
  const std::set<std::string> ops = declared_ops();
  EXPECT_GT(ops.size(), 110u);
  for (const char* op : {"add", "split", "operator<=", "cross_entropy", "capture", "arange"})
    EXPECT_EQ(ops.count(op), 1u) << op;
  EXPECT_EQ(ops.count("Pair"), 0u);
}

TEST(Coverage, EveryDeclaredOpHasARowThatCallsIt) {
  std::set<std::string> called;
  for (const Sample& sample : samples()) {
    if (sample.op.rfind("operator", 0) == 0)
      called.insert(sample.op);
    else if (called_in(build(sample).forward).count(sample.op))
      called.insert(sample.op);
  }
  for (const std::string& op : declared_ops())
    EXPECT_EQ(called.count(op), 1u) << op << " has no row in checks/samples_*.cpp";
}

TEST(Coverage, EveryRowIsAboutADeclaredOp) {
  const std::set<std::string> ops = declared_ops();
  std::set<std::string> names;
  for (const Sample& sample : samples()) {
    EXPECT_EQ(ops.count(sample.op), 1u) << sample.op;
    EXPECT_TRUE(names.insert(sample.name()).second) << "two rows are called " << sample.name();
  }
}

TEST(Coverage, EveryPrimitiveOccursInAGraphAndCanBeInterpreted) {
  std::set<std::string> seen;
  for (const Sample& sample : samples())
    for (const ir::Node& node : build(sample).gradient.nodes)
      seen.insert(std::string(node.op->name));
  for (const ops::Family& family : ops::families())
    for (const ir::Primitive* op : family.primitives) {
      const std::string name(op->name);
      EXPECT_TRUE(reference::can_interpret(name)) << name;
      if (ir::is_leaf(op->core) || name == "copy") continue;  // copy is the compiler's own
      EXPECT_EQ(seen.count(name), 1u) << name << " occurs in no row's graph";
    }
}

TEST(Coverage, EveryDifferentiablePrimitiveIsDifferentiatedSomewhere) {
  std::set<std::string> differentiated;
  for (const Sample& sample : samples()) {
    const SampleGraph made = build(sample);
    if (made.differentiable.empty()) continue;
    for (const ir::Node& node : made.forward.nodes)
      if (node.type.dtype == f32) differentiated.insert(std::string(node.op->name));
  }
  for (const ops::Family& family : ops::families())
    for (const ir::Primitive* op : family.primitives) {
      const std::string name(op->name);
      if (!op->gradient || name == "segment_sum" || name == "scatter_add" || name == "fold")
        continue;
      EXPECT_EQ(differentiated.count(name), 1u) << name;
    }
}

}  // namespace
}  // namespace tensorgrad::checks
