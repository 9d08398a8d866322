// The plain views, one by one and in chains that one set of strides cannot express.
#include "checks/samples.h"

namespace tensorgrad::checks {
namespace {

void add_reshape(Samples& rows) {
  const auto to = [](std::vector<std::int64_t> shape) {
    return [shape = std::move(shape)](In x) { return reshape(x[0], shape); };
  };
  rows.push_back({"reshape", "merge", {real({2, 3, 4})}, to({6, 4})});
  rows.push_back({"reshape", "split", {real({12})}, to({3, 2, 2})});
  rows.push_back({"reshape", "regroup", {real({4, 6})}, to({3, 8})});
  rows.push_back({"reshape", "minus_1", {real({4, 6})}, to({2, -1, 3})});
  rows.push_back({"reshape", "flatten", {real({4, 6})}, to({-1})});
  rows.push_back({"reshape", "to_rank_0", {real({1, 1})}, to({})});
  rows.push_back({"reshape", "from_rank_0", {real({})}, to({1, 1})});
  rows.push_back({"reshape", "same", {real({2, 3})}, to({2, 3})});
  rows.push_back({"reshape", "empty", {real({0, 3})}, to({5, 0})});
  rows.push_back({"reshape", "i32", {ints({2, 6}, -9, 9)}, to({3, 4})});
  rows.push_back({"reshape", "bool", {bools({2, 6})}, to({12})});
  rows.push_back({"reshape", "of_transposed", {real({4, 6})}, [](In x) {
                    return reshape(permute(x[0], {1, 0}), {3, 8});
                  }});
  rows.push_back({"reshape", "of_narrowed", {real({6, 7})}, [](In x) {
                    return reshape(narrow(x[0], 1, 1, 4), {8, 3});
                  }});
  rows.push_back({"reshape", "of_padded", {real({4, 5})}, [](In x) {
                    return reshape(pad(x[0], 1, 1, 2, PadMode::constant, -1), {2, 16});
                  }});
  rows.push_back({"reshape", "of_broadcast", {real({4, 1})}, [](In x) {
                    return reshape(broadcast_to(x[0], {4, 6}), {8, 3});
                  }});
  rows.push_back({"reshape", "of_reshape", {real({4, 6})}, [](In x) {
                    const Tensor t = reshape(permute(x[0], {1, 0}), {3, 8});
                    return reshape(permute(t, {1, 0}), {2, 12}) * 2.0f;
                  }});
  rows.push_back({"reshape", "many_blocks", {real({70, 66})}, [](In x) {
                    return reshape(permute(x[0], {1, 0}), {70, 66}) + x[0];
                  }});
}

void add_permute(Samples& rows) {
  rows.push_back({"permute", "matrix", {real({3, 5})}, [](In x) { return permute(x[0], {1, 0}); }});
  rows.push_back({"permute", "rank_4", {real({2, 3, 4, 5})}, [](In x) {
                    return permute(x[0], {2, 0, 3, 1});
                  }});
  rows.push_back({"permute", "negative", {real({2, 3, 4})}, [](In x) {
                    return permute(x[0], {-1, 0, -2});
                  }});
  rows.push_back({"permute", "identity", {real({2, 3})}, [](In x) {
                    return permute(x[0], {0, 1});
                  }});
  rows.push_back({"permute", "rank_0", {real({})}, [](In x) { return permute(x[0], {}); }});
  rows.push_back({"permute", "size_1_axes", {real({1, 3, 1})}, [](In x) {
                    return permute(x[0], {2, 1, 0});
                  }});
  rows.push_back({"permute", "empty", {real({2, 0, 3})}, [](In x) {
                    return permute(x[0], {2, 0, 1});
                  }});
  rows.push_back({"permute", "i32", {ints({3, 4}, -9, 9)}, [](In x) {
                    return permute(x[0], {1, 0});
                  }});
  rows.push_back({"permute", "rank_8", {real({2, 1, 3, 2, 1, 2, 3, 2})}, [](In x) {
                    return permute(x[0], {7, 3, 5, 1, 6, 0, 2, 4});
                  }});
  rows.push_back({"permute", "many_blocks", {real({9, 31, 17})}, [](In x) {
                    return permute(x[0], {2, 1, 0});
                  }});
  rows.push_back(
      {"swap_axes", "last_two", {real({2, 3, 4})}, [](In x) { return swap_axes(x[0], -1, -2); }});
  rows.push_back(
      {"swap_axes", "outer", {real({2, 3, 4})}, [](In x) { return swap_axes(x[0], 0, 2); }});
  rows.push_back({"swap_axes", "same", {real({2, 3})}, [](In x) { return swap_axes(x[0], 1, 1); }});
}

void add_broadcast(Samples& rows) {
  const auto to = [](const Shape& shape) {
    return [=](In x) { return broadcast_to(x[0], shape); };
  };
  rows.push_back({"broadcast_to", "new_axes", {real({3})}, to({2, 4, 3})});
  rows.push_back({"broadcast_to", "inner_axis", {real({3, 1})}, to({3, 5})});
  rows.push_back({"broadcast_to", "rank_0", {real({})}, to({2, 3})});
  rows.push_back({"broadcast_to", "rank_0_to_rank_0", {real({})}, to({})});
  rows.push_back({"broadcast_to", "both_ends", {real({1, 3, 1})}, to({4, 3, 2})});
  rows.push_back({"broadcast_to", "to_size_1", {real({1})}, to({1, 1, 1})});
  rows.push_back({"broadcast_to", "to_empty", {real({1, 3})}, to({0, 3})});
  rows.push_back({"broadcast_to", "i32", {ints({1, 4}, -9, 9)}, to({3, 4})});
  rows.push_back({"broadcast_to", "many_blocks", {real({1, 90})}, to({50, 90})});
  rows.push_back({"broadcast_to", "of_program", {real({3, 1})}, [](In x) {
                    return broadcast_to(exp(x[0]), {2, 3, 4}) * x[0];
                  }});
  rows.push_back({"unsqueeze", "front", {real({2, 3})}, [](In x) { return unsqueeze(x[0], 0); }});
  rows.push_back({"unsqueeze", "back", {real({2, 3})}, [](In x) { return unsqueeze(x[0], -1); }});
  rows.push_back({"unsqueeze", "middle", {real({2, 3})}, [](In x) { return unsqueeze(x[0], 1); }});
  rows.push_back({"unsqueeze", "rank_0", {real({})}, [](In x) { return unsqueeze(x[0], 0); }});
  rows.push_back({"squeeze", "front", {real({1, 3})}, [](In x) { return squeeze(x[0], 0); }});
  rows.push_back({"squeeze", "back", {real({3, 1})}, [](In x) { return squeeze(x[0], -1); }});
  rows.push_back({"squeeze", "to_rank_0", {real({1})}, [](In x) { return squeeze(x[0], 0); }});
}

void add_narrow(Samples& rows) {
  const auto part = [](int axis, std::int64_t start, std::int64_t length) {
    return [=](In x) { return narrow(x[0], axis, start, length); };
  };
  rows.push_back({"narrow", "first_axis", {real({5, 3})}, part(0, 1, 3)});
  rows.push_back({"narrow", "last_axis", {real({5, 6})}, part(-1, 2, 4)});
  rows.push_back({"narrow", "one_element", {real({5, 6})}, part(1, 5, 1)});
  rows.push_back({"narrow", "nothing", {real({5, 6})}, part(1, 6, 0)});
  rows.push_back({"narrow", "everything", {real({5, 6})}, part(1, 0, 6)});
  rows.push_back({"narrow", "bool", {bools({5, 6})}, part(0, 1, 3)});
  rows.push_back({"narrow", "twice", {real({8, 9})}, [](In x) {
                    return narrow(narrow(x[0], 0, 1, 6), 1, 3, 5) * 2.0f;
                  }});
  rows.push_back({"narrow", "overlapping", {real({9})}, [](In x) {
                    return narrow(x[0], 0, 0, 6) * narrow(x[0], 0, 3, 6);
                  }});
  rows.push_back({"narrow", "many_blocks", {real({60, 90})}, part(1, 7, 75)});
  rows.push_back({"flip", "one_axis", {real({3, 4})}, [](In x) { return flip(x[0], -1); }});
  rows.push_back({"flip", "two_axes", {real({3, 4, 2})}, [](In x) { return flip(x[0], {0, 2}); }});
  rows.push_back({"flip", "all_axes", {real({3, 4})}, [](In x) { return flip(x[0], {}); }});
  rows.push_back({"flip", "twice", {real({3, 4})}, [](In x) {
                    return flip(flip(x[0], 0), {0, 1});
                  }});
  rows.push_back({"flip", "size_1_axis", {real({3, 1})}, [](In x) { return flip(x[0], 1); }});
  rows.push_back({"flip", "empty", {real({3, 0})}, [](In x) { return flip(x[0], 1); }});
  rows.push_back({"flip", "i32", {ints({7}, -9, 9)}, [](In x) { return flip(x[0], 0); }});
}

// Views of views of views, read by one kernel.
void add_chains(Samples& rows) {
  rows.push_back({"permute", "chain_of_everything", {real({4, 6})}, [](In x) {
                    Tensor t = pad(x[0], 1, 1, 1, PadMode::constant, 3);  // [4, 8]
                    t = flip(reshape(t, {2, 2, 8}), 1);                   // [2, 2, 8]
                    t = windows(permute(t, {2, 0, 1}), 0, 3, 2);          // [3, 2, 2, 3]
                    t = broadcast_to(unsqueeze(t, 1), {3, 2, 2, 2, 3});
                    return narrow(reshape(t, {6, 12}), 1, 1, 10) * 2.0f;
                  }});
  rows.push_back({"flip", "of_pad_of_flip", {real({3, 5})}, [](In x) {
                    return flip(pad(flip(x[0], 1), 1, 2, 1, PadMode::constant, 9), 1) + 1.0f;
                  }});
  rows.push_back({"narrow", "of_pad_cuts_the_padding", {real({3, 5})}, [](In x) {
                    return narrow(pad(x[0], 1, 3, 3), 1, 3, 5) * 2.0f;
                  }});
  rows.push_back({"narrow", "of_pad_only_padding", {real({3, 5})}, [](In x) {
                    return narrow(pad(x[0], 1, 3, 3, PadMode::constant, 4), 1, 0, 2) * 2.0f;
                  }});
  rows.push_back({"broadcast_to", "of_pad", {real({3, 1})}, [](In x) {
                    return broadcast_to(pad(x[0], 0, 1, 1, PadMode::constant, 7), {2, 5, 4}) * 2.0f;
                  }});
}

}  // namespace

Samples view_samples() {
  Samples rows;
  add_reshape(rows);
  add_permute(rows);
  add_broadcast(rows);
  add_narrow(rows);
  add_chains(rows);
  return rows;
}

}  // namespace tensorgrad::checks
