// Op cases: the registry says which inputs and attributes an op has. Gradients are computed as a
// user would: differentiable inputs are parameters, the loss is sum(out * cotangent).
#include <algorithm>
#include <functional>
#include <map>
#include <optional>

#include "c/arguments.h"
#include "nn/registry.h"
#include "replay.h"
#include "support/fail.h"
#include "support/text.h"

namespace tensorgrad::tool {

namespace {

using ops::Kind;
using ops::Parameter;
using ops::PublicOp;

// Names of the format that are not those of the registry; without an op: of every op that has
// `own` and not `format`.
struct OtherName {
  std::string_view op, format, own;
};
constexpr OtherName kOtherNames[] = {
    {"matmul", "input", "a"}, {"matmul", "other", "b"}, {"where", "c", "condition"},
    {"", "perm", "order"},    {"", "idx", "ids"},       {"", "axis", "axes"},
};

const PublicOp& find_op(const std::string& name) {
  if (const PublicOp* op = nn::find_op(name)) return *op;
  const std::string near = nearest_name(name, nn::op_names());
  user_error("unknown op '{}'{}", name, near.empty() ? "" : fmt::format("\n  hint: {}?", near));
}

bool has_parameter(const PublicOp& op, std::string_view name) {
  const std::vector<Parameter> parameters = op.parameters();
  return std::any_of(parameters.begin(), parameters.end(),
                     [&](const Parameter& parameter) { return parameter.name == name; });
}

std::string own_name(const PublicOp& op, const std::string& name) {
  if (has_parameter(op, name)) return name;
  for (const OtherName& other : kOtherNames)
    if (other.format == name && (other.op.empty() || other.op == op.name) &&
        has_parameter(op, other.own))
      return std::string(other.own);
  return name;
}

// ---- one case

struct Input {
  std::string name;
  const Array* value;
  bool differentiable = false;
};

// The arguments of the call as the C interface takes them: attributes by value, inputs as
// {"input": name}.
Json arguments_of(const PublicOp& op, const Json& attributes, const std::vector<Input>& inputs) {
  if (!attributes.is_object()) user_error("attributes must be an object: {}", attributes.dump());
  Json arguments = Json::object();
  const auto add = [&](const std::string& given, const Json& value) {
    const std::string name = own_name(op, given);
    if (arguments.contains(name)) user_error("{}: '{}' is given twice", op.name, name);
    arguments[name] = value;
  };
  for (const auto& [name, value] : attributes.items()) {
    if (value.is_null()) continue;
    if (value.is_object())
      user_error("{}: the attribute '{}' must not be an object: {}", op.name, name, value.dump());
    add(name, value);
  }
  const std::vector<Parameter> parameters = op.parameters();
  const bool takes_a_list = !parameters.empty() && parameters[0].kind == Kind::tensors;
  Json list = Json::array();
  for (const Input& input : inputs) {
    const Json operand{{"input", input.name}};
    if (takes_a_list)
      list.push_back(operand);
    else
      add(input.name, operand);
  }
  if (takes_a_list && list.empty()) user_error("{} without inputs", op.name);
  if (takes_a_list) add(std::string(parameters[0].name), list);
  return arguments;
}

// Makes the operand of an input, which has that name.
using ReadInput = std::function<Operand(const std::string& name)>;

// What the format says about an op and the op does not do.
Tensor call(const PublicOp& op, Json arguments, const ReadInput& read) {
  const auto take = [&](const char* name) {
    const auto found = arguments.find(name);
    std::optional<Operand> operand;
    if (found != arguments.end() && found->is_object()) {
      operand = read(found->at("input"));
      arguments.erase(name);
    }
    return operand;
  };
  std::optional<Operand> bias, flat;
  if (op.name == "conv2d") bias = take("bias");
  // Without an axis, the index in the flattened tensor.
  if ((op.name == "argmax" || op.name == "argmin") && !arguments.contains("axis")) {
    if (const std::optional<Operand> x = take("x")) {
      flat = reshape(*x, {-1});
      arguments["x"] = Json::object();
    }
    arguments.erase("keepdims");
  }
  if (op.name == "attention" && !arguments.contains("causal")) arguments["causal"] = false;
  const auto read_all = [&](const tensorgrad::Json& operand) {
    const tensorgrad::Json* input = operand.find("input");
    return input ? read(std::string(input->text())) : flat.value();
  };
  const JsonDocument given = c::read_json(arguments.dump(), op.name);
  const std::vector<Tensor> results =
      op.call(c::read_arguments(op.name, op.parameters(), given.root(), c::kNowhere, read_all),
              c::kNowhere);
  return bias ? results[0] + reshape(*bias, {-1, 1, 1}) : results[0];
}

// Checks that the described dtype and shape are those of the tensor.
void check_declared(const std::string& label, const Json& declared, const Array& tensor) {
  const std::string dtype = declared.value("dtype", ""), own = tensorgrad::name(tensor.dtype());
  const Shape shape(declared.value("shape", std::vector<std::int64_t>{}));
  if (dtype != own || shape != tensor.shape())
    user_error("{} is declared as {}{}, its tensor is {}{}", label, dtype, shape.text(), own,
               tensor.shape().text());
}

std::vector<Input> read_inputs(const ReferenceCase& reference) {
  const Json& description = reference.description;
  auto grads = description.value("grads", std::vector<std::string>{});
  std::vector<Input> inputs;
  for (const Json& declared : description.at("inputs")) {
    const std::string name = declared.at("name");
    for (const Input& other : inputs)
      if (other.name == name) user_error("the input '{}' is declared twice", name);
    const Array& value = reference.tensor("in/" + name);
    check_declared("the input '" + name + "'", declared, value);
    const auto found = std::find(grads.begin(), grads.end(), name);
    inputs.push_back({name, &value, found != grads.end()});
    if (found == grads.end()) continue;
    if (value.dtype() != f32)
      user_error("the input '{}' is {} and has no gradient", name, tensorgrad::name(value.dtype()));
    grads.erase(found);
  }
  if (!grads.empty()) user_error("a gradient for '{}', which is not an input", grads.front());
  return inputs;
}

constexpr const char* kCotangent = "cotangent of the result";  // not the name of any op's input

}  // namespace

void replay_op(const ReferenceCase& reference, const DeviceOptions& where,
               const Tolerance& tolerance, Comparison& comparison) {
  const PublicOp& op = find_op(reference.description.at("op"));
  if (op.several) throw Unsupported{fmt::format("{} returns several tensors", op.name)};
  const std::vector<Input> inputs = read_inputs(reference);
  const Array& wanted = reference.tensor("out");
  if (reference.description.contains("output"))
    check_declared("the output", reference.description["output"], wanted);

  const auto found = reference.description.find("attrs");
  const bool given = found != reference.description.end() && !found->is_null();
  const Json arguments = arguments_of(op, given ? *found : Json::object(), inputs);
  using Model = std::vector<Param>;
  const auto trace = [&](const Model& params, const Inputs& in) {
    std::map<std::string, Tensor> tensors;
    auto param = params.begin();
    for (const Input& input : inputs)
      tensors.emplace(input.name, input.differentiable ? cast(*param++, f32) : in[input.name]);
    return call(op, arguments, [&](const std::string& name) -> Operand {
      return {tensors.at(name), c::kNowhere};
    });
  };

  Model params;
  std::vector<std::string> names;
  std::vector<InputSpec> specs;
  Feed feed;
  for (const Input& input : inputs) {
    const Array& value = *input.value;
    if (input.differentiable) {
      params.emplace_back(value.shape(),
                          init::literal({value.floats().begin(), value.floats().end()}));
      names.push_back(input.name);
    } else {
      specs.push_back({input.name, value.shape(), value.dtype()});
      feed.set(input.name, value);
    }
  }

  if (params.empty()) {
    auto program = compile_forward(params,
                                   {.inputs = specs,
                                    .device = where.device,
                                    .threads = where.threads,
                                    .without = where.without},
                                   trace);
    comparison.values("out", program.run(feed).output(), wanted, tolerance.op);
    return;
  }
  const Array& cotangent = reference.tensor("cot");
  if (cotangent.shape() != wanted.shape())
    user_error("cot is {}, out is {}", cotangent.shape().text(), wanted.shape().text());
  specs.push_back({kCotangent, cotangent.shape(), cotangent.dtype()});
  feed.set(kCotangent, cotangent);
  auto program = compile_renamed(
      params, [&](const std::string& index) { return names[std::stoul(index)]; },
      {.inputs = specs,
       .optimizer = Sgd{.lr = 0},
       .non_finite = NonFinite::ignore,
       .device = where.device,
       .threads = where.threads,
       .without = where.without},
      [&](const Model& model, const Inputs& in) -> Outputs {
        const Tensor out = trace(model, in);
        return {{"loss", sum(out * in[kCotangent])}, {"out", out}};
      });
  const Result result = program.step(feed);
  comparison.values("out", result["out"], wanted, tolerance.op);
  const NamedArrays gradients = program.gradients();
  for (const std::string& name : names)
    comparison.values("grad/" + name, gradients.at(name), reference.tensor("grad/" + name),
                      tolerance.op);
}

}  // namespace tensorgrad::tool
