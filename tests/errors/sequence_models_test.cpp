// The text of every error of causal convolution, selective scan, ssd, and the sequence models.
#include "tests/errors/expect_error.h"

namespace tensorgrad::errors {
namespace {

struct None {};

using Call = std::function<Tensor(const Inputs& in)>;

const std::vector<InputSpec> kInputs = {
    {"x", {2, 6, 4}},    {"w", {4, 3}},           {"bias", {4}},           {"n", {2, 6, 4}, i32},
    {"no_taps", {4, 0}}, {"heads", {2, 6, 4, 5}}, {"dt", {2, 6, 4}},       {"A_log", {4}},
    {"B", {2, 6, 2, 3}}, {"odd", {2, 6, 3, 3}},   {"tokens", {2, 6}, i32},
};

struct OpRow {
  const char* name;
  std::string text;
  int line;
  Call call;
};

void expect_op_errors(const std::vector<OpRow>& rows) {
  std::vector<Row> plain;
  for (const OpRow& row : rows)
    plain.push_back({row.name, row.text, row.line, [&row] {
                       compile_forward(None{}, {.inputs = kInputs, .device = "cpu", .threads = 1},
                                       [&](const None&, const Inputs& in) { return row.call(in); });
                     }});
  expect_errors(plain);
}

#define CALL __LINE__, [](const Inputs& in)

// A row's call stands on the line of its __LINE__.
// clang-format off

TEST(SequenceErrors, Conv1d) {
  expect_op_errors({
      {"weights",
       "conv1d_causal_depthwise: needs x [B, L, C], w [C, K], bias [C]: x is f32[2,6,4], w is f32[4], bias is "
       "f32[4]\n  at @",
       CALL { return conv1d_causal_depthwise(in["x"], in["bias"], in["bias"]); }},
      {"bias",
       "conv1d_causal_depthwise: needs x [B, L, C], w [C, K], bias [C]: x is f32[2,6,4], w is f32[4,3], bias is "
       "f32[4,3]\n  at @",
       CALL { return conv1d_causal_depthwise(in["x"], in["w"], in["w"]); }},
      {"i32",
       "conv1d_causal_depthwise: needs x [B, L, C], w [C, K], bias [C]: x is i32[2,6,4], w is f32[4,3], bias is "
       "f32[4]\n  at @",
       CALL { return conv1d_causal_depthwise(in["n"], in["w"], in["bias"]); }},
      {"no taps", "conv1d_causal_depthwise: needs at least one tap: w is f32[4,0]\n  at @",
       CALL { return conv1d_causal_depthwise(in["x"], in["no_taps"], in["bias"]); }},
  });
}

TEST(SequenceErrors, SelectiveScan) {
  expect_op_errors({
      {"shapes",
       "selective_scan: needs u, delta [B, L, E], A_log [E, N], B, C [B, L, N], D [E] of f32: u is f32[2,6,4], "
       "delta is f32[4,3], "
       "A_log is f32[4,3], B is f32[2,6,4], C is f32[2,6,4], D is f32[4]\n  at @",
       CALL { return selective_scan(in["x"], in["w"], in["w"], in["x"], in["x"], in["bias"]); }},
      {"states",
       "selective_scan: needs u, delta [B, L, E], A_log [E, N], B, C [B, L, N], D [E] of f32: u is f32[2,6,4], "
       "delta is f32[2,6,4], "
       "A_log is f32[4,3], B is f32[2,6,4], C is f32[2,6,4], D is f32[4]\n  at @",
       CALL { return selective_scan(in["x"], in["x"], in["w"], in["x"], in["x"], in["bias"]); }},
      {"i32",
       "selective_scan: needs u, delta [B, L, E], A_log [E, N], B, C [B, L, N], D [E] of f32: u is i32[2,6,4], "
       "delta is f32[2,6,4], "
       "A_log is f32[4,3], B is f32[2,6,3], C is f32[2,6,3], D is f32[4]\n  at @",
       CALL { return selective_scan(in["n"], in["x"], in["w"], ones({2, 6, 3}), ones({2, 6, 3}), in["bias"]); }},
      {"no chunk", "selective_scan: a chunk must be 1 to 256 steps long: 0\n  at @",
       CALL { return selective_scan(in["x"], in["x"], in["w"], ones({2, 6, 3}), ones({2, 6, 3}), in["bias"], {.chunk = 0}); }},
      {"long chunk", "selective_scan: a chunk must be 1 to 256 steps long: 257\n  at @",
       CALL { return selective_scan(in["x"], in["x"], in["w"], ones({2, 6, 3}), ones({2, 6, 3}), in["bias"], {.chunk = 257}); }},
  });
}

TEST(SequenceErrors, Ssd) {
  expect_op_errors({
      {"shapes",
       "ssd: needs x [B, L, H, P], dt [B, L, H], A_log [H], B, C [B, L, G, N], D [H] of f32: x is f32[2,6,4], dt "
       "is f32[2,6,4], "
       "A_log is f32[4], B is f32[2,6,2,3], C is B f32[2,6,2,3], D is A_log f32[4]\n  at @",
       CALL { return ssd(in["x"], in["dt"], in["A_log"], in["B"], in["B"], in["A_log"]); }},
      {"C",
       "ssd: needs x [B, L, H, P], dt [B, L, H], A_log [H], B, C [B, L, G, N], D [H] of f32: x is heads "
       "f32[2,6,4,5], dt is f32[2,6,4], "
       "A_log is f32[4], B is f32[2,6,2,3], C is odd f32[2,6,3,3], D is A_log f32[4]\n  at @",
       CALL { return ssd(in["heads"], in["dt"], in["A_log"], in["B"], in["odd"], in["A_log"]); }},
      {"i32",
       "ssd: needs x [B, L, H, P], dt [B, L, H], A_log [H], B, C [B, L, G, N], D [H] of f32: x is heads "
       "f32[2,6,4,5], dt is n i32[2,6,4], "
       "A_log is f32[4], B is f32[2,6,2,3], C is B f32[2,6,2,3], D is A_log f32[4]\n  at @",
       CALL { return ssd(in["heads"], in["n"], in["A_log"], in["B"], in["B"], in["A_log"]); }},
      {"groups",
       "ssd: the groups of B and C must divide the heads of x: x is heads f32[2,6,4,5], B is odd f32[2,6,3,3]\n  at @",
       CALL { return ssd(in["heads"], in["dt"], in["A_log"], in["odd"], in["odd"], in["A_log"]); }},
      {"chunk", "ssd: a chunk must have at least one position: 0\n  at @",
       CALL { return ssd(in["heads"], in["dt"], in["A_log"], in["B"], in["B"], in["A_log"], {.chunk = 0}); }},
  });
}

TEST(SequenceErrors, Steps) {
  expect_op_errors({
      {"selective_scan_step",
       "selective_scan_step: needs h [B, E, N], u, delta [B, E], A_log [E, N], B, C [B, N], D [E]: h is x f32[2,6,4], "
       "u is w f32[4,3], delta is w f32[4,3], A_log is w f32[4,3], B is w f32[4,3], C is w f32[4,3], D is bias f32[4]\n  at @",
       CALL { Tensor h = in["x"]; return selective_scan_step(h, in["w"], in["w"], in["w"], in["w"], in["w"], in["bias"]); }},
      {"ssd_step",
       "ssd_step: needs h [B, H, N, P], x [B, H, P], dt [B, H], A_log, D [H], B, C [B, G, N], where G divides H: "
       "h is heads f32[2,6,4,5], x is f32[2,6,4], dt is w f32[4,3], A_log is bias f32[4], B is x f32[2,6,4], "
       "C is x f32[2,6,4], D is bias f32[4]\n  at @",
       CALL { Tensor h = in["heads"]; return ssd_step(h, in["x"], in["w"], in["bias"], in["x"], in["x"], in["bias"]); }},
  });
}

struct Models {
  Mamba mamba{{.vocab = 5, .layers = 1, .dim = 4}};
  Transformer transformer{{.vocab = 5, .dim = 4, .context = 4, .layers = 1, .heads = 2}};
};

TEST(SequenceErrors, Models) {
  const auto trace = [](const std::function<Tensor(const Models& m, const Inputs& in)>& call) {
    compile_forward(Models{}, {.inputs = kInputs, .device = "cpu", .threads = 1}, call);
  };
  expect_errors({
      {"tokens", "Mamba: needs tokens [B, T]: tokens is n i32[2,6,4]\n  at @",
       __LINE__, [&] { trace([](const Models& m, const Inputs& in) { return m.mamba(in["n"]); }); }},
      {"no state",
       "input: there is no input 'layers.0.window': the inputs are x, w, bias, n, no_taps, heads, dt, A_log, B, "
       "odd, tokens\n  at @",
       __LINE__, [&] { trace([](const Models& m, const Inputs& in) { return m.mamba.step(in["tokens"], in).logits; }); }},
  });
}

// The errors have the line that makes the model.
TEST(SequenceErrors, SizesOfModels) {
  expect_errors({
      {"state", "MambaBlock: sizes must be at least 1: dim 4, state 0, conv 4, expand 2\n  at @",
       __LINE__, [] { MambaBlock({.dim = 4, .state = 0}); }},
      {"rank", "MambaBlock: dt_rank must be at least 0: -1\n  at @",
       __LINE__, [] { MambaBlock({.dim = 4, .dt_rank = -1}); }},
      {"head size", "Mamba2Block: sizes must be at least 1: dim 4, state 64, conv 4, expand 2, head_size 0, groups 1\n  at @",
       __LINE__, [] { Mamba2Block({.dim = 4, .head_size = 0}); }},
      {"heads", "Mamba2Block: head_size must divide expand * dim: expand 2, dim 4, head_size 3\n  at @",
       __LINE__, [] { Mamba2Block({.dim = 4, .head_size = 3}); }},
      {"groups", "Mamba2Block: groups must divide the heads, expand * dim / head_size: 4 heads, groups 3\n  at @",
       __LINE__, [] { Mamba2Block({.dim = 4, .head_size = 2, .groups = 3}); }},
      {"kind", "LanguageModel: unknown layer 'mambo' in \"mamba mambo\"\n  hint: mamba, mamba2 or attention   at @",
       __LINE__, [] { LanguageModel({.dim = 4, .layers = "mamba mambo"}); }},
      {"Mamba", "Mamba: sizes must be at least 1: vocab 5, layers 0, dim 4\n  at @",
       __LINE__, [] { Mamba({.vocab = 5, .layers = 0, .dim = 4}); }},
      {"Mamba, inside", "MambaBlock: sizes must be at least 1: dim 4, state 16, conv 0, expand 2\n  at @",
       __LINE__, [] { Mamba({.dim = 4, .conv = 0}); }},
      {"Mamba2", "Mamba2: sizes must be at least 1: vocab 0, layers 1, dim 4\n  at @",
       __LINE__, [] { Mamba2({.vocab = 0, .layers = 1, .dim = 4}); }},
      {"Transformer", "Transformer: sizes must be at least 1: vocab 5, dim 4, context 128, layers -1, heads 2\n  at @",
       __LINE__, [] { Transformer({.vocab = 5, .dim = 4, .layers = -1, .heads = 2}); }},
      {"LanguageModel", "LanguageModel: sizes must be at least 1: vocab 0, dim 4\n  at @",
       __LINE__, [] { LanguageModel({.vocab = 0, .dim = 4}); }},
      {"no layers", "LanguageModel: layers must name at least one layer: it is empty\n  at @",
       __LINE__, [] { LanguageModel({.vocab = 5, .dim = 4, .layers = ""}); }},
      {"cache", "SelfAttention::state: sizes must be at least 1: batch 1, capacity 0\n  at @",
       __LINE__, [] { LanguageModel({.dim = 4, .layers = "attention", .heads = 2}).state(1, 0); }},
      {"batch", "MambaBlock::state: sizes must be at least 1: batch -1\n  at @",
       __LINE__, [] { Mamba({.layers = 1, .dim = 4}).state(-1); }},
      {"batch of Mamba2", "Mamba2Block::state: sizes must be at least 1: batch 0\n  at @",
       __LINE__, [] { Mamba2({.layers = 1, .dim = 4, .head_size = 4}).state(0); }},
      {"context", "Transformer::state: the cache must not be longer than the context: capacity 9, context 4\n  at @",
       __LINE__, [] { Transformer({.vocab = 5, .dim = 4, .context = 4, .layers = 1, .heads = 2}).state(1, 9); }},
  });
}

}  // namespace
}  // namespace tensorgrad::errors
