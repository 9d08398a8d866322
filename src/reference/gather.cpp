// Primitives that read or add at indices given by ids. Sums are computed in the order of the ids.
#include "reference/evaluate.h"

namespace tensorgrad::reference {
namespace {

using ir::Node;

// table [V, D], ids [...] -> [..., D]: row ids[...] of the table
Value embedding(const Node& node, Inputs in) {
  const Value &table = *in[0], &ids = *in[1];
  expect_dtype(node, ids, DType::i32);
  expect(table.type.shape.rank() == 2, node, "the table is {}", table.type.shape.text());
  const std::int64_t V = table.type.shape[0], D = table.type.shape[1];
  Shape shape = ids.type.shape;
  shape.push_back(D);
  Value out = make_value(table.type.dtype, shape);
  for (std::int64_t i = 0; i < ids.type.shape.count(); ++i) {
    const std::int64_t row = index_in(V, ids.data[i]);
    for (std::int64_t d = 0; d < D; ++d) out.data[i * D + d] = table.data[row * D + d];
  }
  return out;
}

// values [..., D], ids [...] -> [rows, D]: row r is the sum of the values whose id is r
Value segment_sum(const Node& node, Inputs in) {
  const Value &values = *in[0], &ids = *in[1];
  expect_number(node, values);
  expect_dtype(node, ids, DType::i32);
  const std::int64_t rows = node.as<ir::RowsAttrs>().rows;
  expect(values.type.shape.rank() >= 1, node, "values of rank 0");
  Shape leading = values.type.shape;
  const std::int64_t D = leading.back();
  leading.erase(-1);
  expect(leading == ids.type.shape, node, "values {}, ids {}", values.type.shape.text(),
         ids.type.shape.text());
  Value out = make_value(values.type.dtype, {rows, D});
  for (std::int64_t i = 0; i < leading.count(); ++i) {
    const std::int64_t row = index_in(rows, ids.data[i]);
    for (std::int64_t d = 0; d < D; ++d) {
      double& sum = out.data[row * D + d];
      sum = add(values.type.dtype, sum, values.data[i * D + d]);
    }
  }
  return out;
}

// out[..., i, ...] = x[..., ids[..., i, ...], ...]
Value take_along_axis(const Node& node, Inputs in) {
  const Value &x = *in[0], &ids = *in[1];
  const int axis = node.as<ir::AxisAttrs>().axis;
  expect_dtype(node, ids, DType::i32);
  const auto [outer, size, inner] = around(node, x.type.shape, axis);
  const std::int64_t count = around(node, ids.type.shape, axis).size;
  Shape same = ids.type.shape;
  same[axis] = size;
  expect(same == x.type.shape, node, "x {}, ids {}", x.type.shape.text(), ids.type.shape.text());
  Value out = make_value(x.type.dtype, ids.type.shape);
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t i = 0; i < count; ++i)
      for (std::int64_t r = 0; r < inner; ++r) {
        const std::int64_t at = (o * count + i) * inner + r;
        out.data[at] = x.data[(o * size + index_in(size, ids.data[at])) * inner + r];
      }
  return out;
}

// out[..., ids[..., i, ...], ...] += values[..., i, ...]
Value scatter_add(const Node& node, Inputs in) {
  const Value &values = *in[0], &ids = *in[1];
  const auto& [axis, size] = node.as<ir::ScatterAttrs>();
  expect_number(node, values);
  expect_dtype(node, ids, DType::i32);
  expect_same_shapes(node, values, ids);
  const auto [outer, count, inner] = around(node, ids.type.shape, axis);
  Shape shape = ids.type.shape;
  shape[axis] = size;
  Value out = make_value(values.type.dtype, shape);
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t i = 0; i < count; ++i)
      for (std::int64_t r = 0; r < inner; ++r) {
        const std::int64_t at = (o * count + i) * inner + r;
        double& sum = out.data[(o * size + index_in(size, ids.data[at])) * inner + r];
        sum = add(values.type.dtype, sum, values.data[at]);
      }
  return out;
}

constexpr Evaluation kTable[] = {
    {"embedding", 2, embedding},
    {"segment_sum", 2, segment_sum},
    {"take_along_axis", 2, take_along_axis},
    {"scatter_add", 2, scatter_add},
};

}  // namespace

std::span<const Evaluation> gather_table() { return kTable; }

}  // namespace tensorgrad::reference
