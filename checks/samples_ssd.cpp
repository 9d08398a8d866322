// State space duality: Mamba-2's recurrence in chunks. tests/ops/ssd_test.cpp checks that it equals
// the recurrence.
#include "checks/samples.h"

namespace tensorgrad::checks {
namespace {

struct SsdSizes {
  std::int64_t B, L, H, P, G, N, chunk;
};

}  // namespace

Samples ssd_samples() {
  Samples rows;
  const auto add = [&](const char* variant, const SsdSizes& s) {
    const Shape b{s.B, s.L, s.G, s.N};
    rows.push_back({"ssd",
                    variant,
                    {real({s.B, s.L, s.H, s.P}), real({s.B, s.L, s.H}), real({s.H}, -1, 1), real(b),
                     real(b), real({s.H})},
                    [chunk = s.chunk](In x) {
                      return ssd(x[0], x[1], x[2], x[3], x[4], x[5], {.chunk = chunk});
                    },
                    8e-6});  // sums of sums of values that cancel
  };
  add("one_chunk", {2, 5, 2, 3, 1, 4, 64});
  add("two_chunks", {2, 6, 2, 3, 1, 4, 3});
  add("many_chunks", {1, 9, 2, 3, 1, 4, 2});
  add("leftover", {2, 7, 2, 3, 1, 4, 3});
  add("chunk_of_1", {1, 4, 2, 3, 1, 2, 1});
  add("groups", {2, 5, 4, 3, 2, 4, 2});
  add("group_per_head", {1, 5, 3, 2, 3, 4, 2});
  add("one_position", {2, 1, 2, 3, 1, 4, 64});
  add("one_of_each", {1, 3, 1, 1, 1, 1, 2});
  add("empty_batch", {0, 5, 2, 3, 1, 4, 2});
  add("no_positions", {2, 0, 2, 3, 1, 4, 2});
  add("no_state", {1, 3, 2, 3, 1, 0, 2});
  add("long", {1, 70, 2, 8, 1, 8, 16});
  rows.push_back({"ssd",
                  "of_one_projection",
                  {real({2, 5, 14}), real({2}, -1, 1), real({2})},
                  [](In x) {
                    const Tensors parts = split(x[0], {6, 3, 3, 2});
                    const auto heads = [](const Tensor& t, std::int64_t n) {
                      return reshape(t, {2, 5, n, 3});
                    };
                    return ssd(heads(parts[0], 2), parts[3], x[1], heads(parts[1], 1),
                               heads(parts[2], 1), x[2], {.chunk = 2});
                  },
                  8e-6});
  return rows;
}

}  // namespace tensorgrad::checks
