// Causal depthwise convolution along sequences [B, L, C].
#include "checks/samples.h"

namespace tensorgrad::checks {

Samples conv1d_samples() {
  Samples rows;
  const auto call = [](In x) { return conv1d_causal_depthwise(x[0], x[1], x[2]); };
  const auto add = [&](const char* variant, const Shape& x, std::int64_t K) {
    rows.push_back(
        {"conv1d_causal_depthwise", variant, {real(x), real({x[2], K}), real({x[2]})}, call});
  };
  add("4_taps", {2, 7, 5}, 4);
  add("2_taps", {3, 6, 5}, 2);
  add("1_tap", {2, 4, 5}, 1);
  add("more_taps_than_positions", {2, 3, 5}, 4);
  add("many_more_taps_than_positions", {2, 2, 3}, 9);
  add("one_position", {2, 1, 5}, 4);
  add("one_channel", {2, 6, 1}, 4);
  add("one_number", {1, 1, 1}, 1);
  add("channels_33", {2, 9, 33}, 4);
  add("empty_batch", {0, 5, 3}, 4);
  add("no_positions", {2, 0, 3}, 4);
  add("no_channels", {2, 5, 0}, 4);
  add("many_blocks", {3, 130, 40}, 4);
  rows.push_back({"conv1d_causal_depthwise",
                  "then_silu",
                  {real({2, 6, 8}), real({8, 4}), real({8})},
                  [](In x) { return silu(conv1d_causal_depthwise(x[0], x[1], x[2])); }});
  rows.push_back({"conv1d_causal_depthwise",
                  "of_half_a_projection",
                  {real({2, 5, 6}), real({6, 8}, -1, 1), real({4, 3}), real({4})},
                  [](In x) {
                    const Tensors parts = split(matmul(x[0], x[1]), 2);
                    return silu(conv1d_causal_depthwise(parts[0], x[2], x[3])) * silu(parts[1]);
                  },
                  4e-6});
  rows.push_back({"conv1d_causal_depthwise",
                  "of_transposed",
                  {real({2, 4, 6}), real({3, 4}), real({12})},
                  [](In x) {
                    return conv1d_causal_depthwise(permute(x[0], {0, 2, 1}), permute(x[1], {1, 0}),
                                                   narrow(x[2], 0, 5, 4));
                  }});
  rows.push_back({"conv1d_causal_depthwise",
                  "of_broadcast",
                  {real({1, 5, 1}), real({1, 3}), real({1})},
                  [](In x) {
                    return conv1d_causal_depthwise(broadcast_to(x[0], {2, 5, 4}),
                                                   broadcast_to(x[1], {4, 3}),
                                                   broadcast_to(x[2], {4}));
                  }});
  rows.push_back({"conv1d_causal_depthwise",
                  "of_flipped",
                  {real({2, 6, 3}), real({3, 2}), real({3})},
                  [](In x) {
                    return flip(conv1d_causal_depthwise(flip(x[0], 1), flip(x[1], {1}), x[2]), 1);
                  }});
  rows.push_back(
      {"conv1d_causal_depthwise", "twice", {real({1, 6, 3}), real({3, 3}), real({3})}, [](In x) {
         return conv1d_causal_depthwise(tanh(conv1d_causal_depthwise(x[0], x[1], x[2])), x[1],
                                        x[2]);
       }});
  return rows;
}

}  // namespace tensorgrad::checks
