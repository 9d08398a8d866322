// The ops. Names and semantics are those of PyTorch and NumPy; exceptions are documented here.
// Elementwise ops broadcast from the right. Ops work only inside a trace: in the function given to
// compile(), compile_forward() or attach().
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tensorgrad/tensor.h"

namespace tensorgrad {

// ---- elementwise arithmetic. Mixed operands are promoted to the wider type (bool < i32 < f32).
Tensor add(Operand a, Operand b);
Tensor sub(Operand a, Operand b);
Tensor mul(Operand a, Operand b);
// f32 only. Cast integers first, so that nothing is rounded silently.
Tensor div(Operand a, Operand b);
// At a tie, each operand gets half of the gradient.
Tensor maximum(Operand a, Operand b);
Tensor minimum(Operand a, Operand b);
Tensor pow(Operand base, Operand exponent);
Tensor neg(Operand x);
// The gradient at 0 is 0.
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
// The exact form, with erf. gelu_tanh is the approximation.
Tensor gelu(Operand x);
Tensor gelu_tanh(Operand x);
Tensor silu(Operand x);
Tensor softplus(Operand x);
// Passes the gradient at the bounds. Bounds may be infinite, but not NaN.
Tensor clamp(Operand x, float min, float max);
// Converts the type. f32 to i32 truncates; to bool means "not zero".
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
// Returns a where the condition is true, b elsewhere.
Tensor where(Operand condition, Operand a, Operand b);

inline Tensor operator<(Operand a, Operand b) { return less(a, b); }
inline Tensor operator<=(Operand a, Operand b) { return less_equal(a, b); }
inline Tensor operator>(Operand a, Operand b) { return greater(a, b); }
inline Tensor operator>=(Operand a, Operand b) { return greater_equal(a, b); }

// ---- reductions over any set of axes. Without axes: over all of them.
Tensor sum(Operand x, Axes axes = {}, bool keepdims = false);
Tensor mean(Operand x, Axes axes = {},
            bool keepdims = false);  // throws for an empty axis, instead of NaN
// Ties share the gradient evenly.
Tensor max(Operand x, Axes axes = {}, bool keepdims = false);
Tensor min(Operand x, Axes axes = {}, bool keepdims = false);
Tensor prod(Operand x, Axes axes = {}, bool keepdims = false);
// Divides by n - correction; 1 is the unbiased estimate, as in PyTorch.
Tensor var(Operand x, Axes axes = {}, bool keepdims = false, int correction = 1);
// The standard deviation (`std` is a namespace in C++). The gradient is 0 where all elements are
// equal.
Tensor stddev(Operand x, Axes axes = {}, bool keepdims = false, int correction = 1);
// Returns the index of the first largest (smallest) element, i32.
Tensor argmax(Operand x, int axis = -1, bool keepdims = false);
Tensor argmin(Operand x, int axis = -1, bool keepdims = false);
Tensor cumsum(Operand x, int axis);

// ---- shape. These are views: they cost nothing by themselves.
// One size may be -1: it is inferred.
Tensor reshape(Operand x, const std::vector<std::int64_t>& shape);
Tensor permute(Operand x, const std::vector<int>& order);
Tensor swap_axes(Operand x, int a, int b);
Tensor broadcast_to(Operand x, const Shape& shape);
// Returns elements start .. start+length-1 of one axis.
Tensor narrow(Operand x, int axis, std::int64_t start, std::int64_t length);
std::vector<Tensor> split(Operand x, int sections, int axis = -1);
std::vector<Tensor> split(Operand x, const std::vector<std::int64_t>& sizes, int axis = -1);
Tensor concat(Operands parts, int axis = 0);
Tensor stack(Operands parts, int axis = 0);
enum class PadMode : std::uint8_t { constant, reflect, circular };
// Adds elements before and after one axis. `value` is used by PadMode::constant.
Tensor pad(Operand x, int axis, std::int64_t before, std::int64_t after,
           PadMode mode = PadMode::constant, float value = 0);
Tensor flip(Operand x, Axes axes);
// unsqueeze adds an axis of size 1; squeeze removes one.
Tensor unsqueeze(Operand x, int axis);
Tensor squeeze(Operand x, int axis);
// Sliding windows along one axis. The size of the axis becomes the number of windows. A new last
// axis of size `size` holds the elements of each window.
Tensor windows(Operand x, int axis, std::int64_t size, std::int64_t stride = 1,
               std::int64_t dilation = 1);
// [B, T, H*D] -> [B, H, T, D] and back. The batch axis is optional.
Tensor split_heads(Operand x, int heads);
Tensor merge_heads(Operand x);
// Applies rotary positions over the last two axes [..., T, D], in pairs (i, i + D/2).
Tensor rope(Operand x, float base = 10000, std::int64_t offset = 0);
// The same with the offset as an i32 scalar tensor, which is known only at run time.
Tensor rope(Operand x, float base, const Tensor& offset);

// ---- matmul over the last two axes. Leading axes broadcast. Vectors work as in PyTorch.
Tensor matmul(Operand a, Operand b);

// ---- indexing. A step with an id out of range throws; on a GPU, reading its result throws.
// Looks up row ids[...] of a table [V, D] for each id. Returns [..., D].
Tensor embedding(Operand table, Operand ids);
// Returns x[..., ids[..., k, ...], ...] along one axis. The other axes of ids are no larger than
// those of x.
Tensor gather(Operand x, int axis, Operand ids);
// The same, but all other axes must match or broadcast.
Tensor take_along_axis(Operand x, Operand ids, int axis);
// Returns 1 at the id and 0 elsewhere, along a new last axis of size `depth`.
Tensor one_hot(Operand ids, std::int64_t depth, DType dtype = f32);

// ---- builders
Tensor zeros(const Shape& shape, DType dtype = f32, Site site = Site::here());
Tensor ones(const Shape& shape, DType dtype = f32, Site site = Site::here());
Tensor full(const Shape& shape, double value, DType dtype = f32, Site site = Site::here());
Tensor eye(std::int64_t n, Site site = Site::here());
// Returns 0 .. n-1, or start, start + step, ... before stop, as i32 or f32. All values must fit
// into i32.
Tensor arange(std::int64_t n, DType dtype = i32, Site site = Site::here());
Tensor arange(std::int64_t start, std::int64_t stop, std::int64_t step = 1, DType dtype = i32,
              Site site = Site::here());
// Returns n points from start to stop, f32. Both ends are included.
Tensor linspace(double start, double stop, std::int64_t n, Site site = Site::here());
// Keeps the lower triangle of the last two axes. Elements above the diagonal become 0.
Tensor tril(Operand x, std::int64_t diagonal = 0);

// ---- machine learning
Tensor softmax(Operand x, int axis = -1);
Tensor log_softmax(Operand x, int axis = -1);
// x is [..., T, S]. Row t keeps columns 0 .. t + S - T; the others become `fill`. Only the kept
// elements get a gradient.
Tensor where_causal(Operand x, float fill);
// Softmax over the last axis of [..., T, T]. Row t sees columns 0 .. t.
Tensor softmax_causal(Operand x);
Tensor logsumexp(Operand x, Axes axes = {}, bool keepdims = false);
struct AttentionOptions {
  bool causal = true;
  std::optional<float> scale = {};  // default: 1/sqrt(D)
};
// Computes softmax(scale q k^T) v in one kernel that never stores the T x S scores. Shapes: q
// [B, H, T, D], k [B, G, S, D], v [B, G, S, V]. G divides H: grouped-query attention. Causal: query
// t sees keys 0 .. t, counted from the end if S > T.
Tensor attention(Operand q, Operand k, Operand v, AttentionOptions options = {});
// The same over a cache that is not full yet: query t sees keys 0 .. start + t. `start` is an i32
// scalar.
Tensor attention(Operand q, Operand k, Operand v, const Tensor& start,
                 AttentionOptions options = {});
// Returns x with elements start .. start + T - 1 of one axis replaced by `part`, whose axis has
// size T. Elements that fall outside of x are dropped. `start` is an i32 scalar, known only at run
// time. Use it to write a cache.
Tensor replace_at(Operand x, Operand part, int axis, const Tensor& start);
// Norms over the last axis.
Tensor layer_norm(Operand x, Operand gain, Operand bias, float eps = 1e-5f);
Tensor layer_norm(Operand x, Operand gain, float eps = 1e-5f);
Tensor rms_norm(Operand x, Operand gain, float eps = 1e-5f);

enum class Reduction : std::uint8_t { mean, sum, none };
struct CrossEntropyOptions {
  Reduction reduction = Reduction::mean;
  std::optional<int> ignore_index = {};  // targets with this value are ignored
  float label_smoothing = 0;
};
// logits are [..., V], targets are i32 [...]. The last axis holds the classes.
Tensor cross_entropy(Operand logits, Operand targets, CrossEntropyOptions options = {});
// The same, from log-probabilities.
Tensor nll_loss(Operand log_probs, Operand targets, CrossEntropyOptions options = {});
Tensor mse_loss(Operand prediction, Operand target, Reduction reduction = Reduction::mean);
Tensor bce_with_logits(Operand logits, Operand target, Reduction reduction = Reduction::mean);
Tensor huber_loss(Operand prediction, Operand target, float delta = 1,
                  Reduction reduction = Reduction::mean);
// KL(target || input) as in PyTorch: input holds log-probabilities, target holds probabilities.
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
// x is [B, C, H, W], w is [O, C/groups, kH, kW].
Tensor conv2d(Operand x, Operand w, Conv2dOptions options = {});
struct Pool2dOptions {
  std::optional<Pair> stride = {};  // default: the size of the kernel
  Pair padding = 0;
};
// At a tie, the first element of the window gets the gradient; padding is -infinity.
Tensor max_pool2d(Operand x, Pair kernel, Pool2dOptions options = {});
// Padding counts as zeros in the average.
Tensor avg_pool2d(Operand x, Pair kernel, Pool2dOptions options = {});
Tensor nearest_upsample2d(Operand x, Pair scale);

// ---- state spaces: sequences are [B, L, C]
// y[l, c] = bias[c] + sum over k of w[c, k] x[l - K + 1 + k, c], with zeros before the start. x is
// [B, L, C], w is [C, K], bias is [C].
Tensor conv1d_causal_depthwise(Operand x, Operand w, Operand bias);

enum class Discretisation : std::uint8_t { euler, zoh };
struct SelectiveScanOptions {
  Discretisation discretisation = Discretisation::euler;
  // Training stores the state once per `chunk` positions and recomputes it in between; 1 .. 256.
  std::int64_t chunk = 16;
};
// The recurrence of Mamba, per channel e with N states. b is dl (euler) or (a - 1) / A
// (zoh, zero-order hold).
// dl = softplus(delta), A = -exp(A_log), a = exp(dl A),
// h[l] = a h[l-1] + b B[l] u[l], y[l] = sum over n of C[l] h[l] + D u[l].
// u and delta are [B, L, E], A_log is [E, N], B and C are [B, L, N], D is [E].
Tensor selective_scan(Operand u, Operand delta, Operand A_log, Operand B, Operand C, Operand D,
                      SelectiveScanOptions options = {});

struct SsdOptions {
  std::int64_t chunk =
      64;  // positions that are computed as one matmul; changes only speed and rounding
};
// The recurrence of Mamba-2, per head with a state N x P, as matmuls over chunks.
// dl = softplus(dt), a = exp(-exp(A_log) dl),
// h[l] = a h[l-1] + dl B[l] x[l]^T, y[l] = C[l]^T h[l] + D x[l].
// x is [B, L, H, P], dt is [B, L, H], A_log and D are [H], B and C are [B, L, G, N], where G
// divides H. Head h uses group h * G / H.
Tensor ssd(Operand x, Operand dt, Operand A_log, Operand B, Operand C, Operand D,
           SsdOptions options = {});

// ---- random numbers, keyed by (seed, step, site of the call, index): the same on every device.
// Sets each element to 0 with probability p and scales the others by 1/(1-p). Does nothing in
// compile_forward().
Tensor dropout(Operand x, float p);
// Uniform from low to high, without high; low <= high.
Tensor uniform(const Shape& shape, float low = 0, float high = 1, Site site = Site::here());
// Normal with mean 0 and standard deviation 1.
Tensor randn(const Shape& shape, Site site = Site::here());
// Returns 1 with probability p, else 0; f32. A p outside 0 .. 1 throws: at the call for a scalar,
// when the step runs for a tensor.
Tensor bernoulli(Operand p);
// Draws one class per row of logits [..., V]: i32 [...]. A row whose largest logit is not finite
// (all -inf, or a NaN) throws when the step runs.
Tensor categorical(Operand logits);

// ---- control
// Returns x and passes no gradient to it.
Tensor stop_gradient(Operand x);
// Names a tensor so that step() or run() can return it on request. Returns x.
Tensor capture(std::string_view name, Operand x);

}  // namespace tensorgrad
