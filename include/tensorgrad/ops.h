// The ops. Names and semantics are those a PyTorch or NumPy user would guess; the exceptions are
// said here. Elementwise ops broadcast from the right. All of them work inside a trace only: in
// the function given to compile(), compile_forward() or attach().
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tensorgrad/tensor.h"

namespace tensorgrad {

// ---- elementwise arithmetic. i32 and bool operands are promoted to the wider type of the two.
Tensor add(Operand a, Operand b);
Tensor sub(Operand a, Operand b);
Tensor mul(Operand a, Operand b);
// f32 only: for integers cast first, so that nothing is rounded silently.
Tensor div(Operand a, Operand b);
// At a tie each side gets half of the gradient.
Tensor maximum(Operand a, Operand b);
Tensor minimum(Operand a, Operand b);
Tensor pow(Operand base, Operand exponent);
Tensor neg(Operand x);
// Gradient 0 at 0.
Tensor abs(Operand x);
Tensor sign(Operand x);
Tensor square(Operand x);
Tensor sqrt(Operand x);
Tensor rsqrt(Operand x);
Tensor exp(Operand x);
Tensor expm1(Operand x);
Tensor log(Operand x);
Tensor log1p(Operand x);
Tensor sin(Operand x);
Tensor cos(Operand x);
Tensor tanh(Operand x);
Tensor sigmoid(Operand x);
Tensor erf(Operand x);
Tensor relu(Operand x);
Tensor leaky_relu(Operand x, float slope = 0.01f);
// The exact form, with erf.
Tensor gelu(Operand x);
Tensor gelu_tanh(Operand x);
Tensor silu(Operand x);
Tensor softplus(Operand x);
// Passes the gradient at its bounds.
Tensor clamp(Operand x, float min, float max);
// f32 to i32 drops the fraction; to bool is "not zero".
Tensor cast(Operand x, DType to);
// True where x is neither NaN nor infinite.
Tensor is_finite(Operand x);

inline Tensor operator+(Operand a, Operand b) { return add(a, b); }
inline Tensor operator-(Operand a, Operand b) { return sub(a, b); }
inline Tensor operator*(Operand a, Operand b) { return mul(a, b); }
inline Tensor operator/(Operand a, Operand b) { return div(a, b); }
inline Tensor operator-(Operand x) { return neg(x); }

// ---- comparison and logic: bool results, no gradient.
Tensor less(Operand a, Operand b);
Tensor less_equal(Operand a, Operand b);
Tensor greater(Operand a, Operand b);
Tensor greater_equal(Operand a, Operand b);
Tensor equal(Operand a, Operand b);
Tensor not_equal(Operand a, Operand b);
Tensor logical_and(Operand a, Operand b);
Tensor logical_or(Operand a, Operand b);
Tensor logical_not(Operand x);
// a where the condition holds, b elsewhere.
Tensor where(Operand condition, Operand a, Operand b);

inline Tensor operator<(Operand a, Operand b) { return less(a, b); }
inline Tensor operator<=(Operand a, Operand b) { return less_equal(a, b); }
inline Tensor operator>(Operand a, Operand b) { return greater(a, b); }
inline Tensor operator>=(Operand a, Operand b) { return greater_equal(a, b); }

// ---- reductions over any set of axes (none given: all of them).
Tensor sum(Operand x, Axes axes = {}, bool keepdims = false);
Tensor mean(Operand x, Axes axes = {}, bool keepdims = false);
// Ties share the gradient evenly.
Tensor max(Operand x, Axes axes = {}, bool keepdims = false);
Tensor min(Operand x, Axes axes = {}, bool keepdims = false);
Tensor prod(Operand x, Axes axes = {}, bool keepdims = false);
// Divides by n - correction; 1 is the unbiased estimate, as in PyTorch.
Tensor var(Operand x, Axes axes = {}, bool keepdims = false, int correction = 1);
// The standard deviation (the name `std` is taken in C++).
Tensor stddev(Operand x, Axes axes = {}, bool keepdims = false, int correction = 1);
// Index of the first largest (smallest) element, i32.
Tensor argmax(Operand x, int axis = -1, bool keepdims = false);
Tensor argmin(Operand x, int axis = -1, bool keepdims = false);
Tensor cumsum(Operand x, int axis);

// ---- shape. These are views: they cost nothing by themselves.
// One size may be -1.
Tensor reshape(Operand x, const std::vector<std::int64_t>& shape);
Tensor permute(Operand x, const std::vector<int>& order);
Tensor swap_axes(Operand x, int a, int b);
Tensor broadcast_to(Operand x, const Shape& shape);
// Elements start .. start+length-1 of one axis.
Tensor narrow(Operand x, int axis, std::int64_t start, std::int64_t length);
std::vector<Tensor> split(Operand x, int sections, int axis = -1);
std::vector<Tensor> split(Operand x, const std::vector<std::int64_t>& sizes, int axis = -1);
Tensor concat(Operands parts, int axis = 0);
Tensor stack(Operands parts, int axis = 0);
enum class PadMode : std::uint8_t { constant, reflect, circular };
// Adds elements before and after one axis; `value` is for PadMode::constant.
Tensor pad(Operand x, int axis, std::int64_t before, std::int64_t after,
           PadMode mode = PadMode::constant, float value = 0);
Tensor flip(Operand x, Axes axes);
// Adds an axis of size 1; removes one.
Tensor unsqueeze(Operand x, int axis);
Tensor squeeze(Operand x, int axis);
// Sliding windows along one axis: its size becomes the number of windows, and a new last axis of
// `size` holds each window's elements.
Tensor windows(Operand x, int axis, std::int64_t size, std::int64_t stride = 1,
               std::int64_t dilation = 1);
// [B, T, H*D] -> [B, H, T, D] and back.
Tensor split_heads(Operand x, int heads);
Tensor merge_heads(Operand x);
// Rotary positions over the last two axes [..., T, D], pairs (i, i + D/2).
Tensor rope(Operand x, float base = 10000, std::int64_t offset = 0);
// The same with the offset as an i32 scalar tensor, known only when the program runs.
Tensor rope(Operand x, float base, const Tensor& offset);

// ---- matrix product of the last two axes; leading axes broadcast. Vectors as in PyTorch.
Tensor matmul(Operand a, Operand b);

// ---- indexing. Ids out of range are an error when the step runs.
// Row ids[...] of a table [V, D] for each id: [..., D].
Tensor embedding(Operand table, Operand ids);
// x[..., ids[..., k, ...], ...] along one axis; the other axes of ids are no larger than those of x.
Tensor gather(Operand x, int axis, Operand ids);
// The same where all other axes match or broadcast.
Tensor take_along_axis(Operand x, Operand ids, int axis);
// f32, a new last axis of `depth`.
Tensor one_hot(Operand ids, std::int64_t depth);

// ---- builders
Tensor zeros(const Shape& shape, DType dtype = f32, Site site = Site::here());
Tensor ones(const Shape& shape, DType dtype = f32, Site site = Site::here());
Tensor full(const Shape& shape, double value, DType dtype = f32, Site site = Site::here());
Tensor eye(std::int64_t n, Site site = Site::here());
// i32: 0 .. n-1.
Tensor arange(std::int64_t n, Site site = Site::here());
Tensor arange(std::int64_t start, std::int64_t stop, std::int64_t step = 1, Site site = Site::here());
// f32, n points, both ends included.
Tensor linspace(double start, double stop, std::int64_t n, Site site = Site::here());
// Keeps the lower triangle of the last two axes, zero above the diagonal.
Tensor tril(Operand x, std::int64_t diagonal = 0);

// ---- machine learning
Tensor softmax(Operand x, int axis = -1);
Tensor log_softmax(Operand x, int axis = -1);
// Softmax over the last axis of [..., T, T] where row t sees columns 0 .. t.
Tensor softmax_causal(Operand x);
Tensor logsumexp(Operand x, Axes axes = {}, bool keepdims = false);
struct AttentionOptions {
  bool causal = true;
  std::optional<float> scale = {};  // 1/sqrt(D) when not given
};
// softmax(scale q k^T) v in one kernel that never holds T x S scores: q [B, H, T, D], k [B, G, S, D] and v [B, G, S, V],
// where G divides H (grouped-query attention). Causal: query t sees keys 0 .. t, counted from the end if S > T.
Tensor attention(Operand q, Operand k, Operand v, AttentionOptions options = {});
// The same over a cache whose keys are not all there yet: query t sees keys 0 .. start + t. `start` is an i32 scalar.
Tensor attention(Operand q, Operand k, Operand v, const Tensor& start, AttentionOptions options = {});
// x with elements start .. start + T - 1 of one axis replaced by those of `part`, whose axis has size T; what falls
// outside is left out. `start` is an i32 scalar, known only when the program runs: how a cache is written.
Tensor replace_at(Operand x, Operand part, int axis, const Tensor& start);
// Over the last axis.
Tensor layer_norm(Operand x, Operand gain, Operand bias, float eps = 1e-5f);
Tensor rms_norm(Operand x, Operand gain, float eps = 1e-5f);

enum class Reduction : std::uint8_t { mean, sum, none };
struct CrossEntropyOptions {
  Reduction reduction = Reduction::mean;
  std::optional<int> ignore_index = {};  // targets with this value count for nothing
  float label_smoothing = 0;
};
// logits [..., V], targets i32 [...]: the classes are the last axis.
Tensor cross_entropy(Operand logits, Operand targets, CrossEntropyOptions options = {});
// The same from log-probabilities.
Tensor nll_loss(Operand log_probs, Operand targets, CrossEntropyOptions options = {});
Tensor mse_loss(Operand prediction, Operand target, Reduction reduction = Reduction::mean);
Tensor bce_with_logits(Operand logits, Operand target, Reduction reduction = Reduction::mean);
Tensor huber_loss(Operand prediction, Operand target, float delta = 1,
                  Reduction reduction = Reduction::mean);
// KL(target || input) as in PyTorch: input holds log-probabilities, target probabilities.
Tensor kl_div(Operand input, Operand target, Reduction reduction = Reduction::mean);

// ---- convolution and pooling over [B, C, H, W]
struct Pair {
  std::int64_t h, w;
  Pair(std::int64_t both) : h(both), w(both) {}
  Pair(std::int64_t height, std::int64_t width) : h(height), w(width) {}
};
struct Conv2dOptions {
  Pair stride = 1, padding = 0, dilation = 1;
  std::int64_t groups = 1;
};
// w [O, C/groups, kH, kW]
Tensor conv2d(Operand x, Operand w, Conv2dOptions options = {});
struct Pool2dOptions {
  std::optional<Pair> stride = {};  // the kernel's size when not given
  Pair padding = 0;
};
// At a tie the first element of the window gets the gradient.
Tensor max_pool2d(Operand x, Pair kernel, Pool2dOptions options = {});
// Padding counts as zeros.
Tensor avg_pool2d(Operand x, Pair kernel, Pool2dOptions options = {});
Tensor nearest_upsample2d(Operand x, Pair scale);

// ---- state spaces: sequences are [B, L, C]
// y[l, c] = bias[c] + sum over k of w[c, k] x[l - K + 1 + k, c], zeros before the start: x [B, L, C], w [C, K], bias [C].
Tensor conv1d_causal_depthwise(Operand x, Operand w, Operand bias);

enum class Discretisation : std::uint8_t { euler, zoh };
struct SelectiveScanOptions {
  Discretisation discretisation = Discretisation::euler;
  // Training keeps the state once per this many steps and computes it again in between; 1 .. 256.
  std::int64_t chunk = 16;
};
// Mamba's recurrence, per channel e with N states: dl = softplus(delta), A = -exp(A_log), a = exp(dl A),
// h[l] = a h[l-1] + b B[l] u[l], y[l] = sum over n of C[l] h[l] + D u[l], where b is dl (euler) or (a - 1) / A (zoh).
// u and delta [B, L, E], A_log [E, N], B and C [B, L, N], D [E].
Tensor selective_scan(Operand u, Operand delta, Operand A_log, Operand B, Operand C, Operand D,
                      SelectiveScanOptions options = {});

struct SsdOptions {
  std::int64_t chunk = 64;  // positions that see each other in one product; changes speed and rounding only
};
// Mamba-2's recurrence, per head with a state N x P, as matrix products over chunks: dl = softplus(dt),
// a = exp(-exp(A_log) dl), h[l] = a h[l-1] + dl B[l] x[l]^T, y[l] = C[l]^T h[l] + D x[l]. x [B, L, H, P], dt [B, L, H],
// A_log and D [H], B and C [B, L, G, N], where G divides H and head h uses group h * G / H.
Tensor ssd(Operand x, Operand dt, Operand A_log, Operand B, Operand C, Operand D, SsdOptions options = {});

// ---- random, keyed by (seed, step, site of the call, index): the same on every device.
// Zeroes each element with probability p and scales the rest by 1/(1-p); identity in compile_forward.
Tensor dropout(Operand x, float p);
Tensor uniform(const Shape& shape, float low = 0, float high = 1, Site site = Site::here());
Tensor randn(const Shape& shape, Site site = Site::here());
// 1 with probability p, else 0; f32.
Tensor bernoulli(Operand p);
// One class per row of logits [..., V]: i32 [...].
Tensor categorical(Operand logits);

// ---- control
Tensor stop_gradient(Operand x);
// Names a value so that step() or run() can return it on request; returns x itself.
Tensor capture(std::string_view name, Operand x);

}  // namespace tensorgrad
