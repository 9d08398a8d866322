// Sliding windows and the ops built on them: convolution, pooling; upsampling.
#include <limits>

#include "checks/samples.h"

namespace tensorgrad::checks {
namespace {

void add_windows(Samples& rows) {
  const auto slide = [](int axis, int size, int stride = 1, int dilation = 1) {
    return [=](In x) { return windows(x[0], axis, size, stride, dilation); };
  };
  rows.push_back({"windows", "plain", {real({9})}, slide(0, 3)});
  rows.push_back({"windows", "stride_2", {real({9})}, slide(0, 3, 2)});
  rows.push_back({"windows", "stride_2_leftover", {real({10})}, slide(0, 3, 2)});
  rows.push_back({"windows", "stride_3", {real({2, 11})}, slide(-1, 2, 3)});
  rows.push_back({"windows", "stride_over_size", {real({14})}, slide(0, 2, 5)});
  rows.push_back({"windows", "dilation_2", {real({9})}, slide(0, 3, 1, 2)});
  rows.push_back({"windows", "stride_2_dilation_3", {real({15})}, slide(0, 3, 2, 3)});
  rows.push_back({"windows", "stride_3_dilation_2", {real({15, 2})}, slide(0, 4, 3, 2)});
  rows.push_back({"windows", "first_axis", {real({7, 3})}, slide(0, 3, 2)});
  rows.push_back({"windows", "middle_axis", {real({2, 7, 3})}, slide(1, 4)});
  rows.push_back({"windows", "size_1", {real({2, 7})}, slide(1, 1)});
  rows.push_back({"windows", "size_1_stride_3", {real({2, 7})}, slide(1, 1, 3)});
  rows.push_back({"windows", "whole_axis", {real({2, 7})}, slide(1, 7)});
  rows.push_back({"windows", "of_one", {real({2, 1})}, slide(1, 1)});
  rows.push_back({"windows", "no_rows", {real({0, 7})}, slide(1, 3, 2)});
  rows.push_back({"windows", "i32", {ints({2, 7}, -9, 9)}, slide(1, 3)});
  rows.push_back({"windows", "many_blocks", {real({12, 180})}, slide(1, 5, 2, 2)});
  rows.push_back({"windows", "two_axes", {real({6, 7})}, [](In x) {
                    return windows(windows(x[0], 0, 2, 2), 1, 3, 1, 2);
                  }});
  rows.push_back({"windows", "of_padded", {real({3, 5})}, [](In x) {
                    return windows(pad(x[0], 1, 2, 2, PadMode::constant, 1), 1, 3, 2) * 2.0f;
                  }});
  rows.push_back({"windows", "of_transposed", {real({8, 3})}, [](In x) {
                    return windows(permute(x[0], {1, 0}), 1, 3, 2);
                  }});
  rows.push_back({"windows", "of_program", {real({3, 8})}, [](In x) {
                    return exp(windows(sin(x[0]), 1, 3, 2, 2));
                  }});
  rows.push_back({"windows", "rank_7", {real({1, 2, 1, 5, 1, 2, 2})}, slide(3, 2, 2)});
  rows.push_back({"windows", "of_windows", {real({20})}, [](In x) {
                    return windows(windows(x[0], 0, 6, 2), 1, 3, 2);
                  }});
  rows.push_back({"windows", "running_mean", {real({3, 30})}, [](In x) {
                    return mean(windows(x[0], 1, 7, 3), -1);
                  }});
}

void add_convolutions(Samples& rows) {
  const auto add = [&](const char* variant, const Shape& x, const Shape& w, Conv2dOptions options) {
    rows.push_back(
        {"conv2d", variant, {real(x), real(w)}, [=](In t) { return conv2d(t[0], t[1], options); }});
  };
  add("plain", {1, 1, 5, 5}, {1, 1, 3, 3}, {});
  add("channels", {2, 3, 6, 5}, {4, 3, 3, 2}, {});
  add("padding", {2, 2, 4, 5}, {3, 2, 3, 3}, {.padding = 1});
  add("padding_unequal", {1, 2, 4, 5}, {3, 2, 3, 2}, {.padding = {2, 1}});
  add("stride", {1, 2, 7, 8}, {3, 2, 3, 3}, {.stride = 2});
  add("stride_unequal", {1, 2, 7, 8}, {2, 2, 2, 3}, {.stride = {3, 2}, .padding = {1, 0}});
  add("dilation", {1, 2, 8, 9}, {2, 2, 3, 3}, {.dilation = 2});
  add("dilation_unequal", {1, 1, 8, 9}, {2, 1, 3, 2}, {.dilation = {1, 3}});
  add("everything", {2, 4, 9, 8}, {6, 2, 3, 2},
      {.stride = {2, 1}, .padding = {2, 1}, .dilation = {2, 3}, .groups = 2});
  add("groups", {2, 4, 5, 5}, {6, 2, 3, 3}, {.groups = 2});
  add("depthwise", {2, 3, 6, 6}, {3, 1, 3, 3}, {.padding = 1, .groups = 3});
  add("depthwise_multiplied", {1, 2, 5, 5}, {6, 1, 3, 3}, {.groups = 2});
  add("kernel_1", {2, 3, 4, 4}, {5, 3, 1, 1}, {});
  add("kernel_of_image", {2, 3, 4, 5}, {2, 3, 4, 5}, {});
  add("one_row", {1, 2, 1, 9}, {3, 2, 1, 4}, {.stride = {1, 2}});
  add("only_padding_seen", {1, 1, 1, 1}, {1, 1, 1, 1}, {.stride = 2, .padding = 2});
  add("empty_batch", {0, 2, 5, 5}, {3, 2, 3, 3}, {.padding = 1});
  add("tiles", {2, 3, 17, 16}, {8, 3, 3, 3}, {.padding = 1});
  rows.push_back({"conv2d",
                  "with_bias_and_relu",
                  {real({2, 2, 5, 5}), real({3, 2, 3, 3}), real({3})},
                  [](In x) {
                    return softplus(conv2d(x[0], x[1], {.padding = 1}) + reshape(x[2], {3, 1, 1}));
                  }});
  rows.push_back(
      {"conv2d", "twice", {real({1, 1, 6, 6}), real({2, 1, 3, 3}), real({1, 2, 2, 2})}, [](In x) {
         return conv2d(tanh(conv2d(x[0], x[1], {.stride = 2, .padding = 1})), x[2]);
       }});
}

void add_pools(Samples& rows) {
  const auto add = [&](const char* variant, const Shape& shape, Pair kernel,
                       Pool2dOptions options) {
    rows.push_back({"max_pool2d", variant, {real(shape).apart()}, [=](In x) {
                      return max_pool2d(x[0], kernel, options);
                    }});
    rows.push_back({"avg_pool2d", variant, {real(shape)}, [=](In x) {
                      return avg_pool2d(x[0], kernel, options);
                    }});
  };
  add("plain", {2, 3, 4, 6}, 2, {});
  add("leftover", {1, 2, 5, 7}, 2, {});
  add("overlapping", {1, 2, 6, 7}, 3, {.stride = 2});
  add("stride_1", {1, 1, 5, 5}, 3, {.stride = 1});
  add("padding", {1, 2, 5, 6}, 3, {.stride = 2, .padding = 1});
  add("padding_unequal", {1, 2, 5, 6}, {2, 4}, {.stride = Pair{1, 3}, .padding = {1, 2}});
  add("stride_over_kernel", {1, 1, 7, 8}, 2, {.stride = 3});
  add("kernel_1", {1, 2, 3, 3}, 1, {});
  add("whole_image", {2, 2, 3, 4}, {3, 4}, {});
  add("empty_batch", {0, 2, 4, 4}, 2, {});
  add("many_blocks", {2, 8, 24, 24}, 2, {});
  add("large", {1, 2, 9, 9}, 5, {.stride = 2, .padding = 2});
  rows.push_back({"max_pool2d",
                  "ties",
                  {given({1, 1, 4, 4}, {1, 1, 0, 2, 1, 1, 2, 2})},
                  [](In x) { return max_pool2d(x[0], 2); },
                  2e-6,
                  false});
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  rows.push_back({"max_pool2d",
                  "nan",
                  {given({1, 1, 2, 6}, {1, kNan, 2, 3, -1, 0, 3, 2, 5, kNan, 0, -2})},
                  [](In x) { return max_pool2d(x[0], 2); },
                  2e-6,
                  false});
  rows.push_back(
      {"max_pool2d", "all_negative_padded", {real({1, 2, 4, 4}, -9, -1).apart()}, [](In x) {
         return max_pool2d(x[0], 2, {.stride = 1, .padding = 1});
       }});
  rows.push_back({"max_pool2d", "after_conv", {real({1, 1, 6, 6}), real({2, 1, 3, 3})}, [](In x) {
                    return max_pool2d(conv2d(x[0], x[1]), 2);
                  }});

  const auto scaled = [](Pair scale) {
    return [=](In x) { return nearest_upsample2d(x[0], scale); };
  };
  rows.push_back({"nearest_upsample2d", "twice", {real({2, 3, 2, 3})}, scaled(2)});
  rows.push_back({"nearest_upsample2d", "unequal", {real({1, 2, 3, 2})}, scaled({3, 1})});
  rows.push_back({"nearest_upsample2d", "by_1", {real({1, 2, 3, 2})}, scaled(1)});
  rows.push_back({"nearest_upsample2d", "empty_batch", {real({0, 2, 3, 2})}, scaled(2)});
  rows.push_back({"nearest_upsample2d", "many_blocks", {real({2, 3, 9, 9})}, scaled(3)});
}

}  // namespace

Samples window_samples() {
  Samples rows;
  add_windows(rows);
  add_convolutions(rows);
  add_pools(rows);
  return rows;
}

}  // namespace tensorgrad::checks
