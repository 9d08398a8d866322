// State-space models: the blocks of Mamba and Mamba-2, and language models made of them. The state that a position
// leaves behind has a fixed size, so that a token costs the same work and memory however long the text is.
#pragma once

#include <cstdint>
#include <vector>

#include "tensorgrad/nn.h"
#include "tensorgrad/ops.h"
#include "tensorgrad/param.h"
#include "tensorgrad/reflect.h"
#include "tensorgrad/state.h"

namespace tensorgrad {

// What a position leaves behind: the last K - 1 inputs of the convolution, [B, K-1, C], and the state h: [B, E, N] in
// Mamba, [B, H, N, P] in Mamba-2.
struct MambaState {
  Tensor window, h;
};

// One position of selective_scan: u and delta [B, E], A_log [E, N], B and C [B, N], D [E]. Returns y [B, E]; h
// [B, E, N] becomes the state after it.
Tensor selective_scan_step(Tensor& h, Operand u, Operand delta, Operand A_log, Operand B, Operand C, Operand D,
                           Discretisation discretisation = Discretisation::euler);
// One position of ssd: x [B, H, P], dt [B, H], A_log and D [H], B and C [B, G, N]. Returns y [B, H, P]; h [B, H, N, P]
// becomes the state after it.
Tensor ssd_step(Tensor& h, Operand x, Operand dt, Operand A_log, Operand B, Operand C, Operand D);

// Of a block, and of a model: a block has no use for the first line.
struct MambaConfig {
  std::int64_t vocab = 256;
  int layers = 4;
  std::int64_t dim = 128, state = 16, conv = 4, expand = 2;
  std::int64_t dt_rank = 0;  // 0: dim/16, rounded up
  Discretisation discretisation = Discretisation::euler;
  float eps = 1e-5f;
};

// x + out_proj(y silu(z)): (u, z) = in_proj(norm(x)), u = silu(conv(u)), (dt, B, C) = x_proj(u),
// y = selective_scan(u, dt_proj(dt), A_log, B, C, D).
struct MambaBlock {
  RMSNorm norm;
  Linear in_proj;
  Conv1d conv;
  Linear x_proj, dt_proj;
  Param A_log, D;
  Linear out_proj;
  Discretisation discretisation;

  // `residual_scale` makes out_proj smaller at the start: 1/sqrt(layers) in a model.
  explicit MambaBlock(const MambaConfig& config, float residual_scale = 1);
  Tensor operator()(Operand x) const;  // [B, T, D] -> [B, T, D]
  // The same for positions that follow those the state has seen. Positions are taken one after the other.
  Tensor step(Operand x, MambaState& state) const;
  StateSpec state(std::int64_t batch) const;
  TENSORGRAD_FIELDS(norm, in_proj, conv, x_proj, dt_proj, A_log, D, out_proj)
};

// Of a block, and of a model: a block has no use for the first line.
struct Mamba2Config {
  std::int64_t vocab = 256;
  int layers = 4;
  std::int64_t dim = 128, state = 64, conv = 4, expand = 2;
  std::int64_t head_size = 64;  // P; expand * dim / head_size heads
  int groups = 1;               // heads of a group share B and C
  std::int64_t chunk = 64;      // of ssd
  float eps = 1e-5f;
};

// x + out_proj(out_norm(y silu(z))): (z, xBC, dt) = in_proj(norm(x)), (x, B, C) = silu(conv(xBC)),
// y = ssd(x, dt + dt_bias, A_log, B, C, D).
struct Mamba2Block {
  RMSNorm norm;
  Linear in_proj;
  Conv1d conv;
  Param dt_bias, A_log, D;
  RMSNorm out_norm;
  Linear out_proj;
  std::int64_t state_size, head_size, groups, chunk;

  explicit Mamba2Block(const Mamba2Config& config, float residual_scale = 1);
  Tensor operator()(Operand x) const;  // [B, T, D] -> [B, T, D]
  Tensor step(Operand x, MambaState& state) const;
  StateSpec state(std::int64_t batch) const;
  std::int64_t heads() const { return A_log.shape()[0]; }
  TENSORGRAD_FIELDS(norm, in_proj, conv, dt_bias, A_log, D, out_norm, out_proj)
};

// A language model of Mamba blocks, its output head tied to the embedding.
struct Mamba {
  Param tok_emb;
  std::vector<MambaBlock> layers;
  RMSNorm norm;

  explicit Mamba(const MambaConfig& config);
  Tensor operator()(Operand tokens) const;  // i32 [B, T] -> logits [B, T, V]
  // Generation (tensorgrad/state.h). There is no capacity to run out of; the number is not looked at.
  StateSpec state(std::int64_t batch, std::int64_t capacity = 0) const;
  Step step(Operand tokens, const Inputs& state) const;
  TENSORGRAD_FIELDS(tok_emb, layers, norm)
};

// The same of Mamba-2 blocks.
struct Mamba2 {
  Param tok_emb;
  std::vector<Mamba2Block> layers;
  RMSNorm norm;

  explicit Mamba2(const Mamba2Config& config);
  Tensor operator()(Operand tokens) const;
  StateSpec state(std::int64_t batch, std::int64_t capacity = 0) const;
  Step step(Operand tokens, const Inputs& state) const;
  TENSORGRAD_FIELDS(tok_emb, layers, norm)
};

}  // namespace tensorgrad
