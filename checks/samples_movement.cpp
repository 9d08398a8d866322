// Combining and splitting tensors: concat, stack, split, pad; heads and rotary positions.
#include "checks/samples.h"

namespace tensorgrad::checks {
namespace {

Tensor swapped_halves(const Tensor& x, int axis) {
  const Tensors parts = split(x, 2, axis);
  return concat({parts[1], parts[0] * 2.0f}, axis);
}

void add_joins(Samples& rows) {
  const auto all = [](int axis) { return [axis](In x) { return concat(x, axis); }; };
  rows.push_back({"concat", "first_axis", {real({2, 3}), real({1, 3})}, all(0)});
  rows.push_back({"concat", "last_axis", {real({2, 3}), real({2, 1}), real({2, 4})}, all(-1)});
  rows.push_back({"concat", "middle_axis", {real({2, 3, 2}), real({2, 1, 2})}, all(1)});
  rows.push_back({"concat", "one_part", {real({2, 3})}, all(0)});
  rows.push_back({"concat", "with_empty_part", {real({2, 3}), real({0, 3}), real({1, 3})}, all(0)});
  rows.push_back({"concat", "only_empty_parts", {real({0, 3}), real({0, 3})}, all(0)});
  rows.push_back({"concat", "i32", {ints({3}, -9, 9), ints({4}, -9, 9)}, all(0)});
  rows.push_back({"concat", "bool", {bools({3}), bools({4})}, all(0)});
  rows.push_back({"concat", "i32_and_f32", {ints({3}, -9, 9), real({4})}, all(0)});
  rows.push_back({"concat", "many_parts", std::vector<Arg>(9, real({3, 2})), all(1)});
  rows.push_back({"concat", "many_blocks", {real({20, 150}), real({20, 100})}, all(1)});
  rows.push_back({"concat", "with_itself", {real({2, 3})}, [](In x) {
                    return concat({x[0], x[0], x[0]}, 0);
                  }});
  rows.push_back({"concat", "of_programs", {real({3, 4}), real({3, 2})}, [](In x) {
                    return concat({exp(x[0]), x[1] * x[1], sin(x[1])}, 1) * 2.0f;
                  }});
  rows.push_back({"concat", "of_views", {real({4, 3}), real({3, 6})}, [](In x) {
                    return concat({permute(x[0], {1, 0}), narrow(flip(x[1], 1), 1, 1, 2),
                                   pad(x[1], 1, 1, 0, PadMode::constant, 5)},
                                  1);
                  }});
  rows.push_back({"concat", "of_constants", {real({2, 3})}, [](In x) {
                    return concat({zeros({1, 3}), x[0], full({2, 3}, 7)}, 0);
                  }});
  rows.push_back({"concat", "of_concat", {real({2}), real({3})}, [](In x) {
                    return concat({concat({x[0], x[1]}), concat({x[1], x[0]})});
                  }});
  rows.push_back({"concat", "of_one_hot", {given({3}, {2, 0, 2}, i32), real({3, 2})}, [](In x) {
                    return concat({one_hot(x[0], 3), x[1]}, -1);
                  }});
  rows.push_back(
      {"stack", "first_axis", {real({2, 3}), real({2, 3})}, [](In x) { return stack(x); }});
  rows.push_back({"stack", "last_axis", {real({2, 3}), real({2, 3}), real({2, 3})}, [](In x) {
                    return stack(x, -1);
                  }});
  rows.push_back({"stack", "middle_axis", {real({2, 3}), real({2, 3})}, [](In x) {
                    return stack({x[1], x[0]}, 1);
                  }});
  rows.push_back({"stack", "rank_0", {real({}), real({})}, [](In x) { return stack(x); }});
  rows.push_back(
      {"split", "equal_sections", {real({4, 6})}, [](In x) { return swapped_halves(x[0], -1); }});
  rows.push_back(
      {"split", "first_axis", {real({4, 6})}, [](In x) { return swapped_halves(x[0], 0); }});
  rows.push_back({"split", "by_sizes", {real({3, 7})}, [](In x) {
                    const Tensors parts = split(x[0], {1, 4, 2}, 1);
                    return concat({parts[2], exp(parts[0]), parts[1]}, 1);
                  }});
  rows.push_back({"split", "with_empty_part", {real({3, 4})}, [](In x) {
                    const Tensors parts = split(x[0], std::vector<std::int64_t>{0, 4}, 1);
                    return sum(parts[0]) + parts[1];
                  }});
}

void add_pads(Samples& rows) {
  const auto padded = [](int axis, int before, int after, PadMode mode, float value = 0) {
    return [=](In x) { return pad(x[0], axis, before, after, mode, value); };
  };
  rows.push_back({"pad", "before", {real({3, 4})}, padded(1, 2, 0, PadMode::constant)});
  rows.push_back({"pad", "after", {real({3, 4})}, padded(0, 0, 2, PadMode::constant)});
  rows.push_back({"pad", "value", {real({3, 4})}, padded(-1, 1, 2, PadMode::constant, -1.5f)});
  rows.push_back({"pad", "nothing", {real({3, 4})}, padded(0, 0, 0, PadMode::constant)});
  rows.push_back({"pad", "empty", {real({3, 0})}, padded(1, 1, 2, PadMode::constant, 4)});
  rows.push_back({"pad", "i32", {ints({3, 4}, -9, 9)}, padded(1, 1, 1, PadMode::constant, 7)});
  rows.push_back({"pad", "bool", {bools({6})}, padded(0, 1, 1, PadMode::constant, 1)});
  rows.push_back({"pad", "many_blocks", {real({50, 90})}, padded(1, 3, 5, PadMode::constant, 2)});
  rows.push_back({"pad", "reflect", {real({2, 5})}, padded(1, 2, 3, PadMode::reflect)});
  rows.push_back({"pad", "reflect_most", {real({4})}, padded(0, 3, 3, PadMode::reflect)});
  rows.push_back({"pad", "reflect_first_axis", {real({4, 2})}, padded(0, 0, 2, PadMode::reflect)});
  rows.push_back({"pad", "circular", {real({2, 5})}, padded(1, 2, 3, PadMode::circular)});
  rows.push_back({"pad", "circular_most", {real({4})}, padded(0, 4, 4, PadMode::circular)});
  rows.push_back(
      {"pad", "of_pad", {real({3, 4})}, [](In x) {
         return pad(pad(x[0], 1, 1, 2, PadMode::constant, 3), 1, 2, 1, PadMode::constant, 5) * 2.0f;
       }});
  rows.push_back(
      {"pad", "both_axes", {real({3, 4})}, [](In x) {
         return pad(pad(x[0], 0, 1, 1, PadMode::constant, 3), 1, 2, 2, PadMode::constant, 5) + 1.0f;
       }});
  rows.push_back(
      {"pad", "of_program", {real({3, 4})}, [](In x) { return exp(pad(exp(x[0]), 1, 1, 1)); }});
  rows.push_back({"pad", "of_windows", {real({8})}, [](In x) {
                    return pad(windows(x[0], 0, 3, 2), 1, 1, 1, PadMode::constant, 6) * 2.0f;
                  }});
  rows.push_back({"pad", "of_arange", {real({7})}, [](In x) {
                    return cast(pad(arange(4), 0, 1, 2, PadMode::constant, 9), f32) * x[0];
                  }});
  rows.push_back({"pad", "of_constant", {real({7})}, [](In x) {
                    return pad(ones({4}), 0, 1, 2, PadMode::constant, 9) * x[0];
                  }});
}

void add_heads(Samples& rows) {
  rows.push_back(
      {"split_heads", "two", {real({2, 3, 8})}, [](In x) { return split_heads(x[0], 2); }});
  rows.push_back(
      {"split_heads", "one", {real({2, 3, 4})}, [](In x) { return split_heads(x[0], 1); }});
  rows.push_back(
      {"split_heads", "of_size_1", {real({1, 3, 4})}, [](In x) { return split_heads(x[0], 4); }});
  rows.push_back(
      {"split_heads", "no_batch", {real({3, 8})}, [](In x) { return split_heads(x[0], 2); }});
  rows.push_back(
      {"merge_heads", "no_batch", {real({2, 3, 4})}, [](In x) { return merge_heads(x[0]); }});
  rows.push_back(
      {"merge_heads", "two", {real({2, 2, 3, 4})}, [](In x) { return merge_heads(x[0]); }});
  rows.push_back({"merge_heads", "of_split_heads", {real({2, 3, 8})}, [](In x) {
                    return merge_heads(sin(split_heads(x[0], 4)));
                  }});
  rows.push_back({"rope", "plain", {real({2, 5, 6})}, [](In x) { return rope(x[0]); }});
  rows.push_back({"rope", "heads", {real({2, 2, 4, 8})}, [](In x) { return rope(x[0], 100); }});
  rows.push_back({"rope", "offset", {real({3, 4})}, [](In x) { return rope(x[0], 10000, 17); }});
  // The angle itself is rounded to f32: 1e-7 of 300 is 2e-5.
  rows.push_back({"rope", "long", {real({300, 16})}, [](In x) { return rope(x[0]); }, 4e-5});
  rows.push_back({"rope", "offset_tensor", {real({2, 3, 4}), given({}, {5}, i32)}, [](In x) {
                    return rope(x[0], 10000, x[1]);
                  }});
  rows.push_back(
      {"rope", "size_1_axis", {real({1, 2})}, [](In x) { return rope(x[0], 10000, 3); }});
  rows.push_back({"rope", "empty", {real({0, 4})}, [](In x) { return rope(x[0]); }});
}

}  // namespace

Samples movement_samples() {
  Samples rows;
  add_joins(rows);
  add_pads(rows);
  add_heads(rows);
  return rows;
}

}  // namespace tensorgrad::checks
