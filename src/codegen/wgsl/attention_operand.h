// What the shaders of attention share: how they read q, k, v and their gradients.
#pragma once

#include <string>

#include "codegen/wgsl/emitters.h"
#include "codegen/wgsl/operand.h"

namespace tensorgrad::wgsl {

// What the shaders of attention and of its gradient read.
struct AttentionInput {
  const std::vector<ir::Load>& loads;
  const ir::AttentionCore& core;
  bool gradient;
};

// An operand [B, heads, positions, size], read by the number of its head among those of all
// sequences.
struct AttentionOperand {
  const char* name = "";
  std::int64_t heads = 0, positions = 0, size = 0;
  ir::ScalarProgram program = {};

  // NAME(head, t, d), and NAME_quad(head, t, d) for four neighbours, zero outside the head. Nothing
  // branches: a thread that waits for one load before it asks for the next waits too long.
  void declare(Source& source, const AttentionInput& in) const;
};

struct AttentionOperands {
  AttentionOperand q, k, v, out, g;  // the last two only of a gradient
  explicit AttentionOperands(const AttentionInput& in);
};

// `let start`: the position of the first query. `uniform`: the same for all threads, as barriers
// want it.
void find_start(Source& source, const AttentionInput& in, bool uniform);
// The head of keys that a head of queries reads.
std::string key_head(const ir::AttentionShape& shape, const std::string& head);
// Log-sum-exp of a query; gradients only.
std::string log_sum(Source& source, const AttentionInput& in, const std::string& head,
                    const std::string& t);
// Stores a quad of columns from `column` on at `at`, as far as they exist.
void store_columns(Source& source, const ir::Store& store, std::int64_t size, const std::string& at,
                   const std::string& column, const std::string& value);
// Where row t of a head lies in a part of the result.
std::string packed_row(const ir::Store& store, const ir::PackedPart& part, std::int64_t heads,
                       std::int64_t positions, std::int64_t size, const std::string& head,
                       const std::string& t);

// Short sequences of small heads: a thread has a row, and the others' rows come straight from
// memory.
std::vector<Piece> emit_short_attention(const Emitting& in, const AttentionInput& input);

}  // namespace tensorgrad::wgsl
