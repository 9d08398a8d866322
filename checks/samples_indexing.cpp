// Indexing by ids: repeated, few, many, computed, and of views.
#include "checks/samples.h"

namespace tensorgrad::checks {
namespace {

Tensor rows_of(In x) { return embedding(x[0], x[1]); }

void add_embedding(Samples& rows) {
  const Arg table = real({6, 3});
  rows.push_back({"embedding", "vector_of_ids", {table, ints({4}, 0, 5)}, rows_of});
  rows.push_back({"embedding", "matrix_of_ids", {table, ints({2, 5}, 0, 5)}, rows_of});
  rows.push_back({"embedding", "rank_0_id", {table, ints({}, 0, 5)}, rows_of});
  rows.push_back(
      {"embedding", "repeated_ids", {table, given({6}, {2, 2, 5, 2, 0, 2}, i32)}, rows_of});
  rows.push_back({"embedding", "long_list_of_ids", {table, ints({2500}, 0, 5)}, rows_of});
  rows.push_back({"embedding", "one_row", {real({1, 3}), ints({5}, 0, 0)}, rows_of});
  rows.push_back({"embedding", "one_column", {real({6, 1}), ints({5}, 0, 5)}, rows_of});
  rows.push_back({"embedding", "no_ids", {table, ints({0}, 0, 5)}, rows_of});
  rows.push_back({"embedding", "no_columns", {real({6, 0}), ints({4}, 0, 5)}, rows_of});
  rows.push_back({"embedding", "i32_table", {ints({6, 3}, -9, 9), ints({4}, 0, 5)}, rows_of});
  rows.push_back({"embedding", "bool_table", {bools({6, 3}), ints({4}, 0, 5)}, rows_of});
  rows.push_back({"embedding", "number_id", {table}, [](In x) { return embedding(x[0], 4); }});
  rows.push_back({"embedding", "many_ids", {real({50, 70}), ints({300}, 0, 49)}, rows_of});
  rows.push_back(
      {"embedding", "large_vocabulary", {real({1000, 5}), ints({3, 100}, 0, 999)}, rows_of});
  rows.push_back({"embedding", "computed_ids", {table, ints({7}, 0, 4)}, [](In x) {
                    return embedding(x[0], x[1] + 1);
                  }});
  rows.push_back(
      {"embedding", "arange_ids", {table}, [](In x) { return embedding(x[0], arange(4)); }});
  rows.push_back({"embedding", "permuted_ids", {table, ints({3, 4}, 0, 5)}, [](In x) {
                    return embedding(x[0], permute(x[1], {1, 0}));
                  }});
  rows.push_back({"embedding", "broadcast_ids", {table, ints({3, 1}, 0, 5)}, [](In x) {
                    return embedding(x[0], broadcast_to(x[1], {3, 4}));
                  }});
  rows.push_back({"embedding", "transposed_table", {real({3, 6}), ints({5}, 0, 5)}, [](In x) {
                    return embedding(permute(x[0], {1, 0}), x[1]);
                  }});
  rows.push_back({"embedding", "narrowed_table", {real({9, 5}), ints({5}, 0, 5)}, [](In x) {
                    return embedding(narrow(narrow(x[0], 0, 2, 6), 1, 1, 3), x[1]);
                  }});
  rows.push_back({"embedding", "padded_table", {real({4, 3}), ints({9}, 0, 5)}, [](In x) {
                    return embedding(pad(x[0], 0, 1, 1, PadMode::constant, 3), x[1]);
                  }});
  rows.push_back({"embedding", "flipped_table", {table, ints({9}, 0, 5)}, [](In x) {
                    return embedding(flip(x[0], {0, 1}), x[1]);
                  }});
  rows.push_back({"embedding", "broadcast_table", {real({1, 3}), ints({9}, 0, 5)}, [](In x) {
                    return embedding(broadcast_to(x[0], {6, 3}), x[1]);
                  }});
  rows.push_back({"embedding", "constant_table", {ints({9}, 0, 5)}, [](In x) {
                    return embedding(ones({6, 3}), x[0]);
                  }});
  rows.push_back({"embedding", "computed_table", {table, ints({9}, 0, 5)}, [](In x) {
                    return exp(embedding(sin(x[0]), x[1]));
                  }});
  rows.push_back({"embedding", "tied_head", {table, ints({4}, 0, 5)}, [](In x) {
                    return matmul(tanh(embedding(x[0], x[1])), swap_axes(x[0], 0, 1));
                  }});
}

void add_take(Samples& rows) {
  const auto along = [](int axis) {
    return [axis](In x) { return take_along_axis(x[0], x[1], axis); };
  };
  rows.push_back({"take_along_axis", "last_axis", {real({3, 5}), ints({3, 2}, 0, 4)}, along(-1)});
  rows.push_back({"take_along_axis", "first_axis", {real({5, 3}), ints({2, 3}, 0, 4)}, along(0)});
  rows.push_back(
      {"take_along_axis", "middle_axis", {real({2, 5, 3}), ints({2, 4, 3}, 0, 4)}, along(1)});
  rows.push_back({"take_along_axis",
                  "repeated",
                  {real({2, 3}), given({2, 7}, {1, 1, 0, 1, 2, 1, 1}, i32)},
                  along(1)});
  rows.push_back({"take_along_axis", "one_per_row", {real({4, 5}), ints({4, 1}, 0, 4)}, along(1)});
  rows.push_back(
      {"take_along_axis", "one_per_column", {real({5, 4}), ints({1, 4}, 0, 4)}, along(0)});
  rows.push_back(
      {"take_along_axis", "one_of_middle", {real({2, 5, 3}), ints({2, 1, 3}, 0, 4)}, along(1)});
  rows.push_back({"take_along_axis", "one_of_one", {real({4, 1}), ints({4, 1}, 0, 0)}, along(1)});
  rows.push_back({"take_along_axis", "vector", {real({9}), ints({20}, 0, 8)}, along(0)});
  rows.push_back({"take_along_axis", "x_broadcasts", {real({1, 5}), ints({3, 4}, 0, 4)}, along(1)});
  rows.push_back(
      {"take_along_axis", "ids_broadcast", {real({3, 5}), ints({1, 4}, 0, 4)}, along(1)});
  rows.push_back({"take_along_axis", "no_ids", {real({3, 5}), ints({3, 0}, 0, 4)}, along(1)});
  rows.push_back({"take_along_axis", "no_rows", {real({0, 5}), ints({0, 2}, 0, 4)}, along(1)});
  rows.push_back({"take_along_axis", "i32", {ints({3, 5}, -9, 9), ints({3, 2}, 0, 4)}, along(1)});
  rows.push_back({"take_along_axis", "bool", {bools({3, 5}), ints({3, 2}, 0, 4)}, along(1)});
  rows.push_back({"take_along_axis", "many", {real({5, 300}), ints({5, 300}, 0, 299)}, along(1)});
  rows.push_back(
      {"take_along_axis", "many_columns", {real({20, 290}), ints({30, 290}, 0, 19)}, along(0)});
  rows.push_back({"take_along_axis", "of_program", {real({4, 5}), ints({4, 3}, 0, 3)}, [](In x) {
                    return take_along_axis(exp(x[0]), x[1] + 1, 1) * 2.0f;
                  }});
  rows.push_back(
      {"take_along_axis", "of_views", {real({5, 4}), ints({3, 4}, 0, 4)}, [](In x) {
         return take_along_axis(permute(flip(x[0], 0), {1, 0}), permute(x[1], {1, 0}), 1);
       }});
  rows.push_back({"take_along_axis", "of_padded", {real({4, 3}), ints({4, 6}, 0, 4)}, [](In x) {
                    return take_along_axis(pad(x[0], 1, 1, 1, PadMode::constant, 2), x[1], 1);
                  }});
  rows.push_back({"take_along_axis",
                  "of_take",
                  {real({4, 5}), ints({4, 3}, 0, 4), ints({4, 6}, 0, 2)},
                  [](In x) { return take_along_axis(take_along_axis(x[0], x[1], 1), x[2], 1); }});
  rows.push_back({"take_along_axis", "sorted_best", {real({4, 5}).apart()}, [](In x) {
                    return take_along_axis(x[0], argmax(x[0], 1, true), 1);
                  }});

  const auto gathered = [](int axis) { return [axis](In x) { return gather(x[0], axis, x[1]); }; };
  rows.push_back({"gather", "last_axis", {real({3, 5}), ints({3, 2}, 0, 4)}, gathered(-1)});
  rows.push_back({"gather", "first_axis", {real({5, 3}), ints({7, 3}, 0, 4)}, gathered(0)});
  rows.push_back({"gather", "middle_axis", {real({2, 5, 3}), ints({2, 4, 3}, 0, 4)}, gathered(1)});
  rows.push_back({"gather", "fewer_rows", {real({4, 5, 3}), ints({2, 6, 2}, 0, 4)}, gathered(1)});
  rows.push_back({"gather",
                  "repeated",
                  {real({2, 3}), given({2, 7}, {2, 2, 0, 2, 0, 2, 2}, i32)},
                  gathered(1)});
  rows.push_back({"gather", "one_per_row", {real({4, 5}), ints({3, 1}, 0, 4)}, gathered(1)});
  rows.push_back({"gather", "empty", {real({4, 5}), ints({0, 2}, 0, 4)}, gathered(1)});
  rows.push_back({"gather", "i32", {ints({3, 5}, -9, 9), ints({3, 2}, 0, 4)}, gathered(1)});
}

void add_one_hot(Samples& rows) {
  const auto hot = [](std::int64_t depth) {
    return [depth](In x) { return one_hot(x[0], depth); };
  };
  rows.push_back({"one_hot", "vector", {ints({5}, 0, 3)}, hot(4)});
  rows.push_back({"one_hot", "matrix", {ints({2, 3}, 0, 6)}, hot(7)});
  rows.push_back({"one_hot", "rank_0", {ints({}, 0, 3)}, hot(4)});
  rows.push_back({"one_hot", "depth_1", {ints({5}, 0, 0)}, hot(1)});
  rows.push_back({"one_hot", "empty", {ints({0, 2}, 0, 3)}, hot(4)});
  rows.push_back({"one_hot", "many_blocks", {ints({60}, 0, 89)}, hot(90)});
  rows.push_back({"one_hot", "i32", {ints({5}, 0, 3)}, [](In x) { return one_hot(x[0], 4, i32); }});
  rows.push_back(
      {"one_hot", "bool", {ints({5}, 0, 3)}, [](In x) { return one_hot(x[0], 4, boolean); }});
  rows.push_back({"one_hot", "times_weights", {ints({6}, 0, 3), real({4, 2})}, [](In x) {
                    return matmul(one_hot(x[0], 4), x[1]);
                  }});
}

}  // namespace

Samples indexing_samples() {
  Samples rows;
  add_embedding(rows);
  add_take(rows);
  add_one_hot(rows);
  return rows;
}

}  // namespace tensorgrad::checks
