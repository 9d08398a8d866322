#include "checks/sample_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

#include "autodiff/differentiate.h"
#include "ops/builder.h"
#include "ops/table.h"
#include "passes/dce.h"
#include "support/integers.h"

namespace tensorgrad::checks {
namespace {

// Central differences step 1e-4 to both sides of a value; this is well outside.
constexpr double kMargin = 0.01;

// The same on every standard library; the distributions of <random> are not.
double unit(std::mt19937& engine) { return static_cast<double>(engine() >> 8) * 0x1p-24; }

double draw_one(const Arg& arg, std::mt19937& engine) {
  if (arg.dtype != f32) return std::floor(arg.low + unit(engine) * (arg.high - arg.low + 1));
  for (;;) {
    double x = arg.low + unit(engine) * (arg.high - arg.low);
    if (arg.step > 0) x = (std::floor(x / arg.step) + arg.phase) * arg.step;
    const bool near = std::any_of(arg.avoid.begin(), arg.avoid.end(),
                                  [&](double point) { return std::abs(x - point) < kMargin; });
    if (!near) return static_cast<float>(x);
  }
}

// Splits the range, or a wider one for many values, into one part per value, takes a value from the
// middle of each part, and shuffles them.
std::vector<double> draw_apart(const Arg& arg, std::mt19937& engine) {
  const auto count = usize(arg.shape.count());
  const double width = std::max(arg.high - arg.low, 2 * kMargin * static_cast<double>(count));
  std::vector<double> out(count);
  for (std::size_t i = 0; i < count; ++i) {
    const double part =
        (static_cast<double>(i) + 0.25 + unit(engine) / 2) / static_cast<double>(count);
    out[i] = static_cast<float>(arg.low + part * width);
  }
  for (std::size_t i = count; i > 1; --i) std::swap(out[i - 1], out[engine() % i]);
  return out;
}

bool is_differentiable(const Arg& arg) { return arg.dtype == f32 && arg.differentiable; }

ir::Core kind_of(const Arg& arg) {
  return is_differentiable(arg) ? ir::Core::parameter : ir::Core::input;
}

}  // namespace

std::uint32_t seed_of(const std::string& text) {  // FNV-1a
  std::uint32_t hash = 2166136261u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return hash;
}

std::vector<double> draw(const Arg& arg, std::uint32_t seed) {
  std::mt19937 engine(seed);
  if (arg.spread) return draw_apart(arg, engine);
  const auto count = usize(arg.shape.count());
  std::vector<double> out(count);
  for (std::size_t i = 0; i < count; ++i)
    out[i] = arg.values.empty() ? draw_one(arg, engine) : arg.values[i % arg.values.size()];
  return out;
}

SampleGraph build(const Sample& sample, Cotangent cotangent) {
  SampleGraph made;
  ops::Builder builder;
  ops::BuildScope scope(builder);
  Tensors operands;
  std::vector<ir::NodeId> wanted;
  std::vector<std::string> wanted_names;
  const std::string row = sample.name();
  for (std::size_t i = 0; i < sample.args.size(); ++i) {
    const Arg& arg = sample.args[i];
    const std::string name = fmt::format("x{}", i),
                      leaf = fmt::format("{}:{}", ops::leaf_primitive(kind_of(arg)).name, name);
    const ir::Type type{arg.dtype, arg.shape};
    operands.push_back(builder.leaf(kind_of(arg), name, type));
    made.leaves[leaf] = {type, draw(arg, seed_of(row + name))};
    if (!is_differentiable(arg)) continue;
    wanted.push_back(TensorAccess::node(operands.back()));
    wanted_names.push_back(name);
    made.differentiable.push_back(leaf);
  }
  made.leaves["input:$seed"] = {{i32, {}}, {7}};
  made.leaves["input:$step"] = {{i32, {}}, {3}};

  const Tensor out = sample.function(operands);
  builder.graph.results.push_back({ir::Result::Kind::output, "out", TensorAccess::node(out)});
  made.forward = passes::dce(builder.graph);
  made.gradient = made.forward;
  if (out.dtype() != f32 || wanted.empty()) {
    made.differentiable.clear();
    return made;
  }
  Tensor loss = sum(out);
  if (cotangent == Cotangent::drawn) {
    const ir::Type type{f32, out.shape()};
    made.leaves["input:cotangent"] = {type,
                                      draw(real(type.shape, -1, 1), seed_of(row + "cotangent"))};
    loss = sum(out * builder.leaf(ir::Core::input, "cotangent", type));
  }
  const Tensors gradients = autodiff::differentiate(builder, loss, wanted);
  auto& results = builder.graph.results;
  for (std::size_t i = 0; i < wanted.size(); ++i)
    results.push_back(
        {ir::Result::Kind::gradient, wanted_names[i], TensorAccess::node(gradients[i])});
  made.gradient = passes::dce(builder.graph);
  return made;
}

bool has_gradient(const Sample& sample) {
  return sample.differentiable &&
         std::any_of(sample.args.begin(), sample.args.end(), is_differentiable);
}

}  // namespace tensorgrad::checks
