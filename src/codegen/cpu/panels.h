// Packs the operands of a matmul for the micro-kernel, compiled for every SIMD target.
#pragma once

#include <cstdint>

namespace tensorgrad::cpu {

// Panels of NR columns, one after the other, row by row; columns past the edge are zero. NR is a
// multiple of panel_lanes().
// Element (i, j) of the matrix [rows, columns] is from[i * row + j]. The panels are `depth` rows
// long, of which these are the first.
void pack_panels(const float* from, std::int64_t row, std::int64_t rows, std::int64_t columns,
                 std::int64_t NR, std::int64_t depth, float* to);
// The same for a transposed matrix, whose element (i, j) is from[i + j * column].
void pack_turned_panels(const float* from, std::int64_t column, std::int64_t depth,
                        std::int64_t columns, std::int64_t NR, float* to);

// Panels of kPanelRows columns. Columns past the edge are not written: nothing reads them.
void pack_left(const float* from, std::int64_t row, std::int64_t depth, std::int64_t columns,
               float* to);

// sum[j] += the sum of from[i * row + j] over i. Whole vectors are read and written: memory and
// `sum` extend to a multiple of panel_lanes(). Short runs of rows are summed in float, in a fixed
// order that differs from row order.
void add_column_sums(const float* from, std::int64_t row, std::int64_t depth, std::int64_t columns,
                     double* sum);

// c[j] (+)= the sum of a[k] * from[k + j * column] over k: a row vector times contiguous columns.
// `first` overwrites c.
void add_dots(const float* a, const float* from, std::int64_t column, std::int64_t K,
              std::int64_t columns, float* c, bool first);

// to[i] = parts[i] + parts[stride + i] + ..., in this order; `to` may be `parts`.
void add_parts(const float* parts, std::int64_t stride, std::int64_t count, std::int64_t n,
               float* to);

}  // namespace tensorgrad::cpu
