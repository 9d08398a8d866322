// Sliding windows: the view and its adjoint; convolution, a matmul over windows; and pooling, a
// reduction over windows.
#include <limits>

#include "ops/builder.h"
#include "ops/registry.h"
#include "ops/table.h"
#include "tensorgrad/ops.h"

namespace tensorgrad::ops {

namespace {

using ir::Attrs;
using ir::Core;
using ir::GradientArgs;
using ir::IndexMap;
using ir::Primitive;
using ir::Type;
using Tensors = std::vector<Tensor>;

std::int64_t window_count(const ir::WindowAttrs& a) {
  if (a.size > 1 && a.dilation > (a.length - 1) / (a.size - 1)) return 0;
  return a.length < 1 ? 0 : (a.length - 1 - a.dilation * (a.size - 1)) / a.stride + 1;
}

Tensor fold(const Tensor& g, const ir::WindowAttrs& attrs);

// [..., length, ...] -> [..., count, ..., size]
constexpr Primitive kWindows = {
    .name = "windows",
    .core = Core::view,
    .attrs = ir::attrs_index<ir::WindowAttrs>(),
    .type =
        [](std::span<const Type> in, const Attrs& attrs) {
          const auto& a = std::get<ir::WindowAttrs>(attrs);
          if (a.axis < 0 || a.axis >= in[0].shape.rank())
            break_rule("", "axis {} does not exist: x is {}", a.axis, in[0].text());
          if (a.size < 1 || a.stride < 1 || a.dilation < 1 || a.length != in[0].shape[a.axis])
            break_rule("", "size, stride and dilation must be at least 1: {}, {}, {}", a.size,
                       a.stride, a.dilation);
          if (window_count(a) < 1)
            break_rule("", "the window is larger than axis {}: size {}, dilation {}, x is {}",
                       a.axis, a.size, a.dilation, in[0].text());
          if (in[0].shape.rank() == kMaxRank)
            break_rule("", "at most {} axes: x is {}", kMaxRank - 1, in[0].text());
          Type out = in[0];
          out.shape[a.axis] = window_count(a);
          out.shape.push_back(a.size);
          return out;
        },
    .view =
        [](const IndexMap& in, const Attrs& attrs) {
          const auto& a = std::get<ir::WindowAttrs>(attrs);
          return in.windows(a.axis, a.size, a.stride, a.dilation);
        },
    .gradient = [](const GradientArgs& d) -> Tensors {
      return {fold(d.g, d.as<ir::WindowAttrs>())};
    }};

// [..., count, ..., size] -> [..., length, ...]: each element is the sum over the windows it is in
constexpr Primitive kFold = {
    .name = "fold",
    .core = Core::fold,
    .attrs = ir::attrs_index<ir::WindowAttrs>(),
    .type =
        [](std::span<const Type> in, const Attrs& attrs) {
          const auto& a = std::get<ir::WindowAttrs>(attrs);
          if (in[0].dtype != DType::f32 || a.axis < 0 || a.axis >= in[0].shape.rank() - 1 ||
              a.size < 1 || a.stride < 1 || a.dilation < 1 || a.length < 0 ||
              in[0].shape.back() != a.size || in[0].shape[a.axis] != window_count(a))
            break_rule("",
                       "x does not consist of windows of {} elements over an axis of {}: x is {}",
                       a.size, a.length, in[0].text());
          Type out = in[0];
          out.shape.erase(-1);
          out.shape[a.axis] = a.length;
          return out;
        },
    .gradient = [](const GradientArgs& d) -> Tensors {
      const auto& a = d.as<ir::WindowAttrs>();
      return {windows(d.g, a.axis, a.size, a.stride, a.dilation)};
    }};

// [..., h, w] -> [...]: the largest element. At a tie, the first one alone gets the gradient.
constexpr Primitive kWindowMax = {
    .name = "window_max",
    .core = Core::composite,
    .type =
        [](std::span<const Type> in, const Attrs&) {
          const int rank = in[0].shape.rank();
          if (in[0].dtype != DType::f32 || rank < 2 ||
              in[0].shape[rank - 2] * in[0].shape.back() < 1)
            break_rule("", "needs f32 and windows that are not empty: x is {}", in[0].text());
          Type out = in[0];
          out.shape.erase(-1);
          out.shape.erase(-1);
          return out;
        },
    // The elements of small windows are compared one by one: such rows are too short for a
    // reduction.
    .expand =
        [](const std::vector<Tensor>& in, const Attrs&) {
          constexpr std::int64_t kSmall = 16;
          const std::int64_t h = in[0].size(-2), w = in[0].size(-1);
          if (h * w > kSmall) return max(in[0], {-2, -1});
          Tensor largest;
          for (std::int64_t i = 0; i < h * w; ++i) {
            const Tensor row = squeeze(narrow(in[0], -2, i / w, 1), -2);
            const Tensor one = squeeze(narrow(row, -1, i % w, 1), -1);
            largest = i == 0 ? one : maximum(largest, one);
          }
          return largest;
        },
    .gradient = [](const GradientArgs& d) -> Tensors {
      const Shape& shape = d.in[0].shape();
      Shape flat = d.out.shape();
      flat.push_back(d.in[0].size(-2) * d.in[0].size(-1));
      const Tensor place = argmax(reshape(d.in[0], flat), -1, true);
      const Tensor chosen = equal(arange(flat.back()), place);
      return {reshape(where(chosen, unsqueeze(d.g, -1), 0.0f), shape)};
    }};

constexpr const Primitive* kFamily[] = {&kWindows, &kFold, &kWindowMax};

Tensor fold(const Tensor& g, const ir::WindowAttrs& attrs) {
  Call call("fold", {});
  return call.emit(kFold, {g}, attrs);
}

// x [B, C, H, W] -> [B, C, OH, OW, kH, kW]
Tensor windows2d(const Tensor& x, Pair kernel, Pair stride, Pair padding, Pair dilation,
                 float fill) {
  Tensor t = pad(pad(x, 2, padding.h, padding.h, PadMode::constant, fill), 3, padding.w, padding.w,
                 PadMode::constant, fill);
  return windows(windows(t, 2, kernel.h, stride.h, dilation.h), 3, kernel.w, stride.w, dilation.w);
}

void check_image(const Call& call, const Tensor& x) {
  call.require_f32("x", x);
  if (x.rank() != 4) call.fail("", "needs images [B, C, H, W]: {}", call.describe("x", x));
}

void check_positive(const Call& call, const char* what, Pair p, std::int64_t least) {
  if (p.h < least || p.w < least)
    call.fail("", "{} must be at least {}: {} x {}", what, least, p.h, p.w);
}

void check_fits(const Call& call, const Tensor& x, Pair kernel, Pair padding, Pair dilation) {
  const std::int64_t h = dilation.h * (kernel.h - 1) + 1, w = dilation.w * (kernel.w - 1) + 1;
  if (x.size(2) + 2 * padding.h < h || x.size(3) + 2 * padding.w < w)
    call.fail("", "the kernel is larger than the padded image: {} x {} over {}", h, w,
              call.describe("x", x));
}

// [B, C, OH, OW, h, w]
Tensor pool_windows(const Call& call, const Tensor& x, Pair kernel, const Pool2dOptions& options,
                    float fill) {
  check_image(call, x);
  const Pair stride = options.stride.value_or(kernel);
  check_positive(call, "the kernel", kernel, 1);
  check_positive(call, "the stride", stride, 1);
  check_positive(call, "the padding", options.padding, 0);
  if (2 * options.padding.h > kernel.h || 2 * options.padding.w > kernel.w)
    call.fail("", "the padding must be at most half of the kernel: {} x {} for {} x {}",
              options.padding.h, options.padding.w, kernel.h, kernel.w);
  check_fits(call, x, kernel, options.padding, 1);
  return windows2d(x, kernel, stride, options.padding, 1, fill);
}

}  // namespace

std::span<const Primitive* const> window_family() { return kFamily; }

}  // namespace tensorgrad::ops

namespace tensorgrad {

using namespace ops;

Tensor windows(Operand x, int axis, std::int64_t size, std::int64_t stride, std::int64_t dilation) {
  Call call("windows", x.site());
  const Tensor t = call.tensor(x);
  const int at = call.axis(t, axis);
  return call.emit(kWindows, {t}, ir::WindowAttrs{at, size, stride, dilation, t.shape()[at]});
}

// Per group: matmul of w [O/g, C/g*kH*kW] and the windows [C/g*kH*kW, OH*OW].
Tensor conv2d(Operand image, Operand weight, Conv2dOptions options) {
  Call call("conv2d", image.site());
  const Tensor x = call.tensor(image), w = call.tensor(weight);
  check_image(call, x);
  call.require_f32("w", w);
  const std::int64_t G = options.groups;
  if (w.rank() != 4)
    call.fail("", "needs weights [O, C/groups, kH, kW]: {}", call.describe("w", w));
  if (G < 1 || x.size(1) % G != 0 || w.size(0) % G != 0)
    call.fail("", "groups must divide the input and output channels: groups is {}, {}, {}", G,
              call.describe("x", x), call.describe("w", w));
  if (w.size(1) != x.size(1) / G)
    call.fail("", "channels differ: {}, {}, groups is {} ({} against {})", call.describe("x", x),
              call.describe("w", w), G, x.size(1) / G, w.size(1));
  check_positive(call, "the kernel", {w.size(2), w.size(3)}, 1);
  check_positive(call, "the stride", options.stride, 1);
  check_positive(call, "the dilation", options.dilation, 1);
  check_positive(call, "the padding", options.padding, 0);
  check_fits(call, x, {w.size(2), w.size(3)}, options.padding, options.dilation);

  const std::int64_t B = x.size(0), C = x.size(1) / G, O = w.size(0) / G, kH = w.size(2),
                     kW = w.size(3);
  const Tensor win = windows2d(x, {kH, kW}, options.stride, options.padding, options.dilation, 0);
  const std::int64_t OH = win.size(2), OW = win.size(3);
  const Tensor columns =
      reshape(permute(reshape(win, {B, G, C, OH, OW, kH, kW}), {0, 1, 2, 5, 6, 3, 4}),
              {B, G, C * kH * kW, OH * OW});
  const Tensor rows = reshape(w, {G, O, C * kH * kW});
  return reshape(matmul(rows, columns), {B, G * O, OH, OW});
}

Tensor max_pool2d(Operand x, Pair kernel, Pool2dOptions options) {
  Call call("max_pool2d", x.site());
  const Tensor w =
      pool_windows(call, call.tensor(x), kernel, options, -std::numeric_limits<float>::infinity());
  return call.emit(kWindowMax, {w});
}

Tensor avg_pool2d(Operand x, Pair kernel, Pool2dOptions options) {
  Call call("avg_pool2d", x.site());
  return mean(pool_windows(call, call.tensor(x), kernel, options, 0), {-2, -1});
}

Tensor nearest_upsample2d(Operand image, Pair scale) {
  Call call("nearest_upsample2d", image.site());
  const Tensor x = call.tensor(image);
  check_image(call, x);
  check_positive(call, "the scale", scale, 1);
  const std::int64_t B = x.size(0), C = x.size(1), H = x.size(2), W = x.size(3);
  const Tensor spread =
      broadcast_to(reshape(x, {B, C, H, 1, W, 1}), {B, C, H, scale.h, W, scale.w});
  return reshape(spread, {B, C, H * scale.h, W * scale.w});
}

}  // namespace tensorgrad

namespace tensorgrad::ops {

std::span<const PublicOp> window_ops() {
  static constexpr PublicOp all[] = {
      op<windows>(
          "windows", {"x", "axis", "size", {"stride", 1}, {"dilation", 1}},
          "Sliding windows along one axis, whose size becomes the number of windows. A new last "
          "axis holds the elements of each."),
      op(
          "conv2d",
          [](Operand x, Operand w, Pair stride, Pair padding, Pair dilation, std::int64_t groups) {
            return conv2d(
                x, w,
                {.stride = stride, .padding = padding, .dilation = dilation, .groups = groups});
          },
          {"x", "w", {"stride", 1}, {"padding", 0}, {"dilation", 1}, {"groups", 1}},
          "Convolution of images [B, C, H, W] with w [O, C/groups, kH, kW]."),
      op(
          "max_pool2d",
          [](Operand x, Pair kernel, std::optional<Pair> stride, Pair padding) {
            return max_pool2d(x, kernel, {.stride = stride, .padding = padding});
          },
          {"x", "kernel", {"stride", kNothing}, {"padding", 0}},
          "The largest element of each window of [B, C, H, W]. Without a stride, windows do not "
          "overlap."),
      op(
          "avg_pool2d",
          [](Operand x, Pair kernel, std::optional<Pair> stride, Pair padding) {
            return avg_pool2d(x, kernel, {.stride = stride, .padding = padding});
          },
          {"x", "kernel", {"stride", kNothing}, {"padding", 0}},
          "The mean of each window of [B, C, H, W]. Padding counts as zeros."),
      op<nearest_upsample2d>("nearest_upsample2d", {"x", "scale"},
                             "Repeats the pixels of [B, C, H, W]."),
  };
  return all;
}

}  // namespace tensorgrad::ops
