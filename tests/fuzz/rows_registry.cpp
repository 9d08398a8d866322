// Rows made from the registry: the arguments of an op are drawn by the kinds and names of its
// parameters. Ops whose operands must be related in a way of their own, or that are defined or
// well-conditioned only for some values, have rows in the other files instead.
#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "nn/registry.h"
#include "support/fail.h"
#include "tests/fuzz/rows.h"

namespace tensorgrad::fuzz {
namespace {

using ops::Argument;
using ops::Kind;
using ops::Parameter;
using ops::PublicOp;

// The frequency of ops that models are made of.
int weight_of(std::string_view op) {
  static const std::map<std::string_view, int> weights = {
      {"add", 12},   {"mul", 12},    {"sub", 6},     {"sum", 8},    {"mean", 4},
      {"tanh", 4},   {"relu", 3},    {"max", 3},     {"cumsum", 3}, {"softmax", 3},
      {"square", 2}, {"sigmoid", 2}, {"greater", 4}, {"flip", 3},   {"unsqueeze", 2}};
  const auto found = weights.find(op);
  return found == weights.end() ? 1 : found->second;
}

// How the shapes of the operands are related. Tried in this order until the op accepts them.
enum class Fit : std::uint8_t {
  broadcast,  // parts that broadcast against the first
  same,       // the shape of the first
  last,       // vectors as long as the last axis of the first
  rows,       // the shape of the first without its last axis
};
constexpr std::array kFits = {Fit::broadcast, Fit::same, Fit::last, Fit::rows};

bool is_operand(const Parameter& parameter) {
  return !parameter.optional && (parameter.kind == Kind::tensor || parameter.kind == Kind::tensors);
}

Tensor fit_to(const Tensor& x, const Tensor& first, Fit fit) {
  Shape shape = first.shape();
  switch (fit) {
    case Fit::broadcast:
      return fitted(x, shape);
    case Fit::same:
      return remade(x, shape);
    case Fit::last:
      return remade(x, {shape[-1]});
    case Fit::rows:
      shape.erase(-1);
      return remade(x, shape);
  }
  return x;
}

// Operands of related shapes. The first has an axis if the op or the others need one.
std::vector<Tensor> related(const PublicOp& op, Args& a, Fit fit) {
  const std::vector<Parameter> parameters = op.parameters();
  const bool needs_axis =
      fit != Fit::broadcast || std::any_of(parameters.begin(), parameters.end(),
                                           [](const Parameter& p) { return p.name == "axis"; });
  std::vector<Tensor> operands;
  for (int i = 0; i < static_cast<int>(a.in.size()); ++i) {
    Tensor x = i == 0 && needs_axis ? with_rank(a[0], 1) : a[i];
    if (i > 0 && x.dtype() == i32 && operands[0].dtype() == f32 && operands[0].rank() > 0)
      x = a.ids(i, operands[0].size(-1));  // perhaps ids of its elements
    operands.push_back(i == 0 ? x : fit_to(x, operands[0], fit));
  }
  return operands;
}

Argument drawn(Args& a, const Parameter& parameter, const Tensor& first) {
  const bool as_by_default = parameter.optional && a.flip();
  switch (parameter.kind) {
    case Kind::number:
      if (as_by_default) return parameter.otherwise;
      return static_cast<double>(a.number());
    case Kind::integer:
      if (parameter.name == "axis" && first.valid())
        return static_cast<std::int64_t>(a.axis(first));
      if (as_by_default) return parameter.otherwise;
      return a.size();
    case Kind::boolean:
      return a.flip();
    case Kind::text:
      return a.name;
    case Kind::word:
      return parameter.words[static_cast<std::size_t>(a.pick(std::ssize(parameter.words)))];
    case Kind::shape:
      return ops::Integers(a.shape());
    case Kind::integers:
      return ops::Integers{-1};
    case Kind::axes: {
      const Axes axes = first.valid() ? a.axes(first) : Axes();
      return ops::Integers(axes.values().begin(), axes.values().end());
    }
    case Kind::pair:
      return ops::Integers{1 + a.pick(2), 1 + a.pick(2)};
    case Kind::tensor:
    case Kind::tensors:
      return parameter.otherwise;
  }
  return {};
}

// Exchanges the operands of a binary op, or has a number in the place of one.
void vary(Args& a, std::vector<Operand>& operands) {
  const DType dtype = a[0].dtype();
  if (dtype != boolean && a.pick(3) == 2) {
    const float number = a.number();
    operands[1] = dtype == i32 ? Operand(static_cast<int>(number)) : Operand(number);
  }
  if (a.flip()) std::swap(operands[0], operands[1]);
}

std::vector<Tensor> call(const PublicOp& op, Args& a, Fit fit) {
  const std::vector<Tensor> tensors = related(op, a, fit);
  std::vector<Operand> operands;
  for (const Tensor& tensor : tensors) operands.emplace_back(tensor, Site::here());
  const bool takes_a_list = op.parameters()[0].kind == Kind::tensors;
  if (!takes_a_list && fit == Fit::broadcast && operands.size() == 2) vary(a, operands);
  std::vector<Argument> arguments;
  auto next = operands.begin();
  for (const Parameter& parameter : op.parameters()) {
    if (!is_operand(parameter))
      arguments.push_back(drawn(a, parameter, tensors.empty() ? Tensor() : tensors[0]));
    else if (parameter.kind == Kind::tensors)
      arguments.emplace_back(std::vector<Operand>(operands));
    else
      arguments.emplace_back(*next++);
  }
  return op.call(arguments, Site::here());
}

std::optional<Tensor> attempt(const PublicOp& op, Args& a, Fit fit) {
  const ops::Builder::Mark before = a.builder.mark();
  const std::size_t die = a.next;
  try {
    const std::vector<Tensor> results = call(op, a, fit);
    return results[static_cast<std::size_t>(a.pick(std::ssize(results)))];
  } catch (const UserError&) {
    a.builder.return_to(before);
    a.next = die;
    return {};
  }
}

Tensor made(const PublicOp& op, Args& a) {
  for (const Fit fit : kFits)
    if (const auto result = attempt(op, a, fit)) return *result;
  user_error("fuzz: {} refuses its operands", op.name);
}

// ---- the element types that an op accepts

// Calls the op on small operands of these types, with several dice.
bool accepts_types(const PublicOp& op, const std::string& types) {
  for (std::uint16_t die = 0; die < 3; ++die) {
    ops::Builder builder;
    const ops::BuildScope scope(builder);
    reference::Leaves leaves;
    const std::vector<std::int64_t> sizes{2, 3};
    Args a{builder, leaves, sizes, "probe", {}, {}};
    a.dice.fill(die);
    for (std::size_t i = 0; i < types.size(); ++i) {
      const DType dtype = types[i] == 'f' ? f32 : types[i] == 'i' ? i32 : boolean;
      a.in.push_back({builder.leaf(ir::Core::input, std::to_string(i), {dtype, {2, 3}}), 0});
    }
    for (const Fit fit : kFits)
      if (attempt(op, a, fit)) return true;
  }
  return false;
}

std::vector<std::string> accepted_types(const PublicOp& op) {
  std::size_t count = 0;
  for (const Parameter& parameter : op.parameters())
    if (is_operand(parameter)) count += parameter.kind == Kind::tensors ? 2 : 1;
  std::vector<std::string> tried{""}, accepted;
  for (std::size_t i = 0; i < count && i < 3; ++i) {
    std::vector<std::string> longer;
    for (const std::string& types : tried)
      for (const char type : {'f', 'i', 'b'}) longer.push_back(types + type);
    tried = std::move(longer);
  }
  for (std::string types : tried) {
    types.resize(count, 'f');
    if (accepts_types(op, types)) accepted.push_back(types);
  }
  return accepted;
}

// The letter of a set of types: "fi" is n. Zero if there is none.
char letter_of(const std::set<char>& types) {
  if (types.size() == 1) return *types.begin();
  if (types == std::set<char>{'f', 'i'}) return 'n';
  return types.size() == 3 ? 'a' : '\0';
}

// One row for all, if any type may stand beside any other; otherwise one for each.
std::vector<std::string> operands_of(const PublicOp& op) {
  const std::vector<std::string> accepted = accepted_types(op);
  if (accepted.empty()) return {};
  std::string letters;
  std::size_t product = 1;
  for (std::size_t i = 0; i < accepted[0].size(); ++i) {
    std::set<char> types;
    for (const std::string& one : accepted) types.insert(one[i]);
    letters += letter_of(types);
    product *= types.size();
  }
  if (product == accepted.size() && letters.find('\0') == letters.npos) return {letters};
  return accepted;
}

}  // namespace

std::vector<Row> registry_rows(const std::set<std::string_view>& without) {
  std::vector<Row> rows;
  for (const ops::PublicFamily& family : nn::families())
    for (const PublicOp& op : family.ops) {
      if (without.count(op.name)) continue;
      for (const std::string& operands : operands_of(op))
        rows.push_back({std::string(op.name), operands, [&op](Args& a) { return made(op, a); },
                        weight_of(op.name)});
    }
  return rows;
}

}  // namespace tensorgrad::fuzz
