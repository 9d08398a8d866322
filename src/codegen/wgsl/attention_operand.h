// Shared by the attention shaders: how they read q, k, v and their gradients.
#pragma once

#include <string>

#include "codegen/wgsl/emitters.h"
#include "codegen/wgsl/operand.h"

namespace tensorgrad::wgsl {

// Inputs of the shaders of attention and of its gradient.
struct AttentionInput {
  const std::vector<ir::Load>& loads;
  const ir::AttentionCore& core;
  bool gradient;
};

// An operand [B, heads, positions, size]. Heads are indexed over all sequences of the batch.
struct AttentionOperand {
  const char* name = "";
  std::int64_t heads = 0, positions = 0, size = 0;
  ir::ScalarProgram program = {};

  // Declares NAME(head, t, d), and NAME_quad(head, t, d) for four consecutive elements, zero
  // outside the head. The code has no branches, so that loads are issued without waiting for each
  // other.
  void declare(Source& source, const AttentionInput& in) const;
};

struct AttentionOperands {
  AttentionOperand q, k, v, out, g;  // out and g: only in a gradient
  explicit AttentionOperands(const AttentionInput& in);
};

// Emits `let start`: the position of the first query. `uniform` makes it workgroup-uniform, as
// barriers require.
void find_start(Source& source, const AttentionInput& in, bool uniform);
// The key head that a query head reads.
std::string key_head(const ir::AttentionShape& shape, const std::string& head);
// Log-sum-exp of a query; only in gradients.
std::string log_sum(Source& source, const AttentionInput& in, const std::string& head,
                    const std::string& t);
// Stores a quad of columns, from `column` on, at `at`; skips columns that do not exist.
void store_columns(Source& source, const ir::Store& store, std::int64_t size, const std::string& at,
                   const std::string& column, const std::string& value);
// The address of row t of a head in a part of the result.
std::string packed_row(const ir::Store& store, const ir::PackedPart& part, std::int64_t heads,
                       std::int64_t positions, std::int64_t size, const std::string& head,
                       const std::string& t);

// Attention over short sequences with small heads: one thread per row, which reads the rows of the
// other side directly from memory.
std::vector<Piece> emit_short_attention(const Emitting& in, const AttentionInput& input);

}  // namespace tensorgrad::wgsl
