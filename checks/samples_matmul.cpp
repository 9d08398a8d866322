// Matmuls: vectors, batches, views, and sizes around the CPU's tiles (96 x 192 results from panels
// of 6 rows, 256 of K at a time).
#include "checks/samples.h"

namespace tensorgrad::checks {
namespace {

Tensor product(In x) { return matmul(x[0], x[1]); }

}  // namespace

Samples matmul_samples() {
  Samples rows;
  const auto add = [&](const char* variant, const Shape& a, const Shape& b) {
    rows.push_back({"matmul", variant, {real(a, -1, 1), real(b, -1, 1)}, product});
  };
  add("plain", {2, 3}, {3, 4});
  add("one_by_one", {1, 1}, {1, 1});
  add("row_by_column", {1, 7}, {7, 1});
  add("column_by_row", {7, 1}, {1, 7});
  add("vectors", {5}, {5});
  add("vector_matrix", {5}, {5, 3});
  add("matrix_vector", {3, 5}, {5});
  add("vector_batch", {5}, {2, 5, 3});
  add("batch_vector", {2, 3, 5}, {5});
  add("batch", {3, 2, 4}, {3, 4, 5});
  add("two_batch_axes", {2, 3, 2, 4}, {2, 3, 4, 2});
  add("batch_by_matrix", {3, 2, 4}, {4, 5});
  add("matrix_by_batch", {2, 4}, {3, 4, 5});
  add("batch_of_size_1_left", {1, 2, 4}, {3, 4, 5});
  add("batch_of_size_1_right", {3, 2, 4}, {1, 4, 5});
  add("batches_of_size_1", {1, 2, 4}, {1, 4, 5});
  add("batches_cross", {2, 1, 3, 4}, {1, 5, 4, 2});
  add("batches_mixed", {2, 1, 3, 2, 4}, {5, 3, 4, 2});
  add("inner_size_0", {3, 0}, {0, 4});
  add("no_rows", {0, 3}, {3, 4});
  add("no_columns", {2, 3}, {3, 0});
  add("empty_batch", {0, 2, 3}, {0, 3, 4});
  add("empty_batch_broadcast", {0, 2, 3}, {3, 4});
  add("panel_5_rows", {5, 9}, {9, 15});
  add("panel_6_rows", {6, 9}, {9, 16});
  add("panel_7_rows", {7, 9}, {9, 17});
  add("columns_31", {13, 8}, {8, 31});
  add("columns_33", {13, 8}, {8, 33});
  add("inner_256", {4, 256}, {256, 5});
  add("inner_257", {4, 257}, {257, 5});
  add("inner_600", {3, 600}, {600, 3});
  add("tile_exact", {96, 64}, {64, 192});
  add("tile_and_one", {97, 257}, {257, 193});
  add("two_tiles_down", {192, 8}, {8, 12});
  add("two_tiles_across", {7, 8}, {8, 385});
  add("batch_of_tiles", {2, 97, 10}, {2, 10, 193});

  const auto view = [&](const char* variant, const Shape& a, const Shape& b,
                        std::function<Tensor(const Tensors&)> function) {
    rows.push_back({"matmul", variant, {real(a, -1, 1), real(b, -1, 1)}, std::move(function)});
  };
  view("transposed_left", {4, 3}, {4, 5}, [](In x) { return matmul(swap_axes(x[0], 0, 1), x[1]); });
  view("transposed_right", {3, 4}, {5, 4},
       [](In x) { return matmul(x[0], swap_axes(x[1], 0, 1)); });
  view("transposed_both", {40, 100}, {30, 40},
       [](In x) { return matmul(swap_axes(x[0], 0, 1), swap_axes(x[1], 0, 1)); });
  view("transposed_tiles", {257, 97}, {193, 257},
       [](In x) { return matmul(swap_axes(x[0], 0, 1), swap_axes(x[1], 0, 1)); });
  view("of_narrowed", {6, 9}, {8, 7},
       [](In x) { return matmul(narrow(x[0], 1, 2, 5), narrow(narrow(x[1], 0, 1, 5), 1, 1, 4)); });
  view("of_flipped", {4, 5}, {5, 3}, [](In x) {
    return matmul(flip(x[0], 1), flip(x[1], {0, 1}));
  });
  view("of_padded", {4, 3}, {5, 3}, [](In x) {
    return matmul(pad(x[0], 1, 1, 1, PadMode::constant, 0.5f), pad(x[1], 1, 2, 0));
  });
  view("of_broadcast", {1, 5}, {5, 1}, [](In x) {
    return matmul(broadcast_to(x[0], {4, 5}), broadcast_to(x[1], {5, 3}));
  });
  view("of_windows", {12}, {3, 4}, [](In x) { return matmul(windows(x[0], 0, 3, 2, 2), x[1]); });
  view("of_regrouped", {4, 6}, {6, 8}, [](In x) {
    return matmul(reshape(permute(x[0], {1, 0}), {3, 8}), reshape(x[1], {8, 6}));
  });
  view("of_batch_permuted", {5, 2, 4, 3}, {2, 5, 4, 6}, [](In x) {
    return matmul(permute(x[0], {1, 0, 3, 2}), x[1]);
  });
  view("of_constant", {4, 3}, {3, 5}, [](In x) {
    return matmul(x[0], ones({3, 2})) * sum(matmul(full({1, 3}, 0.5), x[1]));
  });
  view("of_programs", {4, 3}, {3, 5},
       [](In x) { return relu(matmul(tanh(x[0]), x[1] * 2.0f) + 1.25f) + sum(x[1], 0); });
  view("by_its_transpose", {4, 7}, {1},
       [](In x) { return matmul(x[0], swap_axes(x[0], 0, 1)) * x[1]; });
  view("of_matmul", {4, 4}, {4, 4}, [](In x) { return matmul(matmul(x[0], x[1]), x[0]); });
  // One weight for many rows: the gradient of the weight is one matmul over all of them.
  view("linear_layer", {7, 50, 20}, {20, 30}, [](In x) { return matmul(x[0], x[1]); });
  // Long enough in k to be split into parts, with and without edges. In the gradients, k is the
  // number of rows.
  add("long_k", {20, 1030}, {1030, 18});
  add("long_k_even", {32, 1024}, {1024, 64});
  view("tall_layer", {2100, 12}, {12, 16},
       [](In x) { return tanh(matmul(x[0], x[1]) + sum(x[1], 0)); });
  view("tall_layers", {1100, 8}, {8, 12},
       [](In x) { return matmul(x[0], x[1]) * matmul(x[0], x[1] * x[1]); });
  return rows;
}

}  // namespace tensorgrad::checks
