// Attention over all keys, causal, grouped, and over a cache.
#include "checks/samples.h"

namespace tensorgrad::checks {
namespace {

void add_attention(Samples& rows) {
  const auto add = [&](const char* variant, const Shape& q, const Shape& k, const Shape& v,
                       AttentionOptions options) {
    rows.push_back({"attention",
                    variant,
                    {real(q), real(k), real(v)},
                    [=](In x) { return attention(x[0], x[1], x[2], options); },
                    5e-6});
  };
  const AttentionOptions all{.causal = false};
  add("causal", {2, 3, 5, 4}, {2, 3, 5, 4}, {2, 3, 5, 4}, {});
  add("not_causal", {2, 3, 5, 4}, {2, 3, 5, 4}, {2, 3, 5, 4}, all);
  add("causal_more_keys", {1, 2, 3, 4}, {1, 2, 7, 4}, {1, 2, 7, 4}, {});
  add("fewer_keys", {1, 2, 7, 4}, {1, 2, 3, 4}, {1, 2, 3, 4}, all);
  add("grouped", {2, 4, 3, 4}, {2, 2, 3, 4}, {2, 2, 3, 4}, {});
  add("grouped_to_one", {2, 4, 3, 4}, {2, 1, 5, 4}, {2, 1, 5, 4}, {});
  add("scale", {1, 1, 4, 3}, {1, 1, 4, 3}, {1, 1, 4, 3}, {.causal = true, .scale = 0.3f});
  add("other_value_size", {1, 2, 3, 4}, {1, 2, 3, 4}, {1, 2, 3, 6}, {});
  add("one_position", {2, 2, 1, 4}, {2, 2, 1, 4}, {2, 2, 1, 4}, {});
  add("one_query", {2, 2, 1, 4}, {2, 2, 9, 4}, {2, 2, 9, 4}, {});
  add("empty_batch", {0, 2, 3, 4}, {0, 2, 3, 4}, {0, 2, 3, 4}, {});
  add("long", {1, 2, 70, 8}, {1, 2, 70, 8}, {1, 2, 70, 8}, {});
  add("short_heads", {3, 4, 8, 16}, {3, 4, 8, 16}, {3, 4, 8, 16}, {});
  add("short_wider_heads", {2, 2, 5, 30}, {2, 2, 5, 30}, {2, 2, 5, 23}, {});
  add("short_of_16", {1, 4, 16, 8}, {1, 2, 16, 8}, {1, 2, 16, 32}, {});
  add("blocks", {1, 1, 100, 5}, {1, 1, 100, 5}, {1, 1, 100, 5}, {});
  add("blocks_more_keys", {1, 1, 37, 6}, {1, 1, 230, 6}, {1, 1, 230, 3}, {});
  add("blocks_all", {1, 1, 65, 4}, {1, 1, 33, 4}, {1, 1, 33, 4}, all);
  add("heads_of_32", {1, 1, 40, 32}, {1, 1, 40, 32}, {1, 1, 40, 32}, {});
  add("heads_of_64", {1, 1, 18, 64}, {1, 1, 18, 64}, {1, 1, 18, 64}, {});
  add("heads_of_128", {1, 1, 17, 128}, {1, 1, 17, 128}, {1, 1, 17, 32}, {});
  add("heads_of_192", {1, 1, 3, 192}, {1, 1, 3, 192}, {1, 1, 3, 128}, {});
  add("grouped_blocks", {1, 4, 40, 8}, {1, 2, 40, 8}, {1, 2, 40, 8}, {});
  add("grouped_all", {2, 6, 3, 4}, {2, 2, 20, 4}, {2, 2, 20, 4}, all);
  add("wide_heads", {1, 1, 5, 72}, {1, 1, 5, 72}, {1, 1, 5, 72}, {});
  add("wider_heads", {1, 1, 4, 150}, {1, 1, 4, 150}, {1, 1, 4, 260}, {});
  add("negative_scale", {1, 2, 5, 4}, {1, 2, 5, 4}, {1, 2, 5, 4},
      {.causal = false, .scale = -0.7f});
  rows.push_back({"attention",
                  "large_scores",
                  {real({1, 2, 12, 8}, -8, 8), real({1, 2, 12, 8}, -8, 8), real({1, 2, 12, 8})},
                  [](In x) { return attention(x[0], x[1], x[2], {.causal = true, .scale = 1.0f}); },
                  2e-5});
  const auto add_cached = [&](const char* variant, const Shape& q, const Shape& k, double start) {
    rows.push_back({"attention",
                    variant,
                    {real(q), real(k), real(k), given({}, {start}, i32)},
                    [](In x) { return attention(x[0], x[1], x[2], x[3]); },
                    5e-6});
  };
  add_cached("cached_first", {2, 2, 1, 4}, {2, 2, 9, 4}, 0);
  add_cached("cached_middle", {2, 2, 3, 4}, {2, 2, 9, 4}, 4);
  add_cached("cached_full", {2, 2, 3, 4}, {2, 2, 9, 4}, 6);
  add_cached("cached_past_the_end", {1, 2, 4, 4}, {1, 2, 9, 4}, 7);
  add_cached("cached_grouped_blocks", {1, 4, 40, 8}, {1, 2, 70, 8}, 11);
  rows.push_back({"attention",
                  "turned_operands",
                  {real({4, 5, 2, 3}), real({2, 3, 4, 5}), real({5, 4, 3, 2})},
                  [](In x) {
                    return attention(permute(x[0], {2, 3, 1, 0}), permute(x[1], {0, 1, 3, 2}),
                                     permute(x[2], {3, 2, 0, 1}));
                  },
                  5e-6});
  rows.push_back({"attention",
                  "padded_keys",
                  {real({1, 2, 5, 4}), real({1, 2, 3, 4}), real({1, 2, 3, 4})},
                  [](In x) { return attention(x[0], pad(x[1], 2, 2, 0), pad(x[2], 2, 1, 1)); },
                  5e-6});
  rows.push_back({"attention",
                  "one_for_all",
                  {real({2, 6, 4})},
                  [](In x) {
                    const Tensor heads = unsqueeze(x[0], 1);
                    return attention(heads, heads, heads);
                  },
                  5e-6});
  rows.push_back({"attention",
                  "from_one_projection",
                  {real({2, 5, 12})},
                  [](In x) {
                    const Tensors qkv = split(x[0], 3);
                    return merge_heads(attention(split_heads(qkv[0], 2), split_heads(qkv[1], 2),
                                                 split_heads(qkv[2], 2)));
                  },
                  5e-6});
}

void add_replace(Samples& rows) {
  const auto add = [&](const char* variant, const Shape& x, const Shape& part, int axis,
                       double start) {
    rows.push_back(
        {"replace_at", variant, {real(x), real(part), given({}, {start}, i32)}, [=](In t) {
           return replace_at(t[0], t[1], axis, t[2]);
         }});
  };
  add("one", {2, 5, 3}, {2, 1, 3}, 1, 2);
  add("several", {2, 7, 3}, {2, 3, 3}, 1, 2);
  add("first_axis", {6, 2}, {2, 2}, 0, 0);
  add("last_axis", {2, 6}, {2, 2}, -1, 4);
  add("past_the_end", {2, 6}, {2, 3}, 1, 4);
  add("before_the_start", {2, 6}, {2, 3}, 1, -2);
  add("outside", {2, 6}, {2, 3}, 1, 6);
  add("nothing", {2, 6}, {2, 0}, 1, 3);
  add("all", {2, 3}, {2, 3}, 1, 0);
}

}  // namespace

Samples attention_samples() {
  Samples rows;
  add_attention(rows);
  add_replace(rows);
  return rows;
}

}  // namespace tensorgrad::checks
