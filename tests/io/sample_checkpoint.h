// A small checkpoint with something in every field.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "tensorgrad/checkpoint.h"

namespace tensorgrad {

inline Checkpoint sample_checkpoint() {
  using Floats = std::vector<float>;
  using Ints = std::vector<std::int32_t>;
  const float infinity = std::numeric_limits<float>::infinity();
  return {
      .parameters = {{"l1.W", Array({2, 3}, Floats{1, -2, 0.1f, -0.0f, 1e-40f, infinity})},
                     {"nothing", Array({0, 4}, Floats{})},
                     {"\xc3\xa9t\xc3\xa9", Array({}, Floats{7})}},
      .optimizer = {{"m:l1.W", Array({2}, Floats{0.5f, std::numeric_limits<float>::quiet_NaN()})},
                    {"step", Array({}, Ints{1500})},
                    {"mask", Array({3}, Ints{1, 0, 1}, boolean)}},
      .step = 1500,
      .seed = 4294967295u,
      .position = std::numeric_limits<std::int64_t>::max(),
      .tokenizer = "{\"bytes\":\"\\u0000 \xf0\x9f\x99\x82\"}",
      .config = R"({"kind":"mamba"})",
      .more = {{"", "empty"}, {"note", "two\nlines"}, {"sha256", "\"sha256\":\"0\""}}};
}

}  // namespace tensorgrad
