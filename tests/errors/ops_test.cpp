// The text of every error that a call of an op or a layer can throw.
#include <limits>

#include "tests/errors/expect_error.h"

namespace tensorgrad::errors {
namespace {

struct Block {
  Linear proj{3, 4};
  SelfAttention attn{6, 2};
};

struct Model {
  Linear l1{3, 4};
  Embedding emb{5, 3};
  LayerNorm norm{4};
  Conv2d conv{3, 2, 3};
  Param kernel{{2, 3, 3, 3}, init::zeros()};
  Param flat_kernel{{2, 3, 0, 3}, init::zeros()};
  std::vector<Block> blocks = std::vector<Block>(1);
  Transformer lm{{.vocab = 5, .dim = 4, .context = 4, .layers = 1, .heads = 2}};
};

using Call = std::function<void(const Model& m, const Inputs& in)>;

// The inputs of the calls below. Names say what is special about an input.
const std::vector<InputSpec> kInputs = {
    {"x", {2, 3}},
    {"y", {4, 5}},
    {"v", {3}},
    {"s", {}},
    {"n", {2, 3}, i32},
    {"ids", {4}, i32},
    {"flag", {2, 3}, boolean},
    {"cube", {2, 3, 4}},
    {"none", {2, 0}},
    {"image", {1, 3, 8, 8}},
    {"deep", {1, 1, 1, 1, 1, 1, 1, 1}},
    {"deep_ids", {1, 1, 1, 1, 1, 1, 1, 1}, i32},
};

struct OpRow {
  const char* name;
  std::string text;
  int line;
  Call call;
};

using Function = std::function<Outputs(const Model& m, const Inputs& in)>;

Forward<Model> trace(const Function& function) {
  return compile_forward(Model{}, {.inputs = kInputs, .threads = 1}, function);
}

void expect_op_errors(const std::vector<OpRow>& rows) {
  std::vector<Row> plain;
  for (const OpRow& row : rows)
    plain.push_back({row.name, row.text, row.line, [&row] {
                       trace([&](const Model& m, const Inputs& in) {
                         row.call(m, in);
                         return in["x"];
                       });
                     }});
  expect_errors(plain);
}

#define CALL __LINE__, [](const Model& m, const Inputs& in)
// The row's own line, and silence about what the row does not use.
#define USE (void)m, (void)in

// A row's call stands on the line of its __LINE__.
// clang-format off

// A parameter of no model.
const Param& stray() {
  static const Param param({2, 3}, init::zeros());
  return param;
}

TEST(OpErrors, Operands) {
  expect_op_errors({
      {"empty", "neg: an operand is an empty Tensor (default-constructed)\n  at @",
       CALL { USE; neg(Tensor{}); }},
      {"empty on the right", "mul: an operand is an empty Tensor (default-constructed)\n  at @",
       CALL { USE; in["x"] * Tensor{}; }},
      {"stray parameter",
       "neg: this parameter (f32[2,3]) is not part of the model being compiled\n"
       "  hint: use the parameters of the model that the function receives   at @",
       CALL { USE; neg(stray()); }},
      {"broadcast",
       "add: shapes do not broadcast: a is x f32[2,3], b is y f32[4,5] (2 against 4)\n"
       "  hint: sizes match from the right, or are 1; reshape or unsqueeze one of them   at @",
       CALL { USE; in["x"] + in["y"]; }},
      {"broadcast of a comparison",
       "less: shapes do not broadcast: a is x f32[2,3], b is ids i32[4] (3 against 4)\n"
       "  hint: sizes match from the right, or are 1; reshape or unsqueeze one of them   at @",
       CALL { USE; less(in["x"], in["ids"]); }},
      {"broadcast of logic",
       "logical_or: shapes do not broadcast: a is flag bool[2,3], b is bool[4] (3 against 4)\n"
       "  hint: sizes match from the right, or are 1; reshape or unsqueeze one of them   at @",
       CALL { USE; logical_or(in["flag"], in["ids"]); }},
      {"broadcast of a condition",
       "where: shapes do not broadcast: condition is bool[4], a is x f32[2,3], b is x f32[2,3] (4 "
       "against 3)\n"
       "  hint: sizes match from the right, or are 1; reshape or unsqueeze one of them   at @",
       CALL { USE; where(in["ids"], in["x"], in["x"]); }},
      {"broadcast inside a composite",
       "sub (in mse_loss): shapes do not broadcast: a is x f32[2,3], b is y f32[4,5] (2 against "
       "4)\n"
       "  hint: sizes match from the right, or are 1; reshape or unsqueeze one of them   at @",
       CALL { USE; mse_loss(in["x"], in["y"]); }},
      {"size", "size: axis 2 does not exist: the tensor is f32[2,3]\n  at @",
       CALL { USE; in["x"].size(2); }},
      {"size from the end", "size: axis -1 does not exist: the tensor is f32[]\n  at @",
       CALL { USE; in["s"].size(-1); }},
      {"shape", "shape: axis 2 does not exist: the shape is [2,3]\n  at @",
       CALL { USE; in["x"].shape()[2]; }},
  });
}

TEST(OpErrors, Elementwise) {
  expect_op_errors({
      {"numbers", "neg: needs i32 or f32: bool[2,3]\n  hint: cast to tg::i32 or tg::f32   at @",
       CALL { USE; -in["flag"]; }},
      {"two bools", "add: needs i32 or f32: bool[2,3]\n  hint: cast to tg::i32 or tg::f32   at @",
       CALL { USE; in["flag"] + in["flag"]; }},
      {"integers", "exp: needs f32: x is n i32[2,3]\n  hint: cast(x, tg::f32)?   at @",
       CALL { USE; exp(in["n"]); }},
      {"bools", "relu: needs f32: x is flag bool[2,3]\n  hint: cast(x, tg::f32)?   at @",
       CALL { USE; relu(in["flag"]); }},
      {"leaky_relu", "leaky_relu: needs f32: x is n i32[2,3]\n  hint: cast(x, tg::f32)?   at @",
       CALL { USE; leaky_relu(in["n"]); }},
      {"gelu", "gelu: needs f32: x is n i32[2,3]\n  hint: cast(x, tg::f32)?   at @",
       CALL { USE; gelu(in["n"]); }},
      {"gelu_tanh", "gelu_tanh: needs f32: x is n i32[2,3]\n  hint: cast(x, tg::f32)?   at @",
       CALL { USE; gelu_tanh(in["n"]); }},
      {"silu", "silu: needs f32: x is n i32[2,3]\n  hint: cast(x, tg::f32)?   at @",
       CALL { USE; silu(in["n"]); }},
      {"softplus", "softplus: needs f32: x is n i32[2,3]\n  hint: cast(x, tg::f32)?   at @",
       CALL { USE; softplus(in["n"]); }},
      {"clamp", "clamp: needs f32: x is n i32[2,3]\n  hint: cast(x, tg::f32)?   at @",
       CALL { USE; clamp(in["n"], 0, 1); }},
      {"is_finite", "is_finite: needs f32: x is n i32[2,3]\n  hint: cast(x, tg::f32)?   at @",
       CALL { USE; is_finite(in["n"]); }},
      {"pow", "pow: needs f32: base is n i32[2,3]\n  hint: cast(base, tg::f32)?   at @",
       CALL { USE; pow(in["n"], 3); }},
      {"division",
       "div: integer division is not supported: a is n i32[2,3], b is n i32[2,3]\n"
       "  hint: cast one side to tg::f32 first   at @",
       CALL { USE; in["n"] / in["n"]; }},
      {"division by a number",
       "div: integer division is not supported: a is n i32[2,3], b is i32[2,3]\n"
       "  hint: cast one side to tg::f32 first   at @",
       CALL { USE; in["n"] / 2; }},
      {"bce_with_logits",
       "softplus (in bce_with_logits): needs f32: x is n i32[2,3]\n"
       "  hint: cast(x, tg::f32)?   at @",
       CALL { USE; bce_with_logits(in["n"], in["x"]); }},
  });
}

TEST(OpErrors, Reductions) {
  expect_op_errors({
      {"axis", "sum: axis 2 does not exist: x is f32[2,3]\n  at @",
       CALL { USE; sum(in["x"], 2); }},
      {"axis from the end", "prod: axis -3 does not exist: x is y f32[4,5]\n  at @",
       CALL { USE; prod(in["y"], -3); }},
      {"axis twice", "sum: an axis is named twice: [0,-2], x is f32[2,3]\n  at @",
       CALL { USE; sum(in["x"], {0, -2}); }},
      {"axis of a number", "argmax: axis -1 does not exist: x is s f32[]\n  at @",
       CALL { USE; argmax(in["s"]); }},
      {"cumsum", "cumsum: axis 2 does not exist: x is f32[2,3]\n  at @",
       CALL { USE; cumsum(in["x"], 2); }},
      {"empty max", "max: axis 1 is empty and has no largest or smallest element: x is none f32[2,0]\n  at @",
       CALL { USE; max(in["none"]); }},
      {"empty mean", "mean: axis 1 is empty and has no mean: x is none f32[2,0]\n  hint: a batch of at least 1   at @",
       CALL { USE; mean(in["none"]); }},
      {"empty loss", "mean (in mse_loss): axis 1 is empty and has no mean: x is f32[2,0]\n  hint: a batch of at least 1   at @",
       CALL { USE; mse_loss(in["none"], 0.0f); }},
      {"empty min", "min: axis 1 is empty and has no largest or smallest element: x is none f32[2,0]\n  at @",
       CALL { USE; min(in["none"], 1); }},
      {"empty argmax", "argmax: axis 1 is empty: x is f32[2,0]\n  at @",
       CALL { USE; argmax(in["none"]); }},
      {"bool argmin", "argmin: needs i32 or f32: x is bool[2,3]\n  hint: cast to tg::i32   at @",
       CALL { USE; argmin(in["flag"]); }},
      {"mean of integers", "mean: needs f32: x is n i32[2,3]\n  hint: cast(x, tg::f32)?   at @",
       CALL { USE; mean(in["n"]); }},
      {"var of integers", "var: needs f32: x is n i32[2,3]\n  hint: cast(x, tg::f32)?   at @",
       CALL { USE; var(in["n"]); }},
      {"stddev of integers",
       "var (in stddev): needs f32: x is n i32[2,3]\n  hint: cast(x, tg::f32)?   at @",
       CALL { USE; stddev(in["n"]); }},
      {"logsumexp of integers",
       "logsumexp: needs f32: x is n i32[2,3]\n  hint: cast(x, tg::f32)?   at @",
       CALL { USE; logsumexp(in["n"]); }},
      {"softmax of an empty axis", "softmax: axis 1 is empty: x is none f32[2,0]\n  at @",
       CALL { USE; softmax(in["none"]); }},
  });
}

TEST(OpErrors, Movement) {
  expect_op_errors({
      {"reshape, count",
       "reshape: the number of elements differs: x is f32[2,3], the new shape is [4] (6 against "
       "4)\n  at @",
       CALL { USE; reshape(in["x"], {4}); }},
      {"reshape, negative", "reshape: sizes must not be negative: [-2,3]\n  at @",
       CALL { USE; reshape(in["x"], {-2, 3}); }},
      {"reshape, two free", "reshape: only one size may be -1: [-1,-1]\n  at @",
       CALL { USE; reshape(in["x"], {-1, -1}); }},
      {"reshape, no fit",
       "reshape: no size fits the -1: x is f32[2,3], the new shape is [4,-1]\n  at @",
       CALL { USE; reshape(in["x"], {4, -1}); }},
      {"reshape, nothing to divide",
       "reshape: no size fits the -1: x is none f32[2,0], the new shape is [0,-1]\n  at @",
       CALL { USE; reshape(in["none"], {0, -1}); }},
      {"reshape, rank", "reshape: at most 8 axes: [1,1,1,1,1,1,1,2,3]\n  at @",
       CALL { USE; reshape(in["x"], {1, 1, 1, 1, 1, 1, 1, 2, 3}); }},
      {"permute, axis", "permute: axis 2 does not exist: x is f32[2,3]\n  at @",
       CALL { USE; permute(in["x"], {0, 2}); }},
      {"permute, order",
       "permute: the order must name every axis once: x is f32[2,3], the order is [0,0]\n  at @",
       CALL { USE; permute(in["x"], {0, 0}); }},
      {"permute, too few",
       "permute: the order must name every axis once: x is f32[2,3], the order is [1]\n  at @",
       CALL { USE; permute(in["x"], {1}); }},
      {"swap_axes", "swap_axes: axis -2 does not exist: x is v f32[3]\n  at @",
       CALL { USE; swap_axes(in["v"], -1, -2); }},
      {"broadcast_to", "broadcast_to: f32[2,3] does not broadcast to [3,3]\n  at @",
       CALL { USE; broadcast_to(in["x"], {3, 3}); }},
      {"broadcast_to fewer axes", "broadcast_to: f32[2,3] does not broadcast to [3]\n  at @",
       CALL { USE; broadcast_to(in["x"], {3}); }},
      {"narrow", "narrow: start 2 and length 2 do not fit into axis 1: x is f32[2,3]\n  at @",
       CALL { USE; narrow(in["x"], -1, 2, 2); }},
      {"narrow, negative",
       "narrow: start 0 and length -1 do not fit into axis 1: x is f32[2,3]\n  at @",
       CALL { USE; narrow(in["x"], 1, 0, -1); }},
      {"split", "split: axis 1 does not divide into 2 sections: x is f32[2,3]\n  at @",
       CALL { USE; split(in["x"], 2, 1); }},
      {"split into none", "split: axis -1 does not divide into 0 sections: x is f32[2,3]\n  at @",
       CALL { USE; split(in["x"], 0); }},
      {"split by sizes", "split: the sizes [1,1] do not add up to axis 1: x is f32[2,3]\n  at @",
       CALL { USE; split(in["x"], std::vector<std::int64_t>{1, 1}, 1); }},
      {"split by a negative size",
       "narrow (in split): start 0 and length -1 do not fit into axis 1: x is f32[2,3]\n  at @",
       CALL { USE; split(in["x"], std::vector<std::int64_t>{-1, 4}, 1); }},
      {"concat of nothing", "concat: needs at least one part\n  at @",
       CALL { USE; concat(std::vector<Tensor>{}); }},
      {"concat", "concat: parts differ outside axis 0: f32[2,3] against f32[4,5]\n  at @",
       CALL { USE; concat({in["x"], in["y"]}, 0); }},
      {"concat of ranks", "concat: parts differ outside axis 0: f32[2,3] against f32[3]\n  at @",
       CALL { USE; concat({in["x"], in["v"]}, 0); }},
      {"concat, axis", "concat: axis 2 does not exist: x is f32[2,3]\n  at @",
       CALL { USE; concat({in["x"], in["x"]}, 2); }},
      {"stack of nothing", "stack: needs at least one part\n  at @",
       CALL { USE; stack(std::vector<Tensor>{}); }},
      {"stack",
       "stack: parts differ in shape: the first is x f32[2,3], another is y f32[4,5]\n  at @",
       CALL { USE; stack({in["x"], in["y"]}); }},
      {"unsqueeze, axis", "unsqueeze: axis 3 does not exist: x is f32[2,3]\n  at @",
       CALL { USE; unsqueeze(in["x"], 3); }},
      {"unsqueeze, rank", "unsqueeze: at most 8 axes: x is deep f32[1,1,1,1,1,1,1,1]\n  at @",
       CALL { USE; unsqueeze(in["deep"], 0); }},
      {"stack, rank",
       "unsqueeze (in stack): at most 8 axes: x is deep f32[1,1,1,1,1,1,1,1]\n  at @",
       CALL { USE; stack({in["deep"], in["deep"]}); }},
      {"squeeze", "squeeze: axis 1 is not of size 1: x is f32[2,3]\n  at @",
       CALL { USE; squeeze(in["x"], 1); }},
      {"flip", "flip: axis 2 does not exist: x is f32[2,3]\n  at @",
       CALL { USE; flip(in["x"], 2); }},
      {"pad", "pad: padding must not be negative: -1 before, 2 after\n  hint: use narrow to cut   at @",
       CALL { USE; pad(in["x"], 0, -1, 2); }},
      {"pad, too far", "pad: padding must be below 2^40: 0 before, 1099511627776 after\n  at @",
       CALL { USE; pad(in["x"], 0, 0, std::int64_t{1} << 40); }},
      {"pad, not an i32", "pad: 10000000000 does not fit i32\n  at @",
       CALL { USE; pad(in["n"], 0, 0, 1, PadMode::constant, 1e10f); }},
      {"pad, axis", "pad: axis 2 does not exist: x is f32[2,3]\n  at @",
       CALL { USE; pad(in["x"], 2, 1, 1); }},
      {"pad, reflect",
       "pad: reflect padding of 3 and 0 needs 0 to 2 elements: x is f32[2,3]\n  at @",
       CALL { USE; pad(in["x"], 1, 3, 0, PadMode::reflect); }},
      {"pad, circular",
       "pad: circular padding of 0 and 4 needs 0 to 3 elements: x is f32[2,3]\n  at @",
       CALL { USE; pad(in["x"], 1, 0, 4, PadMode::circular); }},
      {"split_heads", "split_heads: needs [B, T, H*D] or [T, H*D] with H = 3: x is cube f32[2,3,4]\n  at @",
       CALL { USE; split_heads(in["cube"], 3); }},
      {"split_heads, none",
       "split_heads: needs [B, T, H*D] or [T, H*D] with H = 0: x is cube f32[2,3,4]\n  at @",
       CALL { USE; split_heads(in["cube"], 0); }},
      {"split_heads, vector",
       "split_heads: needs [B, T, H*D] or [T, H*D] with H = 1: x is v f32[3]\n  at @",
       CALL { USE; split_heads(in["v"], 1); }},
      {"merge_heads", "merge_heads: needs [B, H, T, D] or [H, T, D]: x is f32[2,3]\n  at @",
       CALL { USE; merge_heads(in["x"]); }},
      {"windows", "windows: size, stride and dilation must be at least 1: 0, 1, 1\n  at @",
       CALL { USE; windows(in["x"], 1, 0); }},
      {"windows, too large",
       "windows: the window is larger than axis 1: size 2, dilation 3, x is f32[2,3]\n  at @",
       CALL { USE; windows(in["x"], 1, 2, 1, 3); }},
      {"windows, axis", "windows: axis 2 does not exist: x is f32[2,3]\n  at @",
       CALL { USE; windows(in["x"], 2, 1); }},
      {"windows, rank", "windows: at most 7 axes: x is f32[1,1,1,1,1,1,1,1]\n  at @",
       CALL { USE; windows(in["deep"], 0, 1); }},
  });
}

TEST(OpErrors, Matmul) {
  expect_op_errors({
      {"inner sizes, b turned",
       "matmul: inner sizes differ: a is x f32[2,3], b is x f32[2,3] (3 against 2)\n"
       "  hint: swap_axes(b, -1, -2)?   at @",
       CALL { USE; matmul(in["x"], in["x"]); }},
      {"inner sizes, a turned",
       "matmul: inner sizes differ: a is x f32[2,3], b is f32[2,7] (3 against 2)\n"
       "  hint: swap_axes(a, -1, -2)?   at @",
       CALL { USE; matmul(in["x"], ones({2, 7})); }},
      {"inner sizes",
       "matmul: inner sizes differ: a is x f32[2,3], b is y f32[4,5] (3 against 4)\n  at @",
       CALL { USE; matmul(in["x"], in["y"]); }},
      {"vectors",
       "matmul: inner sizes differ: a is y f32[4,5], b is v f32[3] (5 against 3)\n  at @",
       CALL { USE; matmul(in["y"], in["v"]); }},
      {"number",
       "matmul: needs at least one axis: a is s f32[], b is x f32[2,3]\n"
       "  hint: use * for scalars   at @",
       CALL { USE; matmul(in["s"], in["x"]); }},
      {"integers", "matmul: needs f32: b is n i32[2,3]\n  hint: cast(b, tg::f32)?   at @",
       CALL { USE; matmul(in["x"], in["n"]); }},
      {"batch",
       "matmul: batch axes do not broadcast: a is cube f32[2,3,4], b is f32[3,4,2] (2 against 3)\n"
       "  at @",
       CALL { USE; matmul(in["cube"], ones({3, 4, 2})); }},
  });
}

TEST(OpErrors, Indexing) {
  expect_op_errors({
      {"table", "embedding: the table must be [V, D]: table is f32[3]\n  at @",
       CALL { USE; embedding(in["v"], in["ids"]); }},
      {"ids of a table",
       "embedding: ids must be i32: ids is f32[3]\n  hint: cast(ids, tg::i32)?   at @",
       CALL { USE; embedding(in["x"], in["v"]); }},
      {"ids, rank", "embedding: at most 7 axes: ids is i32[1,1,1,1,1,1,1,1]\n  at @",
       CALL { USE; embedding(in["x"], in["deep_ids"]); }},
      {"take_along_axis, rank",
       "take_along_axis: the operands must have the same rank: x is f32[2,3], ids is i32[4]\n  at @",
       CALL { USE; take_along_axis(in["x"], in["ids"], 0); }},
      {"take_along_axis, shape",
       "take_along_axis: shapes do not broadcast outside axis 0: x is y f32[4,5], ids is n "
       "i32[2,3]\n  at @",
       CALL { USE; take_along_axis(in["y"], in["n"], 0); }},
      {"take_along_axis, type",
       "take_along_axis: ids must be i32: ids is f32[2,3]\n  hint: cast(ids, tg::i32)?   at @",
       CALL { USE; take_along_axis(in["x"], in["x"], 0); }},
      {"take_along_axis, axis", "take_along_axis: axis 2 does not exist: x is f32[2,3]\n  at @",
       CALL { USE; take_along_axis(in["x"], in["n"], 2); }},
      {"gather, rank", "gather: the operands must have the same rank: x is f32[2,3], ids is i32[4]\n  at @",
       CALL { USE; gather(in["x"], 0, in["ids"]); }},
      {"gather, shape",
       "gather: axis 0 of ids is larger than that of x: x is f32[2,3], ids is i32[4,1]\n  at @",
       CALL { USE; gather(in["x"], 1, reshape(in["ids"], {4, 1})); }},
      {"gather, type", "gather: ids must be i32: ids is f32[2,3]\n  hint: cast(ids, tg::i32)?   at @",
       CALL { USE; gather(in["x"], 1, in["x"]); }},
      {"one_hot, type", "one_hot: needs i32: ids is x f32[2,3]\n  hint: cast(ids, tg::i32)?   at @",
       CALL { USE; one_hot(in["x"], 4); }},
      {"one_hot, depth", "one_hot: the depth must be at least 1: 0\n  at @",
       CALL { USE; one_hot(in["ids"], 0); }},
  });
}

TEST(OpErrors, Builders) {
  expect_op_errors({
      {"arange", "arange: the number of elements must not be negative: -1\n  at @",
       CALL { USE; arange(-1); }},
      {"arange, step", "arange: the step must not be zero\n  at @",
       CALL { USE; arange(0, 5, 0); }},
      {"arange, too long", "arange: positions must fit i32: 4294967296 are too many\n  at @",
       CALL { USE; arange(std::int64_t{1} << 32); }},
      {"arange, type", "arange: needs i32 or f32: the dtype is bool\n  at @",
       CALL { USE; arange(3, boolean); }},
      {"arange, end", "arange: values must fit i32: 2147483649 does not (start 2147483646, stop 2147483650, "
       "step 1)\n  at @",
       CALL { USE; arange(2147483646, 2147483650); }},
      {"arange, start", "arange: values must fit i32: -2147483649 does not (start -2147483649, stop 0, "
       "step 7)\n  at @",
       CALL { USE; arange(-2147483649, 0, 7); }},
      {"linspace", "linspace: needs at least one point: 0\n  at @",
       CALL { USE; linspace(0, 1, 0); }},
      {"eye", "arange (in eye): the number of elements must not be negative: -1\n  at @",
       CALL { USE; eye(-1); }},
      {"not an i32", "full: 3000000000 does not fit i32\n  at @",
       CALL { USE; full({2}, 3e9, i32); }},
      {"not an i32 beside one", "add: -3000000000 does not fit i32\n  at @",
       CALL { USE; in["n"] + std::int64_t{-3000000000}; }},
      {"tril", "tril: needs at least two axes: x is v f32[3]\n  at @",
       CALL { USE; tril(in["v"]); }},
      {"negative size", "shape: sizes must not be negative: -1 after [2]\n  at @",
       CALL { USE; zeros({2, -1}); }},
      {"rank", "shape: at most 8 dimensions are supported: [1,1,1,1,1,1,1,1] already has that many\n  at @",
       CALL { USE; ones({1, 1, 1, 1, 1, 1, 1, 1, 1}); }},
      {"too large",
       "shape: more than 2^60 elements: [1099511627776] with another axis of 1099511627776\n  at @",
       CALL { USE; full({std::int64_t{1} << 40, std::int64_t{1} << 40}, 1); }},
  });
}

// The operand without its rows.
Tensor none(const Tensor& x) { return narrow(x, 0, 0, 0); }

TEST(OpErrors, MachineLearning) {
  expect_op_errors({
      {"softmax", "softmax: needs f32: x is n i32[2,3]\n  hint: cast(x, tg::f32)?   at @",
       CALL { USE; softmax(in["n"]); }},
      {"log_softmax", "log_softmax: axis 2 does not exist: x is f32[2,3]\n  at @",
       CALL { USE; log_softmax(in["x"], 2); }},
      {"where_causal", "where_causal: needs [..., T, S] with S >= T: x is f32[3,2]\n  at @",
       CALL { USE; where_causal(swap_axes(in["x"], 0, 1), 0); }},
      {"where_causal, vector", "where_causal: needs [..., T, S] with S >= T: x is v f32[3]\n  at @",
       CALL { USE; where_causal(in["v"], 0); }},
      {"softmax_causal", "softmax_causal: needs square scores [..., T, T]: x is f32[2,3]\n  at @",
       CALL { USE; softmax_causal(in["x"]); }},
      {"attention",
       "attention: needs q [B, H, T, D], k [B, G, S, D], v [B, G, S, V]: q is cube f32[2,3,4], "
       "k is cube f32[2,3,4], v is cube f32[2,3,4]\n  at @",
       CALL { USE; attention(in["cube"], in["cube"], in["cube"]); }},
      {"attention, groups",
       "attention: the heads of k must divide those of q: q is image f32[1,3,8,8], k is f32[1,2,8,8], v "
       "is f32[1,2,8,8]\n  at @",
       CALL { USE; attention(in["image"], ones({1, 2, 8, 8}), ones({1, 2, 8, 8})); }},
      {"attention, keys",
       "attention: causal attention needs at least as many keys as queries: q is image "
       "f32[1,3,8,8], "
       "k is f32[1,3,7,8], v is f32[1,3,7,8]\n  at @",
       CALL { USE; attention(in["image"], ones({1, 3, 7, 8}), ones({1, 3, 7, 8})); }},
      {"attention, no keys",
       "attention: there are no keys to attend to: q is image f32[1,3,8,8], k is f32[1,3,0,8], v is f32[1,3,0,8]\n  at @",
       CALL { USE; attention(in["image"], ones({1, 3, 0, 8}), ones({1, 3, 0, 8}), {.causal = false}); }},
      {"attention, empty heads",
       "attention: heads must have at least one element: q is f32[1,2,3,0], k is f32[1,2,3,0], v is f32[1,2,3,4]\n  at @",
       CALL { USE; attention(ones({1, 2, 3, 0}), ones({1, 2, 3, 0}), ones({1, 2, 3, 4})); }},
      {"attention, start", "attention: the start must be one i32 scalar: start is i32[2]\n  at @",
       CALL { USE; attention(in["image"], in["image"], in["image"], arange(2)); }},
      {"attention, a start and everything",
       "attention: a start needs causal attention, because it selects the keys that a query sees\n  hint: leave the start out   at @",
       CALL { USE; attention(in["image"], in["image"], in["image"], sum(arange(2)), {.causal = false}); }},
      {"replace_at", "replace_at: the part must have the type and shape of x, except along one axis: x is f32[2,3], part is f32[3,3]\n  at @",
       CALL { USE; replace_at(in["x"], ones({3, 3}), 1, sum(arange(2))); }},
      {"replace_at, start", "replace_at: the start must be one i32 scalar: start is i32[2]\n  at @",
       CALL { USE; replace_at(in["x"], ones({2, 1}), 1, arange(2)); }},
      {"layer_norm",
       "layer_norm: the bias must have the size of the last axis: x is f32[2,3], bias is f32[4]\n  at @",
       CALL { USE; layer_norm(in["x"], ones({3}), ones({4})); }},
      {"layer_norm, gain",
       "layer_norm: the gain must have the size of the last axis: x is f32[2,3], gain is f32[4]\n  at @",
       CALL { USE; layer_norm(in["x"], ones({4})); }},
      {"layer_norm of a number", "layer_norm: needs at least one axis: x is s f32[]\n  at @",
       CALL { USE; layer_norm(in["s"], ones({1}), ones({1})); }},
      {"rms_norm",
       "rms_norm: the gain must have the size of the last axis: x is f32[2,3], gain is f32[4]\n  at @",
       CALL { USE; rms_norm(in["x"], ones({4})); }},
      {"rms_norm of a number", "rms_norm: needs at least one axis: x is s f32[]\n  at @",
       CALL { USE; rms_norm(in["s"], ones({1})); }},
      {"cross_entropy",
       "cross_entropy: needs logits [..., V] and targets [...]: logits is x f32[2,3], targets is "
       "ids i32[4]\n  at @",
       CALL { USE; cross_entropy(in["x"], in["ids"]); }},
      {"cross_entropy of a number",
       "cross_entropy: needs logits [..., V] and targets [...]: logits is s f32[], targets is ids "
       "i32[4]\n  at @",
       CALL { USE; cross_entropy(in["s"], in["ids"]); }},
      {"cross_entropy, real targets",
       "cross_entropy: needs i32: targets is v f32[3]\n  hint: cast(targets, tg::i32)?   at @",
       CALL { USE; cross_entropy(in["x"], in["v"]); }},
      {"cross_entropy, integer logits",
       "cross_entropy: needs f32: logits is n i32[2,3]\n  hint: cast(logits, tg::f32)?   at @",
       CALL { USE; cross_entropy(in["n"], in["ids"]); }},
      {"cross_entropy, smoothing",
       "nll_loss (in cross_entropy): label_smoothing must be between 0 and 1: 1.5\n  at @",
       CALL { USE; cross_entropy(in["y"], in["ids"], {.label_smoothing = 1.5f}); }},
      {"nll_loss",
       "nll_loss: needs log_probs [..., V] and targets [...]: log_probs is x f32[2,3], targets is "
       "ids i32[4]\n  at @",
       CALL { USE; nll_loss(in["x"], in["ids"]); }},
      {"huber_loss", "huber_loss: delta must be positive: 0\n  at @",
       CALL { USE; huber_loss(in["x"], in["x"], 0); }},
      {"rope", "rope: needs [..., T, D] with an even D: x is f32[2,3]\n  at @",
       CALL { USE; rope(in["x"]); }},
      {"rope, base", "rope: the base must be positive: -1\n  at @",
       CALL { USE; rope(in["cube"], -1); }},
      {"rope, offset", "rope: the offset must be one i32 scalar: offset is ids i32[4]\n  at @",
       CALL { USE; rope(in["cube"], 10, in["ids"]); }},
      {"rope, real offset", "rope: the offset must be one i32 scalar: offset is s f32[]\n  at @",
       CALL { USE; rope(in["cube"], 10, in["s"]); }},
      {"masked_cross_entropy",
       "cross_entropy (in masked_cross_entropy): needs logits [..., V] and targets [...]: logits "
       "is x f32[2,3], "
       "targets is ids i32[4]\n  at @",
       CALL { USE; masked_cross_entropy(in["x"], in["ids"], in["ids"]); }},
      {"masked_cross_entropy of nothing",
       "masked_cross_entropy: there are no targets: targets is i32[0]\n"
       "  hint: a batch of at least 1   at @",
       CALL { USE; masked_cross_entropy(none(in["x"]), none(in["ids"]), none(in["ids"])); }},
      {"dropout", "dropout: the probability must be between 0 and 1: 1.5\n  at @",
       CALL { USE; dropout(in["x"], 1.5f); }},
      {"dropout of integers",
       "dropout: needs f32: x is n i32[2,3]\n  hint: cast(x, tg::f32)?   at @",
       CALL { USE; dropout(in["n"], 0.5f); }},
      {"bernoulli", "bernoulli: needs f32: p is n i32[2,3]\n  hint: cast(p, tg::f32)?   at @",
       CALL { USE; bernoulli(in["n"]); }},
      {"bernoulli, number", "bernoulli: the probability must be between 0 and 1: -0.5\n  at @",
       CALL { USE; bernoulli(-0.5f); }},
      {"bernoulli, NaN", "bernoulli: the probability must be between 0 and 1: nan\n  at @",
       CALL { USE; bernoulli(std::numeric_limits<float>::quiet_NaN()); }},
      {"uniform", "uniform: needs finite bounds, low <= high: low 2, high 1\n  at @",
       CALL { USE; uniform({3}, 2, 1); }},
      {"uniform, wide", "uniform: needs finite bounds, low <= high: low -3e+38, high 3e+38\n  at @",
       CALL { USE; uniform({3}, -3e38f, 3e38f); }},
      {"clamp", "clamp: the bounds must not be NaN: nan and 1\n  at @",
       CALL { USE; clamp(in["x"], std::numeric_limits<float>::quiet_NaN(), 1); }},
      {"categorical", "categorical: needs logits [..., V]: logits is s f32[]\n  at @",
       CALL { USE; categorical(in["s"]); }},
      {"capture without a name", "capture: needs a name\n  at @",
       CALL { USE; capture("", in["x"]); }},
      {"capture twice",
       "capture: the name 'h' is taken\n"
       "  hint: give each capture a name of its own, for example with the layer's number   at @",
       CALL { USE; capture("h", in["x"]), capture("h", in["y"]); }},
  });
}

TEST(OpErrors, Convolution) {
  expect_op_errors({
      {"image", "conv2d: needs images [B, C, H, W]: x is cube f32[2,3,4]\n  at @",
       CALL { USE; conv2d(in["cube"], ones({2, 3, 3, 3})); }},
      {"image of integers",
       "max_pool2d: needs f32: x is n i32[2,3]\n  hint: cast(x, tg::f32)?   at @",
       CALL { USE; max_pool2d(in["n"], 2); }},
      {"weights", "conv2d: needs weights [O, C/groups, kH, kW]: w is x f32[2,3]\n  at @",
       CALL { USE; conv2d(in["image"], in["x"]); }},
      {"weights of integers",
       "conv2d: needs f32: w is n i32[2,3]\n  hint: cast(w, tg::f32)?   at @",
       CALL { USE; conv2d(in["image"], in["n"]); }},
      {"groups",
       "conv2d: groups must divide the input and output channels: groups is 2, x is image f32[1,3,8,8], w is "
       "f32[2,1,3,3]\n  at @",
       CALL { USE; conv2d(in["image"], ones({2, 1, 3, 3}), {.groups = 2}); }},
      {"no groups",
       "conv2d: groups must divide the input and output channels: groups is 0, x is image f32[1,3,8,8], w is "
       "f32[2,3,3,3]\n  at @",
       CALL { USE; conv2d(in["image"], ones({2, 3, 3, 3}), {.groups = 0}); }},
      {"channels",
       "conv2d: channels differ: x is image f32[1,3,8,8], w is f32[2,4,3,3], groups is 1 (3 "
       "against 4)\n  at @",
       CALL { USE; conv2d(in["image"], ones({2, 4, 3, 3})); }},
      {"kernel", "conv2d: the kernel must be at least 1: 0 x 3\n  at @",
       CALL { USE; conv2d(in["image"], ones({2, 3, 0, 3})); }},
      {"kernel of a parameter", "conv2d: the kernel must be at least 1: 0 x 3\n  at @",
       CALL { USE; conv2d(in["image"], m.flat_kernel); }},
      {"stride", "conv2d: the stride must be at least 1: 1 x 0\n  at @",
       CALL { USE; conv2d(in["image"], m.kernel, {.stride = {1, 0}}); }},
      {"dilation", "conv2d: the dilation must be at least 1: 0 x 0\n  at @",
       CALL { USE; conv2d(in["image"], m.kernel, {.dilation = 0}); }},
      {"padding", "conv2d: the padding must be at least 0: -1 x -1\n  at @",
       CALL { USE; conv2d(in["image"], m.kernel, {.padding = -1}); }},
      {"kernel too large",
       "conv2d: the kernel is larger than the padded image: 9 x 9 over x is image f32[1,3,8,8]\n"
       "  at @",
       CALL { USE; conv2d(in["image"], m.kernel, {.dilation = 4}); }},
      {"pool, kernel", "avg_pool2d: the kernel must be at least 1: 0 x 0\n  at @",
       CALL { USE; avg_pool2d(in["image"], 0); }},
      {"pool, stride", "max_pool2d: the stride must be at least 1: 0 x 0\n  at @",
       CALL { USE; max_pool2d(in["image"], 2, {.stride = 0}); }},
      {"pool, padding",
       "max_pool2d: the padding must be at most half of the kernel: 2 x 2 for 2 x 2\n  at @",
       CALL { USE; max_pool2d(in["image"], 2, {.stride = {}, .padding = 2}); }},
      {"pool, negative padding", "max_pool2d: the padding must be at least 0: 0 x -1\n  at @",
       CALL { USE; max_pool2d(in["image"], 2, {.stride = {}, .padding = {0, -1}}); }},
      {"pool too large",
       "avg_pool2d: the kernel is larger than the padded image: 9 x 9 over x is image "
       "f32[1,3,8,8]\n  at @",
       CALL { USE; avg_pool2d(in["image"], 9); }},
      {"upsample", "nearest_upsample2d: the scale must be at least 1: 2 x 0\n  at @",
       CALL { USE; nearest_upsample2d(in["image"], {2, 0}); }},
  });
}

TEST(OpErrors, LayersNameTheirModule) {
  expect_op_errors({
      {"Linear",
       "matmul (in Linear): inner sizes differ: a is y f32[4,5], b is l1.W f32[3,4] (5 against 3)\n"
       "  in l1, at @",
       CALL { USE; m.l1(in["y"]); }},
      {"Linear of integers",
       "matmul (in Linear): needs f32: a is n i32[2,3]\n  hint: cast(a, tg::f32)?   in l1, at @",
       CALL { USE; m.l1(in["n"]); }},
      {"nested",
       "matmul (in Linear): inner sizes differ: a is y f32[4,5], b is blocks.0.proj.W f32[3,4] (5 "
       "against 3)\n"
       "  in blocks.0.proj, at @",
       CALL { USE; m.blocks[0].proj(in["y"]); }},
      {"LayerNorm",
       "layer_norm: the gain must have the size of the last axis: x is f32[2,3], gain is norm.g f32[4]\n"
       "  in norm, at @",
       CALL { USE; m.norm(in["x"]); }},
      {"Embedding",
       "embedding (in Embedding): ids must be i32: ids is f32[2,3]\n"
       "  hint: cast(ids, tg::i32)?   in emb, at @",
       CALL { USE; m.emb(in["x"]); }},
      {"Conv2d",
       "conv2d (in Conv2d): channels differ: x is f32[1,2,8,8], w is conv.W f32[2,3,3,3], groups "
       "is 1 (2 against 3)\n"
       "  in conv, at @",
       CALL { USE; m.conv(narrow(in["image"], 1, 0, 2)); }},
      {"SelfAttention",
       "matmul (in SelfAttention): inner sizes differ: a is cube f32[2,3,4], b is "
       "blocks.0.attn.q.W f32[6,6] (4 against 6)\n"
       "  in blocks.0.attn.q, at @",
       CALL { USE; m.blocks[0].attn(in["cube"]); }},
      {"Transformer", "Transformer: needs tokens [B, T]: tokens is ids i32[4]\n  at @",
       CALL { USE; m.lm(in["ids"]); }},
      {"Transformer, context", "Transformer: 5 tokens exceed the context of 4\n  at @",
       CALL { USE; m.lm(zeros({1, 5}, i32)); }},
      {"Transformer, real tokens",
       "embedding (in Transformer): ids must be i32: ids is f32[2,3]\n"
       "  hint: cast(ids, tg::i32)?   in lm, at @",
       CALL { USE; m.lm(in["x"]); }},
  });
}

// With the line that makes the layer, or the model around it.
TEST(OpErrors, LayersCheckTheirNumbers) {
  expect_errors({
      {"heads", "SelfAttention: heads must divide dim: dim 4, heads 3\n  at @", __LINE__, [] { SelfAttention(4, 3); }},
      {"no heads", "SelfAttention: sizes must be at least 1: dim 4, heads 0\n  at @", __LINE__, [] { SelfAttention(4, 0); }},
      {"groups", "SelfAttention: groups must divide heads: heads 3, groups 2\n  at @",
       __LINE__, [] { SelfAttention(6, 3, {.groups = 2}); }},
      {"negative groups", "SelfAttention: groups must divide heads: heads 2, groups -1\n  at @",
       __LINE__, [] { SelfAttention(4, 2, {.groups = -1}); }},
      {"rotary",
       "SelfAttention: rotary positions need heads of an even size, dim / heads: dim 6, heads 2 (size 3)\n  at @",
       __LINE__, [] { SelfAttention(6, 2, {.rope_base = 10000.0f}); }},
      {"rotary in a model",
       "SelfAttention: rotary positions need heads of an even size, dim / heads: dim 6, heads 2 (size 3)\n  at @",
       __LINE__, [] { Transformer({.dim = 6, .heads = 2, .rope_base = 10000.0f}); }},
      {"rotary in a mixed model",
       "SelfAttention: rotary positions need heads of an even size, dim / heads: dim 6, heads 2 (size 3)\n  at @",
       __LINE__, [] { LanguageModel({.dim = 6, .layers = "mamba attention", .heads = 2}); }},
      {"transformer",
       "Transformer: sizes must be at least 1: vocab 256, dim 128, context 128, layers 4, heads 0\n  at @",
       __LINE__, [] { Transformer({.heads = 0}); }},
      {"transformer, heads", "SelfAttention: heads must divide dim: dim 128, heads 3\n  at @",
       __LINE__, [] { Transformer({.heads = 3}); }},
      {"block", "TransformerBlock: sizes must be at least 1: dim 0, heads 2\n  at @",
       __LINE__, [] { TransformerBlock(0, 2); }},
      {"mlp", "FeedForward: sizes must be at least 1: dim 4, hidden -4\n  at @",
       __LINE__, [] { FeedForward(4, -4, Activation::relu); }},
      {"linear", "Linear: sizes must be at least 1: in 2, out -3\n  at @", __LINE__, [] { Linear(2, -3); }},
      {"layer norm", "LayerNorm: sizes must be at least 1: size 0\n  at @", __LINE__, [] { LayerNorm norm(0); }},
      {"rms norm", "RMSNorm: sizes must be at least 1: size 0\n  at @", __LINE__, [] { RMSNorm norm(0); }},
      {"embedding", "Embedding: sizes must be at least 1: count 0, size 4\n  at @", __LINE__, [] { Embedding(0, 4); }},
      {"conv1d", "Conv1d: sizes must be at least 1: channels 4, kernel 0\n  at @", __LINE__, [] { Conv1d(4, 0); }},
      {"conv2d", "Conv2d: sizes must be at least 1: in 3, out 0, kernel.h 3, kernel.w 3\n  at @",
       __LINE__, [] { Conv2d(3, 0, 3); }},
      {"conv2d, no groups", "Conv2d: sizes must be at least 1: groups 0\n  at @",
       __LINE__, [] { Conv2d(3, 2, 3, {.groups = 0}); }},
      {"conv2d, groups", "Conv2d: groups must divide in and out: in 4, out 3, groups 2\n  at @",
       __LINE__, [] { Conv2d(4, 3, 3, {.groups = 2}); }},
  });
  EXPECT_EQ(text_of([] { init::function({}); }), "init::function: the function is empty");
  // Then nothing is scaled, not even the other projection.
  TransformerBlock block(4, 2, {.attention = {.W = {.init = init::constant(3)}},
                                .mlp = {.down = {.W = {.init = init::step_size(0.1f, 1)}}}});
  const std::string tail = " produces logarithms, which a factor cannot scale\n  hint: another init for this projection";
  EXPECT_EQ(text_of([&] { block.scale_residual_start(0.5f); }),
            "scale_residual_start: init::step_size" + tail);
  EXPECT_EQ(block.attn.o.W.init().a, 3);
  MambaBlock mamba({.dim = 4}, {.out_proj = {.init = init::log_of_uniform(1, 2)}});
  EXPECT_EQ(text_of([&] { mamba.scale_residual_start(0.5f); }),
            "scale_residual_start: init::log_of_uniform" + tail);
  // The line of a container in the standard library does not help, so there is none.
  std::vector<Linear> layers;
  EXPECT_EQ(text_of([&] { layers.emplace_back(2, -3); }), "Linear: sizes must be at least 1: in 2, out -3");
}

// Errors inside a layer or below the ops have the line of the user's call.
TEST(OpErrors, TheLineIsTheUsers) {
  expect_op_errors({
      {"shape of an op", "embedding: more than 2^60 elements: [2147483648] with another axis of 2147483648\n  at @",
       CALL { USE; embedding(zeros({1, std::int64_t{1} << 31}), zeros({std::int64_t{1} << 31}, i32)); }},
      {"rank of a composite", "unsqueeze (in one_hot): at most 8 axes: x is i32[1,1,1,1,1,1,1,1]\n  at @",
       CALL { USE; one_hot(in["deep_ids"], 3); }},
      {"nothing to join", "concat: needs at least one part\n  at @",
       CALL { USE; concat({}, 1); }},
      {"a vector of shapes", "shape: sizes must not be negative: -2 after []\n  at @",
       CALL { USE; Shape(std::vector<std::int64_t>{-2}); }},
      {"a block",
       "layer_norm (in TransformerBlock): needs at least one axis: x is s f32[]\n  at @",
       CALL { USE; m.lm.layers[0](in["s"]); }},
      {"heads of a block",
       "attention (in TransformerBlock): needs q [B, H, T, D], k [B, G, S, D], v [B, G, S, V]: "
       "q is f32[2,4,2], k is f32[2,4,2], v is f32[2,4,2]\n  at @",
       CALL { USE; m.lm.layers[0](narrow(in["y"], 1, 0, 4)); }},
  });
}

TEST(OpErrors, OutsideATrace) {
  const std::string hint =
      "hint: ops work inside the function given to compile(), compile_forward() or attach()   at @";
  expect_errors({
      {"builder", "zeros: called outside a trace\n  " + hint, __LINE__, [] { zeros({2}); }},
      {"operator", "add: called outside a trace\n  " + hint, __LINE__, [] { Tensor{} + 1; }},
      {"composite",
       "softmax: called outside a trace\n  " + hint, __LINE__, [] { softmax(Tensor{}); }},
      {"layer",
       "Linear: called outside a trace\n  " + hint, __LINE__, [] { Linear(2, 3)(Tensor{}); }},
  });
}

TEST(OpErrors, TensorsLiveInTheirOwnTrace) {
  Tensor kept;
  trace([&](const Model&, const Inputs& in) { return kept = in["y"]; });
  const std::string hint =
      "hint: a Tensor lives only while the function that made it is being traced   at @";
  expect_op_errors({
      {"kept", "exp: an operand belongs to another trace: f32[4,5]\n  " + hint,
       __LINE__, [&](const Model&, const Inputs&) { exp(kept); }},
      {"kept on the right", "mul: an operand belongs to another trace: f32[4,5]\n  " + hint,
       __LINE__, [&](const Model&, const Inputs&) { 2 * kept; }},
      {"of the trace around this one",
       "exp: an operand belongs to another trace: f32[2,3]\n  " + hint,
       __LINE__ + 3, [](const Model&, const Inputs& in) {
         const Tensor outer = in["x"];
         trace([&](const Model&, const Inputs&) {
           return exp(outer);
         });
       }},
  });
  expect_errors({
      {"kept, outside",
       "exp: called outside a trace\n"
       "  hint: ops work inside the function given to compile(), compile_forward() or attach()   "
       "at @",
       __LINE__, [&] { exp(kept); }},
  });
}

TEST(OpErrors, ATraceInsideATraceIsFine) {
  auto outer = trace([](const Model&, const Inputs& in) {
    auto inner = trace([](const Model&, const Inputs& own) { return own["s"] + 1; });
    return in["s"] + 2;
  });
  Feed feed;
  const std::vector<float> some(192);
  const std::vector<std::int32_t> ids(192);
  for (const InputSpec& spec : kInputs) {
    const auto n = static_cast<std::size_t>(spec.shape.count());
    if (spec.dtype == f32) feed.set(spec.name, std::span(some).first(n));
    else feed.set(spec.name, std::span(ids).first(n));
  }
  EXPECT_EQ(outer.run(feed).output().item(), 2);
}

// An error leaves nothing behind: the next trace on this thread starts clean.
TEST(OpErrors, ATraceAfterAFailedOneIsFine) {
  text_of([] {
    trace([](const Model& m, const Inputs& in) { return m.l1(in["y"]); });
  });
  trace([](const Model& m, const Inputs& in) { return m.l1(in["x"]); });
  EXPECT_NE(text_of([] { zeros({1}); }).find("called outside a trace"), std::string::npos);
}

}  // namespace
}  // namespace tensorgrad::errors
