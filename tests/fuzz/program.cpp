#include "tests/fuzz/program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "autodiff/differentiate.h"
#include "ir/primitive.h"
#include "optim/update.h"
#include "support/fail.h"
#include "support/integers.h"
#include "tests/fuzz/rows.h"

namespace tensorgrad::fuzz {
namespace {

using ir::Result;
using reference::Value;

constexpr std::int64_t kMostElements = 50'000;  // of any node of an instruction

Tensor as_f32(const Tensor& x) { return x.dtype() == f32 ? x : cast(x, f32); }

// Combines the values in turn by sum, mean and mean of squares.
Tensor loss_of(const Program& program, const std::vector<Made>& values) {
  Tensor loss;
  for (std::size_t i = 0; i < program.loss.size(); ++i) {
    const Tensor x = as_f32(values[usize(program.loss[i])].tensor);
    const Tensor term = i % 3 == 0 ? mean(square(x)) : i % 3 == 1 ? mean(x) : sum(x) * 0.1f;
    loss = i == 0 ? term : loss + term;
  }
  return loss;
}

optim::UpdateOptions update_options(int optimizer) {
  optim::UpdateOptions options;
  switch (optimizer % 4) {
    case 0:
      options.optimizer = Adam{};
      break;
    case 1:
      options.optimizer = Sgd{.momentum = 0.9f, .weight_decay = 0.1f};
      break;
    case 2:
      options.optimizer = AdamW{.weight_decay = 0.1f};
      break;
    default:
      options.optimizer = Sgd{};
      break;
  }
  options.clip_grad_norm = optimizer / 4 % 2 == 1 ? 1.0f : 0.0f;
  options.non_finite = optimizer / 8 % 2 == 1 ? NonFinite::skip : NonFinite::fail;
  return options;
}

// The other inputs of an optimizer: state, its rate, and the parameters as one tensor.
void add_optimizer_leaves(Built& built, std::int64_t elements) {
  for (const ir::Node& node : built.graph.nodes) {
    if (!ir::is_leaf(node)) continue;
    const auto& name = node.as<ir::LeafAttrs>().name;
    const std::string key = fmt::format("{}:{}", node.op->name, name);
    if (built.leaves.count(key)) continue;
    if (node.op->core == ir::Core::flat_parameters) {
      Value flat{{f32, {elements}}, std::vector<double>(static_cast<std::size_t>(elements))};
      for (const auto& entry : built.parameters.entries()) {
        const auto& own = built.leaves.at("parameter:" + entry.name).data;
        if (entry.offset < elements)
          std::copy(own.begin(), own.end(), flat.data.begin() + entry.offset);
      }
      built.leaves[key] = std::move(flat);
    } else if (node.type.dtype != f32) {
      built.leaves[key] = draw(node.type, 1, 0, 1);
    } else {
      built.leaves[key] =
          name == optim::kUpdatesState ? Value{node.type, {3}} : draw(node.type, 5, 0.1, 0.2);
    }
  }
}

}  // namespace

Value draw(const ir::Type& type, std::uint64_t seed, double low, double high) {
  Random random(seed + 1);
  Value value{type, {}};
  for (std::int64_t i = type.shape.count(); i > 0; --i) {
    const double x = low + random.unit() * (high - low);
    value.data.push_back(type.dtype == f32 ? static_cast<double>(static_cast<float>(x))
                                           : std::floor(x));
  }
  return value;
}

const Made& Assembler::add(const Instr& instr) {
  ops::BuildScope scope(builder);
  Args args{builder, leaves, sizes_, fmt::format("v{}", values_.size()), {}, instr.dice};
  for (std::size_t i = 0; i < instr.in.size(); ++i) {
    args.in.push_back(values_[usize(instr.in[i])]);
    if (!accepts(instr.row->operands[i], args.in[i].tensor.dtype()))
      user_error("fuzz: an operand of another type");
  }
  Tensor tensor = instr.row->make(args);
  if (instr.tame && tensor.dtype() == f32) tensor = tanh(tensor);
  while (checked_ < builder.graph.size())
    if (builder.graph[checked_++].type.shape.count() > kMostElements) {
      checked_ = builder.graph.size();
      user_error("fuzz: a value is too large");
    }
  values_.push_back({tensor, tensor.dtype() == i32 ? args.limit : 0});
  return values_.back();
}

Built build(const Program& program) {
  Assembler assembler(program.sizes);
  for (const Instr& instr : program.code) assembler.add(instr);
  const std::vector<Made>& values = assembler.values();
  ops::Builder& builder = assembler.builder;
  ops::BuildScope scope(builder);
  assembler.leaves["input:$seed"] = {{i32, {}}, {7}};
  assembler.leaves["input:$step"] = {{i32, {}}, {3}};
  const auto name = [](int leaf) { return fmt::format("v{}", leaf); };
  const auto result = [&](Result::Kind kind, const std::string& called, const Tensor& x) {
    builder.graph.results.push_back({kind, called, TensorAccess::node(x)});
  };
  for (const int output : program.outputs)
    result(Result::Kind::output, fmt::format("out{}", output), values[usize(output)].tensor);

  Built built;
  Tensor loss;
  std::vector<Tensor> gradients;
  if (!program.loss.empty()) {
    loss = loss_of(program, values);
    result(Result::Kind::output, "loss", loss);
    std::vector<ir::NodeId> wanted;
    for (const int leaf : program.wanted)
      wanted.push_back(TensorAccess::node(values[usize(leaf)].tensor));
    gradients = autodiff::differentiate(builder, loss, wanted);
  }
  std::vector<optim::Trained> trained;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const std::string leaf = name(program.wanted[i]);
    result(Result::Kind::gradient, leaf, gradients[i]);
    const std::int64_t offset = built.parameters.place(leaf, {f32, gradients[i].shape()});
    trained.push_back({leaf, offset, gradients[i], i == 0, false});
  }
  const std::int64_t flat = built.parameters.elements();
  for (std::size_t i = 0; i < values.size(); ++i)
    if (&row_of_leaf("parameter") == program.code[i].row)
      built.parameters.place(name(static_cast<int>(i)), {f32, values[i].tensor.shape()});

  for (const Update& update : program.updates) {
    const Tensor before = values[usize(update.leaf)].tensor;
    const auto wanted = std::find(program.wanted.begin(), program.wanted.end(), update.leaf);
    if (update.value >= 0)
      result(Result::Kind::update, name(update.leaf),
             remade(as_f32(values[usize(update.value)].tensor), before.shape()));
    else if (wanted != program.wanted.end() && !gradients.empty() && program.optimizer == 0)
      result(Result::Kind::update, name(update.leaf),
             before - gradients[static_cast<std::size_t>(wanted - program.wanted.begin())] * 0.1f);
  }
  for (const Made& value : values) built.values.push_back(TensorAccess::node(value.tensor));
  built.leaves = assembler.leaves;
  if (program.optimizer > 0 && !trained.empty()) {
    optim::append_update(builder, loss, trained, flat, update_options(program.optimizer));
    built.values.clear();
  }
  built.graph = builder.graph;
  add_optimizer_leaves(built, flat);
  return built;
}

std::string Program::text() const {
  std::string out = fmt::format("sizes {}\n", fmt::join(sizes, " "));
  for (std::size_t i = 0; i < code.size(); ++i) {
    std::vector<std::string> operands;
    for (const int operand : code[i].in) operands.push_back(fmt::format("v{}", operand));
    out +=
        fmt::format("v{} = {}({}){}  // dice {}\n", i, code[i].row->op, fmt::join(operands, ", "),
                    code[i].tame ? ".tanh()" : "", fmt::join(code[i].dice, " "));
  }
  const auto list = [&](const char* what, const std::vector<int>& values) {
    if (values.empty()) return;
    std::vector<std::string> names;
    for (const int value : values) names.push_back(fmt::format("v{}", value));
    out += fmt::format("{} {}\n", what, fmt::join(names, ", "));
  };
  list("return", outputs);
  list("loss of", loss);
  list("gradients of", wanted);
  for (const Update& update : updates)
    out += update.value < 0 ? fmt::format("v{} -= 0.1 * its gradient\n", update.leaf)
                            : fmt::format("v{} = v{}, remade\n", update.leaf, update.value);
  if (optimizer > 0) out += fmt::format("optimizer {}\n", optimizer);
  return out;
}

}  // namespace tensorgrad::fuzz
