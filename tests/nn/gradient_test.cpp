// Gradients of whole blocks and models against central differences: the traced graph in the
// interpreter, in double. The CPU's gradients, from its fused kernels, are compared with those of
// the interpreter.
#include <algorithm>

#include "ir/graph.h"
#include "ops/table.h"
#include "reference/interpret.h"
#include "tests/nn/sequence_models.h"

namespace tensorgrad::nn_tests {
namespace {

using reference::Leaves;
using reference::Value;

Value value_of(const Array& array) {
  if (array.dtype() == f32) return {{f32, array.shape()}, doubles(array.floats())};
  return {{array.dtype(), array.shape()}, Doubles(array.ints().begin(), array.ints().end())};
}

double loss_of(const ir::Graph& graph, const Leaves& leaves) {
  const ir::NodeId node = graph.find(ir::Result::Kind::output, "loss");
  return reference::interpret(graph, leaves).at(static_cast<std::size_t>(node)).data[0];
}

// Derivative of the loss along a direction of one leaf, by Richardson extrapolation of two
// distances.
double slope(const ir::Graph& graph, const Leaves& leaves, const std::string& leaf,
             const Doubles& direction) {
  const auto central = [&](double h) {
    const auto moved = [&](double by) {
      Leaves other = leaves;
      Doubles& data = other.at(leaf).data;
      for (std::size_t i = 0; i < data.size(); ++i) data[i] += by * direction[i];
      return loss_of(graph, other);
    };
    return (moved(h) - moved(-h)) / (2 * h);
  };
  constexpr double kStep = 1e-4;
  return (4 * central(kStep / 2) - central(kStep)) / 3;
}

void expect_gradients(TrainingHandle& train, const NamedArrays& inputs) {
  const Weights weights = shuffle(train);
  Feed feed;
  Leaves leaves;
  for (const auto& [name, array] : inputs)
    feed.set(name, array), leaves["input:" + name] = value_of(array);
  for (const auto& [name, array] : weights.arrays) leaves["parameter:" + name] = value_of(array);
  leaves["input:$seed"] = {{i32, {}}, {0}};
  leaves["input:$step"] = {{i32, {}}, {0}};
  const ir::Graph graph = ir::parse(train.show("differentiate"), ops::find_primitive);
  const std::vector<Value> values = reference::interpret(graph, leaves);
  train.step(feed).wait();
  const NamedArrays computed = train.gradients();
  EXPECT_EQ(computed.size(), weights.arrays.size());
  for (const auto& [name, array] : computed) {
    const ir::NodeId node = graph.find(ir::Result::Kind::gradient, name);
    ASSERT_GE(node, 0) << name;
    const Doubles& exact = values.at(static_cast<std::size_t>(node)).data;
    double largest = 1e-3, length = 0;
    for (const double g : exact) largest = std::max(largest, std::abs(g)), length += g * g;
    const Floats drawn = numbers(exact.size(), 77);
    const Doubles direction(drawn.begin(), drawn.end());
    double along = 0;
    for (std::size_t i = 0; i < exact.size(); ++i) along += exact[i] * direction[i];
    EXPECT_NEAR(slope(graph, leaves, "parameter:" + name, direction), along,
                1e-6 * std::max(1e-2, std::sqrt(length)))
        << name;
    for (std::size_t i = 0; i < exact.size(); ++i)
      ASSERT_NEAR(array.floats()[i], exact[i], 2e-5 * largest) << name << ", element " << i;
  }
}

Array drawn(const Shape& shape, std::uint32_t seed) {
  return {shape, numbers(static_cast<std::size_t>(shape.count()), seed)};
}

// A block over x [2, 7, 6]. Its result is weighted so that every element has a different gradient;
// x is a parameter too.
template <class Block>
struct Around {
  Param x{{2, 7, 6}, init::normal(1)};
  Block block;
};

template <class Block>
void expect_block_gradients(Block block) {
  const Shape shape{2, 7, 6};
  auto train = compile(Around<Block>{.block = std::move(block)},
                       {.inputs = {{"weight", shape}}, .optimizer = Sgd{.lr = 0}, .device = "cpu"},
                       [](const Around<Block>& m, const Inputs& in) -> Outputs {
                         return {{"loss", sum(m.block(cast(m.x, f32)) * in["weight"])}};
                       });
  expect_gradients(train, {{"weight", drawn(shape, 5)}});
}

TEST(Gradients, OfConv1d) { expect_block_gradients(Conv1d(6, 4)); }
TEST(Gradients, OfMambaBlock) {
  expect_block_gradients(MambaBlock({.dim = 6, .state = 3, .dt_rank = 2}));
}
TEST(Gradients, OfMambaBlockWithZeroOrderHold) {
  expect_block_gradients(MambaBlock(
      {.dim = 6, .state = 3, .conv = 2, .expand = 1, .discretisation = Discretisation::zoh}));
}
TEST(Gradients, OfMamba2Block) {
  expect_block_gradients(
      Mamba2Block({.dim = 6, .state = 3, .head_size = 3, .groups = 2, .chunk = 3}));
}
TEST(Gradients, OfMamba2BlockInOneChunk) {
  expect_block_gradients(Mamba2Block({.dim = 6, .state = 3, .head_size = 4}));
}
TEST(Gradients, OfSelfAttentionWithGroupsAndRotaryPositions) {
  expect_block_gradients(SelfAttention(6, 3, {.groups = 1, .rope_base = 20.0f}));
}
// With rotary positions, because without them a bias of the keys has no effect: softmax cancels it.
TEST(Gradients, OfSelfAttentionWithBiases) {
  expect_block_gradients(SelfAttention(6, 3, {.groups = 1, .rope_base = 20.0f, .biases = true}));
}
TEST(Gradients, OfTransformerBlock) { expect_block_gradients(TransformerBlock(6, 3)); }

class ModelGradients : public testing::TestWithParam<std::string> {};

TEST_P(ModelGradients, AgreeWithCentralDifferences) {
  const Shape shape{2, 7};
  auto train = compile(make_model(GetParam()),
                       {.inputs = {{"tokens", shape, i32}, {"targets", shape, i32}},
                        .optimizer = Sgd{.lr = 0},
                        .device = "cpu"},
                       [](const AnyModel& m, const Inputs& in) -> Outputs {
                         return {{"loss", cross_entropy(m(in["tokens"]), in["targets"])}};
                       });
  expect_gradients(train, {{"tokens", Array(shape, tokens(14, kVocab))},
                           {"targets", Array(shape, tokens(14, kVocab, 2))}});
}

INSTANTIATE_TEST_SUITE_P(, ModelGradients, testing::ValuesIn(case_names()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace tensorgrad::nn_tests
