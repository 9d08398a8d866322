// Every op of the registry, called by name, gives the bits of the C++ function. So does every
// layer.
#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <set>

#include "nn/registry.h"
#include "tests/c/calls.h"

namespace tensorgrad::c_tests {
namespace {

using In = const Inputs&;
using Several = std::vector<Tensor>;

// The inputs of every row, in this order.
const std::vector<InputSpec> kInputs = {
    {"x", {2, 4}},
    {"y", {2, 4}},
    {"v", {4}},
    {"w", {4}},
    {"image", {1, 2, 4, 4}},
    {"filter", {2, 2, 3, 3}},
    {"sequence", {1, 6, 4}},
    {"taps", {4, 3}},
    {"heads", {1, 2, 4, 4}},
    {"states", {4, 2}},
    {"B", {1, 6, 2}},
    {"groups", {1, 6, 1, 2}},
    {"steps", {1, 6, 2}},
    {"pairs", {1, 6, 2, 2}},
    {"two", {2}},
    {"h", {1, 4, 2}},
    {"B1", {1, 2}},
    {"h2", {1, 2, 2, 2}},
    {"x1", {1, 2, 2}},
    {"G1", {1, 1, 2}},
    {"u1", {1, 4}},
    {"rows", {4, 4}},
    {"share", {2, 4}},
    {"ids", {2}, i32},
    {"many", {2, 4}, i32},
    {"zero", {}, i32},
    {"mask", {2, 4}, boolean},
    {"other", {2, 4}, boolean},
    {"targets", {2}, i32},
};

NamedArrays values_of_inputs() {
  NamedArrays all;
  for (const InputSpec& spec : kInputs) {
    const auto count = static_cast<std::size_t>(spec.shape.count());
    std::vector<float> real;
    std::vector<std::int32_t> whole;
    for (std::size_t i = 0; i < count; ++i) {
      const auto at = static_cast<double>(i + spec.name.size());
      real.push_back(static_cast<float>(spec.name == "share" ? 0.5 + 0.4 * std::sin(at)
                                                             : 1.3 * std::sin(1.7 * at)));
      whole.push_back(spec.name == "zero" ? 0 : static_cast<std::int32_t>((i * 5 + 1) % 2));
    }
    all.emplace(spec.name,
                spec.dtype == f32 ? floats(spec.shape, real) : ints(spec.shape, whole, spec.dtype));
  }
  return all;
}

struct Row {
  const char* op;
  const char* arguments;  // #x is the input x
  std::function<Several(In)> function;
};

// For rows with one result.
template <class F>
std::function<Several(In)> one(F function) {
  return [function](In in) { return Several{function(in)}; };
}

template <Tensor (*kOp)(Operand)>
Row unary(const char* op) {
  return {op, R"({"x": #x})", one([](In in) { return kOp(in["x"]); })};
}
template <Tensor (*kOp)(Operand)>
Row of_share(const char* op) {
  return {op, R"({"x": #share})", one([](In in) { return kOp(in["share"]); })};
}
template <Tensor (*kOp)(Operand, Operand)>
Row binary(const char* op) {
  return {op, R"({"a": #x, "b": #y})", one([](In in) { return kOp(in["x"], in["y"]); })};
}
template <Tensor (*kOp)(Operand, Axes, bool)>
Row reduction(const char* op) {
  return {op, R"({"x": #x, "axes": [0], "keepdims": true})",
          one([](In in) { return kOp(in["x"], {0}, true); })};
}

const std::vector<Row>& rows() {
  static const std::vector<Row> all = {
      binary<add>("add"),
      {"add", R"({"a": #x, "b": 0.5})", one([](In in) { return in["x"] + 0.5; })},
      {"add", R"({"a": 2, "b": #many})", one([](In in) { return 2 + in["many"]; })},
      binary<sub>("sub"),
      binary<mul>("mul"),
      binary<div>("div"),
      binary<maximum>("maximum"),
      {"maximum", R"({"a": #x, "b": "-Infinity"})",
       one([](In in) { return maximum(in["x"], -INFINITY); })},
      binary<minimum>("minimum"),
      {"pow", R"({"base": #share, "exponent": #x})",
       one([](In in) { return pow(in["share"], in["x"]); })},
      unary<neg>("neg"),
      unary<tensorgrad::abs>("abs"),
      unary<sign>("sign"),
      unary<square>("square"),
      of_share<tensorgrad::sqrt>("sqrt"),
      of_share<rsqrt>("rsqrt"),
      unary<tensorgrad::exp>("exp"),
      unary<tensorgrad::expm1>("expm1"),
      of_share<tensorgrad::log>("log"),
      of_share<tensorgrad::log1p>("log1p"),
      unary<tensorgrad::sin>("sin"),
      unary<tensorgrad::cos>("cos"),
      unary<tensorgrad::tanh>("tanh"),
      unary<sigmoid>("sigmoid"),
      unary<tensorgrad::erf>("erf"),
      unary<relu>("relu"),
      {"leaky_relu", R"({"x": #x, "slope": 0.25})",
       one([](In in) { return leaky_relu(in["x"], 0.25f); })},
      {"leaky_relu", R"({"x": #x})", one([](In in) { return leaky_relu(in["x"]); })},
      unary<gelu>("gelu"),
      unary<gelu_tanh>("gelu_tanh"),
      unary<silu>("silu"),
      unary<softplus>("softplus"),
      {"clamp", R"({"x": #x, "min": -0.5})",
       one([](In in) { return clamp(in["x"], -0.5f, INFINITY); })},
      {"cast", R"({"x": #x, "to": "i32"})", one([](In in) { return cast(in["x"], i32); })},
      binary<less>("less"),
      binary<less_equal>("less_equal"),
      binary<greater>("greater"),
      binary<greater_equal>("greater_equal"),
      binary<equal>("equal"),
      binary<not_equal>("not_equal"),
      {"logical_and", R"({"a": #mask, "b": #other})",
       one([](In in) { return logical_and(in["mask"], in["other"]); })},
      {"logical_or", R"({"a": #mask, "b": true})",
       one([](In in) { return logical_or(in["mask"], true); })},
      {"logical_not", R"({"x": #mask})", one([](In in) { return logical_not(in["mask"]); })},
      unary<is_finite>("is_finite"),
      {"where", R"({"condition": #mask, "a": #x, "b": #y})",
       one([](In in) { return where(in["mask"], in["x"], in["y"]); })},
      reduction<sum>("sum"),
      {"sum", R"({"x": #x})", one([](In in) { return sum(in["x"]); })},
      {"sum", R"({"x": #x, "axes": -1})", one([](In in) { return sum(in["x"], -1); })},
      reduction<mean>("mean"),
      reduction<max>("max"),
      reduction<min>("min"),
      reduction<prod>("prod"),
      {"var", R"({"x": #x, "axes": [1], "correction": 0})",
       one([](In in) { return var(in["x"], {1}, false, 0); })},
      {"stddev", R"({"x": #x, "axes": [1]})", one([](In in) { return stddev(in["x"], {1}); })},
      {"argmax", R"({"x": #x})", one([](In in) { return argmax(in["x"]); })},
      {"argmin", R"({"x": #x, "axis": 0, "keepdims": true})",
       one([](In in) { return argmin(in["x"], 0, true); })},
      {"cumsum", R"({"x": #x, "axis": 1})", one([](In in) { return cumsum(in["x"], 1); })},
      reduction<logsumexp>("logsumexp"),
      {"reshape", R"({"x": #x, "shape": [-1, 2]})", one([](In in) {
         return reshape(in["x"], {-1, 2});
       })},
      {"permute", R"({"x": #x, "order": [1, 0]})", one([](In in) {
         return permute(in["x"], {1, 0});
       })},
      {"swap_axes", R"({"x": #x, "a": 0, "b": -1})",
       one([](In in) { return swap_axes(in["x"], 0, -1); })},
      {"broadcast_to", R"({"x": #v, "shape": [3, 4]})", one([](In in) {
         return broadcast_to(in["v"], {3, 4});
       })},
      {"narrow", R"({"x": #x, "axis": 1, "start": 1, "length": 2})",
       one([](In in) { return narrow(in["x"], 1, 1, 2); })},
      {"split", R"({"x": #x, "sections": 2})", [](In in) { return split(in["x"], 2); }},
      {"split", R"({"x": #x, "sizes": [1, 3], "axis": 1})",
       [](In in) {
         return split(in["x"], {1, 3}, 1);
       }},
      {"concat", R"({"parts": [#x, #y], "axis": 1})", one([](In in) {
         return concat({in["x"], in["y"]}, 1);
       })},
      {"stack", R"({"parts": [#x, #y]})", one([](In in) {
         return stack({in["x"], in["y"]});
       })},
      {"pad", R"({"x": #x, "axis": 1, "before": 1, "after": 2, "mode": "circular"})",
       one([](In in) { return pad(in["x"], 1, 1, 2, PadMode::circular); })},
      {"pad", R"({"x": #x, "axis": 1, "before": 1, "after": 2, "value": 7})",
       one([](In in) { return pad(in["x"], 1, 1, 2, PadMode::constant, 7); })},
      {"flip", R"({"x": #x, "axes": [1]})", one([](In in) { return flip(in["x"], {1}); })},
      {"unsqueeze", R"({"x": #x, "axis": 1})", one([](In in) { return unsqueeze(in["x"], 1); })},
      {"squeeze", R"({"x": #image, "axis": 0})",
       one([](In in) { return squeeze(in["image"], 0); })},
      {"split_heads", R"({"x": #sequence, "heads": 2})",
       one([](In in) { return split_heads(in["sequence"], 2); })},
      {"merge_heads", R"({"x": #heads})", one([](In in) { return merge_heads(in["heads"]); })},
      unary<stop_gradient>("stop_gradient"),
      {"windows", R"({"x": #sequence, "axis": 1, "size": 3, "stride": 2})",
       one([](In in) { return windows(in["sequence"], 1, 3, 2); })},
      {"conv2d", R"({"x": #image, "w": #filter, "padding": [1, 0]})", one([](In in) {
         return conv2d(in["image"], in["filter"], {.padding = {1, 0}});
       })},
      {"max_pool2d", R"({"x": #image, "kernel": 2})",
       one([](In in) { return max_pool2d(in["image"], 2); })},
      {"avg_pool2d", R"({"x": #image, "kernel": [2, 1], "stride": 1, "padding": 0})",
       one([](In in) {
         return avg_pool2d(in["image"], {2, 1}, {.stride = Pair(1)});
       })},
      {"nearest_upsample2d", R"({"x": #image, "scale": [1, 2]})", one([](In in) {
         return nearest_upsample2d(in["image"], {1, 2});
       })},
      {"matmul", R"({"a": #x, "b": #rows})",
       one([](In in) { return matmul(in["x"], in["rows"]); })},
      {"embedding", R"({"table": #rows, "ids": #ids})",
       one([](In in) { return embedding(in["rows"], in["ids"]); })},
      {"gather", R"({"x": #x, "axis": 1, "ids": #many})",
       one([](In in) { return gather(in["x"], 1, in["many"]); })},
      {"take_along_axis", R"({"x": #x, "ids": #many, "axis": 1})",
       one([](In in) { return take_along_axis(in["x"], in["many"], 1); })},
      {"one_hot", R"({"ids": #ids, "depth": 3})", one([](In in) { return one_hot(in["ids"], 3); })},
      {"zeros", R"({"shape": [2, 3]})", one([](In) {
         return zeros({2, 3});
       })},
      {"ones", R"({"shape": [2], "dtype": "bool"})", one([](In) { return ones({2}, boolean); })},
      {"full", R"({"shape": [], "value": 1.5})", one([](In) { return full({}, 1.5); })},
      {"eye", R"({"n": 3})", one([](In) { return eye(3); })},
      {"arange", R"({"stop": 5})", one([](In) { return arange(5); })},
      {"arange", R"({"stop": 9, "start": 2, "step": 3, "dtype": "f32"})",
       one([](In) { return arange(2, 9, 3, f32); })},
      {"linspace", R"({"start": -1, "stop": 2, "n": 4})",
       one([](In) { return linspace(-1, 2, 4); })},
      {"tril", R"({"x": #rows, "diagonal": 1})", one([](In in) { return tril(in["rows"], 1); })},
      {"softmax", R"({"x": #x, "axis": 0})", one([](In in) { return softmax(in["x"], 0); })},
      {"log_softmax", R"({"x": #x})", one([](In in) { return log_softmax(in["x"]); })},
      {"where_causal", R"({"x": #rows, "fill": -2})",
       one([](In in) { return where_causal(in["rows"], -2); })},
      {"softmax_causal", R"({"x": #rows})", one([](In in) { return softmax_causal(in["rows"]); })},
      {"layer_norm", R"({"x": #x, "gain": #v, "bias": #w, "eps": 0.01})",
       one([](In in) { return layer_norm(in["x"], in["v"], in["w"], 0.01f); })},
      {"layer_norm", R"({"x": #x, "gain": #v})",
       one([](In in) { return layer_norm(in["x"], in["v"]); })},
      {"rms_norm", R"({"x": #x, "gain": #v})",
       one([](In in) { return rms_norm(in["x"], in["v"]); })},
      {"cross_entropy",
       R"({"logits": #x, "targets": #targets, "reduction": "sum", "label_smoothing": 0.1})",
       one([](In in) {
         return cross_entropy(in["x"], in["targets"],
                              {.reduction = Reduction::sum, .label_smoothing = 0.1f});
       })},
      {"cross_entropy", R"({"logits": #x, "targets": #targets, "ignore_index": 1})",
       one([](In in) { return cross_entropy(in["x"], in["targets"], {.ignore_index = 1}); })},
      {"nll_loss", R"({"log_probs": #x, "targets": #targets})",
       one([](In in) { return nll_loss(in["x"], in["targets"]); })},
      {"mse_loss", R"({"prediction": #x, "target": #y, "reduction": "none"})",
       one([](In in) { return mse_loss(in["x"], in["y"], Reduction::none); })},
      {"bce_with_logits", R"({"logits": #x, "target": #share})",
       one([](In in) { return bce_with_logits(in["x"], in["share"]); })},
      {"huber_loss", R"({"prediction": #x, "target": #y, "delta": 0.5})",
       one([](In in) { return huber_loss(in["x"], in["y"], 0.5f); })},
      {"kl_div", R"({"input": #x, "target": #share})",
       one([](In in) { return kl_div(in["x"], in["share"]); })},
      {"rope", R"({"x": #sequence, "base": 100, "offset": 3})",
       one([](In in) { return rope(in["sequence"], 100, 3); })},
      {"rope", R"({"x": #sequence, "offset": #zero})",
       one([](In in) { return rope(in["sequence"], 10000, in["zero"]); })},
      {"capture", R"({"name": "kept", "x": #x})",
       one([](In in) { return capture("kept", in["x"]); })},
      {"attention", R"({"q": #heads, "k": #heads, "v": #heads, "causal": false, "scale": 0.3})",
       one([](In in) {
         return attention(in["heads"], in["heads"], in["heads"], {.causal = false, .scale = 0.3f});
       })},
      {"attention", R"({"q": #heads, "k": #heads, "v": #heads, "start": #zero})",
       one([](In in) { return attention(in["heads"], in["heads"], in["heads"], in["zero"]); })},
      {"replace_at", R"({"x": #rows, "part": #x, "axis": 0, "start": #zero})",
       one([](In in) { return replace_at(in["rows"], in["x"], 0, in["zero"]); })},
      {"conv1d_causal_depthwise", R"({"x": #sequence, "w": #taps, "bias": #v})",
       one([](In in) { return conv1d_causal_depthwise(in["sequence"], in["taps"], in["v"]); })},
      {"selective_scan",
       R"({"u": #sequence, "delta": #sequence, "A_log": #states, "B": #B, "C": #B, "D": #v,
           "discretisation": "zoh", "chunk": 4})",
       one([](In in) {
         return selective_scan(in["sequence"], in["sequence"], in["states"], in["B"], in["B"],
                               in["v"], {.discretisation = Discretisation::zoh, .chunk = 4});
       })},
      {"ssd",
       R"({"x": #pairs, "dt": #steps, "A_log": #two, "B": #groups, "C": #groups, "D": #two,
           "chunk": 3})",
       one([](In in) {
         return ssd(in["pairs"], in["steps"], in["two"], in["groups"], in["groups"], in["two"],
                    {.chunk = 3});
       })},
      {"dropout", R"({"x": #x, "p": 0.5})", one([](In in) { return dropout(in["x"], 0.5f); })},
      {"uniform", R"({"shape": [4, 5], "low": -1})", one([](In) {
         return uniform({4, 5}, -1);
       })},
      {"randn", R"({"shape": [4, 5]})", one([](In) {
         return randn({4, 5});
       })},
      {"bernoulli", R"({"p": #share})", one([](In in) { return bernoulli(in["share"]); })},
      {"categorical", R"({"logits": #x})", one([](In in) { return categorical(in["x"]); })},
      {"activate", R"({"x": #x, "activation": "silu"})",
       one([](In in) { return activate(in["x"], Activation::silu); })},
      {"masked_cross_entropy", R"({"logits": #x, "targets": #targets, "mask": #ids})",
       one([](In in) { return masked_cross_entropy(in["x"], in["targets"], in["ids"]); })},
      {"selective_scan_step",
       R"({"h": #h, "u": #u1, "delta": #u1, "A_log": #states, "B": #B1, "C": #B1, "D": #v})",
       [](In in) {
         Tensor h = in["h"];
         const Tensor y =
             selective_scan_step(h, in["u1"], in["u1"], in["states"], in["B1"], in["B1"], in["v"]);
         return Several{y, h};
       }},
      {"ssd_step",
       R"({"h": #h2, "x": #x1, "dt": #B1, "A_log": #two, "B": #G1, "C": #G1, "D": #two})",
       [](In in) {
         Tensor h = in["h2"];
         const Tensor y = ssd_step(h, in["x1"], in["B1"], in["two"], in["G1"], in["G1"], in["two"]);
         return Several{y, h};
       }},
  };
  return all;
}

// Replaces #x by {"tensor": 0} and so on.
std::string filled(const std::string& pattern) {
  std::string out;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '#') {
      out += pattern[i];
      continue;
    }
    std::size_t end = i + 1;
    while (end < pattern.size() && (std::isalnum(static_cast<unsigned char>(pattern[end])) != 0))
      ++end;
    const std::string name = pattern.substr(i + 1, end - i - 1);
    const auto found = std::find_if(kInputs.begin(), kInputs.end(),
                                    [&](const InputSpec& spec) { return spec.name == name; });
    EXPECT_NE(found, kInputs.end()) << name;
    out += fmt::format(R"({{"tensor": {}}})", found - kInputs.begin());
    i = end - 1;
  }
  return out;
}

std::string options_json(const std::vector<InputSpec>& inputs) {
  Json json{{"inputs", Json::array()}, {"device", "cpu"}, {"threads", 1}, {"seed", 5}};
  for (const InputSpec& spec : inputs)
    json["inputs"].push_back({{"name", spec.name},
                              {"shape", std::vector<std::int64_t>(spec.shape)},
                              {"dtype", name(spec.dtype)}});
  return json.dump();
}

std::vector<std::pair<std::string, Tensor>> numbered(const Several& results) {
  std::vector<std::pair<std::string, Tensor>> named;
  for (std::size_t i = 0; i < results.size(); ++i)
    named.emplace_back(fmt::format("out{}", i), results[i]);
  return named;
}

NamedArrays outputs_of(Result&& result, std::size_t count) {
  NamedArrays all;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string name = fmt::format("out{}", i);
    all.emplace(name, std::as_const(result)[name]);
  }
  return all;
}

Feed feed_of(const NamedArrays& all) {
  Feed feed;
  for (const auto& [name, array] : all) feed.set(name, FeedValue(array));
  return feed;
}

class COps : public testing::TestWithParam<std::size_t> {};

TEST_P(COps, GiveTheBitsOfTheFunction) {
  const Row& row = rows()[GetParam()];
  const NamedArrays feed = values_of_inputs();

  const Model model(tg_model_new());
  Graph graph(tg_begin_forward(model.get(), options_json(kInputs).c_str()));
  ASSERT_TRUE(graph) << tg_error();
  const int first = tg_op(graph.get(), row.op, filled(row.arguments).c_str(), __FILE__, __LINE__);
  ASSERT_GE(first, 0) << tg_error();
  const int count = tg_tensors(graph.get()) - first;
  ASSERT_GE(count, 1);
  for (int i = 0; i < count; ++i)
    ASSERT_EQ(tg_output(graph.get(), fmt::format("out{}", i).c_str(), first + i), 1) << tg_error();
  const NamedArrays got = run(compiled(std::move(graph)), feed);

  std::size_t results = 0;
  auto forward = compile_forward(std::vector<Param>{},
                                 {.inputs = kInputs, .seed = 5, .device = "cpu", .threads = 1},
                                 [&](const auto&, const Inputs& in) -> Outputs {
                                   const Several all = row.function(in);
                                   results = all.size();
                                   return numbered(all);
                                 });
  expect_same(got, outputs_of(forward.run(feed_of(feed)), results));
}

INSTANTIATE_TEST_SUITE_P(Rows, COps, testing::Range<std::size_t>(0, rows().size()),
                         [](const auto& row) {
                           return fmt::format("{}_{}", row.param, rows()[row.param].op);
                         });

TEST(COpsTable, HasARowForEveryOp) {
  std::set<std::string> tested;
  for (const Row& row : rows()) tested.insert(row.op);
  for (const std::string& name : nn::op_names())
    EXPECT_EQ(tested.count(name), 1u) << name << " has no row in " << __FILE__;
  EXPECT_EQ(tested.size(), nn::op_names().size());
}

// An op returns a list exactly if the registry says so.
TEST(COpsTable, TheRegistrySaysWhatReturnsSeveral) {
  const Json registry = Json::parse(tg_registry());
  std::set<std::string> several;
  for (const Json& op : registry["ops"])
    if (op["several"].get<bool>()) several.insert(op["name"]);
  EXPECT_EQ(several, (std::set<std::string>{"split", "selective_scan_step", "ssd_step"}));
}

// ---- layers

// Compiles a model that is this layer in C++ and by name, and compares weights and results.
template <class L>
void expect_same_layer(const char* type, const char* arguments, const InputSpec& input, L layer,
                       const char* parameter) {
  SCOPED_TRACE(type);
  const std::vector<InputSpec> inputs{input};
  std::vector<float> real;
  std::vector<std::int32_t> whole;
  for (int i = 0; i < input.shape.count(); ++i) {
    real.push_back(static_cast<float>(std::cos(0.9 * i)));
    whole.push_back(i % 5);
  }
  const NamedArrays feed{
      {input.name, input.dtype == f32 ? floats(input.shape, real) : ints(input.shape, whole)}};

  struct Net {
    L layer;
  };
  auto forward = compile_forward(
      Net{std::move(layer)}, {.inputs = inputs, .seed = 5, .device = "cpu", .threads = 1},
      [&](const Net& net, const Inputs& in) { return net.layer(in[input.name]); });

  const Model model(tg_model_new());
  const int number = tg_model_layer(model.get(), "layer", type, arguments, __FILE__, __LINE__);
  ASSERT_EQ(number, 0) << tg_error();
  Graph graph(tg_begin_forward(model.get(), options_json(inputs).c_str()));
  const std::string given = fmt::format(R"({{"{}": {{"tensor": 0}}}})", parameter);
  const int result = tg_layer(graph.get(), number, given.c_str(), __FILE__, __LINE__);
  ASSERT_GE(result, 0) << tg_error();
  ASSERT_EQ(tg_output(graph.get(), "out", result), 1);
  const Program program = compiled(std::move(graph));
  expect_same(download(program), forward.download());
  expect_same(run(program, feed).at("out"), forward.run(feed_of(feed)).output(), type);
}

std::set<std::string> tested_layers;  // NOLINT: filled by the tests below, in their order

template <class L>
void check(const char* type, const char* arguments, const InputSpec& input, L layer,
           const char* parameter = "x") {
  tested_layers.insert(type);
  expect_same_layer(type, arguments, input, std::move(layer), parameter);
}

TEST(CLayers, GiveTheBitsOfTheStruct) {
  const InputSpec x{"x", {2, 4}}, sequence{"x", {1, 6, 8}}, image{"x", {1, 2, 5, 5}};
  const InputSpec tokens{"tokens", {1, 6}, i32};
  check("Linear", R"({"in": 4, "out": 3})", x, Linear(4, 3));
  check("Linear", R"({"in": 4, "out": 3, "bias": false})", x, Linear(4, 3, false));
  check("LayerNorm", R"({"size": 4, "eps": 0.01, "bias": false})", x,
        LayerNorm(4, {.eps = 0.01f, .bias = false}));
  check("RMSNorm", R"({"size": 4})", x, RMSNorm(4));
  check("Norm", R"({"size": 4, "kind": "rms"})", x, Norm(4, {.kind = NormKind::rms}));
  check("Embedding", R"({"count": 7, "size": 3})", tokens, Embedding(7, 3), "ids");
  check("Conv2d", R"({"in": 2, "out": 3, "kernel": 3, "padding": [1, 0], "stride": 2})", image,
        Conv2d(2, 3, 3, {.conv = {.stride = 2, .padding = {1, 0}}}));
  check("Conv1d", R"({"channels": 8, "kernel": 3})", sequence, Conv1d(8, 3));
  check("SelfAttention", R"({"dim": 8, "heads": 4, "groups": 2, "rope_base": 100})", sequence,
        SelfAttention(8, 4, {.groups = 2, .rope_base = 100.0f}));
  check("FeedForward", R"({"dim": 8, "hidden": 12, "activation": "relu"})", sequence,
        FeedForward(8, 12, Activation::relu));
  check("TransformerBlock", R"({"dim": 8, "heads": 2, "norm": "rms", "biases": true})", sequence,
        TransformerBlock(8, 2, {.norm = {.kind = NormKind::rms}, .attention = {.biases = true}}));
  check("Transformer", R"({"vocab": 7, "dim": 8, "context": 6, "layers": 2, "heads": 2})", tokens,
        Transformer({.vocab = 7, .dim = 8, .context = 6, .layers = 2, .heads = 2}), "tokens");
  check("MambaBlock", R"({"dim": 8, "state": 4, "discretisation": "zoh"})", sequence,
        MambaBlock({.dim = 8, .state = 4, .discretisation = Discretisation::zoh}));
  check("Mamba2Block", R"({"dim": 8, "state": 4, "head_size": 4, "chunk": 2})", sequence,
        Mamba2Block({.dim = 8, .state = 4, .head_size = 4, .chunk = 2}));
  check("Mamba", R"({"vocab": 7, "layers": 1, "dim": 8, "state": 2})", tokens,
        Mamba({.vocab = 7, .layers = 1, .dim = 8, .state = 2}), "tokens");
  check("Mamba2", R"({"vocab": 7, "layers": 1, "dim": 8, "state": 2, "head_size": 4})", tokens,
        Mamba2({.vocab = 7, .layers = 1, .dim = 8, .state = 2, .head_size = 4}), "tokens");
  check("LanguageModel",
        R"({"vocab": 7, "dim": 8, "layers": "mamba2 attention", "heads": 2, "mamba2_state": 4,
            "head_size": 4})",
        tokens,
        LanguageModel({.vocab = 7,
                       .dim = 8,
                       .layers = "mamba2 attention",
                       .mamba2 = {.state = 4, .head_size = 4},
                       .heads = 2}),
        "tokens");
  const auto names = nn::layer_names();
  EXPECT_EQ(tested_layers, std::set<std::string>(names.begin(), names.end()));
}

}  // namespace
}  // namespace tensorgrad::c_tests
