// Op cases: one table row per op lists its inputs and its call. Gradients are computed as a user
// would: differentiable inputs are parameters, the loss is sum(out * cotangent).
#include <algorithm>
#include <functional>
#include <limits>
#include <sstream>

#include "attributes.h"
#include "replay.h"
#include "support/fail.h"
#include "support/text.h"

namespace tensorgrad::tool {

namespace {

// The inputs of a case as tensors of a trace, in order.
struct Arguments {
  std::vector<std::pair<std::string, Tensor>> items;

  const Tensor* find(std::string_view name) const {
    for (const auto& [own, tensor] : items)
      if (own == name) return &tensor;
    return nullptr;
  }
  const Tensor& operator[](std::string_view name) const { return *find(name); }
  std::vector<Tensor> all() const {
    std::vector<Tensor> tensors;
    for (const auto& [name, tensor] : items) tensors.push_back(tensor);
    return tensors;
  }
};

struct OpRow {
  const char* name;
  const char* inputs;  // "x w bias?": ? marks an optional one; "*": any, in order
  Tensor (*call)(const Arguments& in, Attributes& attrs);  // null: known, not supported yet
};

template <Tensor (*kOp)(Operand)>
Tensor unary(const Arguments& in, Attributes&) {
  return kOp(in["x"]);
}

template <Tensor (*kOp)(Operand, Operand)>
Tensor binary(const Arguments& in, Attributes&) {
  return kOp(in["a"], in["b"]);
}

template <Tensor (*kOp)(Operand, Axes, bool)>
Tensor reduction(const Arguments& in, Attributes& attrs) {
  return kOp(in["x"], attrs.axes("axis"), attrs.flag("keepdims", false));
}

// Without an axis, returns the index in the flattened tensor.
template <Tensor (*kOp)(Operand, int, bool)>
Tensor position(const Arguments& in, Attributes& attrs) {
  const bool keepdims = attrs.flag("keepdims", false);
  if (const auto axis = attrs.optional_small("axis")) return kOp(in["x"], *axis, keepdims);
  return kOp(reshape(in["x"], {-1}), 0, false);
}

template <Tensor (*kOp)(Operands, int)>
Tensor joining(const Arguments& in, Attributes& attrs) {
  return kOp(in.all(), attrs.small("axis", 0));
}

template <Tensor (*kOp)(Operand, int)>
Tensor along_axis(const Arguments& in, Attributes& attrs) {
  return kOp(in["x"], attrs.small("axis", -1));
}

Tensor call_clamp(const Arguments& in, Attributes& attrs) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double min = attrs.number("min", -kInfinity), max = attrs.number("max", kInfinity);
  return clamp(in["x"], static_cast<float>(min), static_cast<float>(max));
}

Tensor call_narrow(const Arguments& in, Attributes& attrs) {
  const int axis = attrs.small("axis");
  return narrow(in["x"], axis, attrs.integer("start"), attrs.integer("length"));
}

Tensor call_cross_entropy(const Arguments& in, Attributes& attrs) {
  CrossEntropyOptions options;
  const std::string name = attrs.text("reduction", "mean");
  if (name != "mean" && name != "sum" && name != "none")
    user_error("cross_entropy: unknown reduction '{}'", name);
  options.reduction = name == "mean"  ? Reduction::mean
                      : name == "sum" ? Reduction::sum
                                      : Reduction::none;
  options.ignore_index = attrs.optional_small("ignore_index");
  options.label_smoothing = static_cast<float>(attrs.number("label_smoothing", 0));
  return cross_entropy(in["logits"], in["targets"], options);
}

Tensor call_attention(const Arguments& in, Attributes& attrs) {
  AttentionOptions options;
  options.causal = attrs.flag("causal", false);
  const double scale = attrs.number("scale", 0);
  if (scale != 0) options.scale = static_cast<float>(scale);
  return attention(in["q"], in["k"], in["v"], options);
}

Tensor call_selective_scan(const Arguments& in, Attributes& attrs) {
  const std::string name = attrs.text("discretisation", "euler");
  if (name != "euler" && name != "zoh")
    user_error("selective_scan: unknown discretisation '{}'", name);
  const auto rule = name == "zoh" ? Discretisation::zoh : Discretisation::euler;
  return selective_scan(in["u"], in["delta"], in["A_log"], in["B"], in["C"], in["D"],
                        {.discretisation = rule});
}

Tensor call_conv2d(const Arguments& in, Attributes& attrs) {
  Conv2dOptions options;
  options.stride = attrs.pair("stride", 1);
  options.padding = attrs.pair("padding", 0);
  options.dilation = attrs.pair("dilation", 1);
  options.groups = attrs.integer("groups", 1);
  const Tensor y = conv2d(in["x"], in["w"], options);
  const Tensor* bias = in.find("bias");
  return bias ? y + reshape(*bias, {-1, 1, 1}) : y;
}

Tensor call_max_pool2d(const Arguments& in, Attributes& attrs) {
  const Pair kernel = attrs.pair("kernel");
  return max_pool2d(in["x"], kernel,
                    {.stride = attrs.optional_pair("stride"), .padding = attrs.pair("padding", 0)});
}

float eps(Attributes& attrs) { return static_cast<float>(attrs.number("eps", 1e-5)); }

using In = const Arguments&;
using At = Attributes&;

constexpr OpRow kOps[] = {
    {"add", "a b", binary<add>},
    {"sub", "a b", binary<sub>},
    {"mul", "a b", binary<mul>},
    {"div", "a b", binary<div>},
    {"maximum", "a b", binary<maximum>},
    {"minimum", "a b", binary<minimum>},
    {"neg", "x", unary<neg>},
    {"abs", "x", unary<abs>},
    {"exp", "x", unary<exp>},
    {"log", "x", unary<log>},
    {"sqrt", "x", unary<sqrt>},
    {"rsqrt", "x", unary<rsqrt>},
    {"sin", "x", unary<sin>},
    {"cos", "x", unary<cos>},
    {"tanh", "x", unary<tanh>},
    {"sigmoid", "x", unary<sigmoid>},
    {"erf", "x", unary<erf>},
    {"relu", "x", unary<relu>},
    {"gelu", "x", unary<gelu>},
    {"gelu_tanh", "x", unary<gelu_tanh>},
    {"silu", "x", unary<silu>},
    {"softplus", "x", unary<softplus>},
    {"square", "x", unary<square>},
    {"leaky_relu", "x",
     [](In in, At at) {
       return leaky_relu(in["x"], static_cast<float>(at.number("slope", 0.01)));
     }},
    {"clamp", "x", call_clamp},
    {"where", "c a b", [](In in, At) { return where(in["c"], in["a"], in["b"]); }},
    {"sum", "x", reduction<sum>},
    {"mean", "x", reduction<mean>},
    {"max", "x", reduction<max>},
    {"argmax", "x", position<argmax>},
    {"argmin", "x", position<argmin>},
    {"permute", "x", [](In in, At at) { return permute(in["x"], at.smalls("perm")); }},
    {"reshape", "x", [](In in, At at) { return reshape(in["x"], at.integers("shape")); }},
    {"broadcast_to", "x",
     [](In in, At at) { return broadcast_to(in["x"], Shape(at.integers("shape"))); }},
    {"narrow", "x", call_narrow},
    {"concat", "*", joining<concat>},
    {"stack", "*", joining<stack>},
    {"matmul", "input other", [](In in, At) { return matmul(in["input"], in["other"]); }},
    {"embedding", "table idx", [](In in, At) { return embedding(in["table"], in["idx"]); }},
    {"one_hot", "idx", [](In in, At at) { return one_hot(in["idx"], at.integer("depth")); }},
    {"take_along_axis", "x idx",
     [](In in, At at) { return take_along_axis(in["x"], in["idx"], at.small("axis")); }},
    {"softmax", "x", along_axis<softmax>},
    {"log_softmax", "x", along_axis<log_softmax>},
    {"softmax_causal", "x", unary<softmax_causal>},
    {"cross_entropy", "logits targets", call_cross_entropy},
    {"layer_norm", "x gain bias",
     [](In in, At at) { return layer_norm(in["x"], in["gain"], in["bias"], eps(at)); }},
    {"rms_norm", "x gain", [](In in, At at) { return rms_norm(in["x"], in["gain"], eps(at)); }},
    {"attention", "q k v", call_attention},
    {"rope", "x",
     [](In in, At at) {
       const auto base = static_cast<float>(at.number("base", 10000));
       return rope(in["x"], base, at.integer("offset", 0));
     }},
    {"conv2d", "x w bias?", call_conv2d},
    {"max_pool2d", "x", call_max_pool2d},
    {"nearest_upsample2d", "x",
     [](In in, At at) { return nearest_upsample2d(in["x"], at.pair("scale")); }},
    {"conv1d_causal_depthwise", "x w bias",
     [](In in, At) { return conv1d_causal_depthwise(in["x"], in["w"], in["bias"]); }},
    {"selective_scan", "u delta A_log B C D", call_selective_scan},
    {"ssd", "x dt A_log B C D",
     [](In in, At at) {
       return ssd(in["x"], in["dt"], in["A_log"], in["B"], in["C"], in["D"],
                  {.chunk = at.integer("chunk", 64)});
     }},
};

const OpRow& find_op(const std::string& name) {
  std::vector<std::string> names;
  for (const OpRow& row : kOps) {
    if (row.name == name) return row;
    names.emplace_back(row.name);
  }
  const std::string near = nearest_name(name, names);
  user_error("unknown op '{}'{}", name, near.empty() ? "" : fmt::format("\n  hint: {}?", near));
}

// ---- one case

struct Input {
  std::string name;
  const Array* value;
  bool differentiable = false;
};

void check_inputs(const OpRow& row, const std::vector<Input>& inputs) {
  if (inputs.empty()) user_error("{} without inputs", row.name);
  if (row.inputs == std::string_view("*")) return;
  std::vector<std::string> names;
  for (const Input& input : inputs) names.push_back(input.name);
  std::istringstream words(row.inputs);
  for (std::string word; words >> word;) {
    const bool optional = word.back() == '?';
    if (optional) word.pop_back();
    const auto found = std::find(names.begin(), names.end(), word);
    if (found != names.end())
      names.erase(found);
    else if (!optional)
      user_error("{}: the input '{}' is missing", row.name, word);
  }
  if (!names.empty()) user_error("{}: unknown input '{}'", row.name, names.front());
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
  const OpRow& row = find_op(reference.description.at("op"));
  if (!row.call) throw Unsupported{fmt::format("tensorgrad has no {} yet", row.name)};
  const std::vector<Input> inputs = read_inputs(reference);
  check_inputs(row, inputs);
  const Array& wanted = reference.tensor("out");
  if (reference.description.contains("output"))
    check_declared("the output", reference.description["output"], wanted);

  static const Json kNone = Json::object();
  const auto found = reference.description.find("attrs");
  Attributes attrs(found == reference.description.end() || found->is_null() ? kNone : *found,
                   "attribute");
  using Model = std::vector<Param>;
  const auto trace = [&](const Model& params, const Inputs& in) {
    Arguments arguments;
    auto param = params.begin();
    for (const Input& input : inputs)
      arguments.items.emplace_back(input.name,
                                   input.differentiable ? cast(*param++, f32) : in[input.name]);
    const Tensor out = row.call(arguments, attrs);
    attrs.finish();
    return out;
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
