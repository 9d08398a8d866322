// State-space models: the blocks of Mamba and Mamba-2, and language models made of them. The state
// has a fixed size, so the work and memory per token do not grow with the length of the text.
#pragma once

#include <cstdint>
#include <vector>

#include "tensorgrad/nn.h"
#include "tensorgrad/ops.h"
#include "tensorgrad/param.h"
#include "tensorgrad/reflect.h"
#include "tensorgrad/state.h"

namespace tensorgrad {

// The state after a position: the last K - 1 inputs of the convolution, [B, K-1, C], and h, which
// is [B, E, N] in Mamba and [B, H, N, P] in Mamba-2.
struct MambaState {
  Tensor window, h;
};

// Computes one position of selective_scan: u and delta [B, E], A_log [E, N], B and C [B, N], D [E].
// Returns y [B, E] and replaces h [B, E, N] by the next state.
Tensor selective_scan_step(Tensor& h, Operand u, Operand delta, Operand A_log, Operand B, Operand C,
                           Operand D, Discretisation discretisation = Discretisation::euler);
// Computes one position of ssd: x [B, H, P], dt [B, H], A_log and D [H], B and C [B, G, N]. Returns
// y [B, H, P] and replaces h [B, H, N, P] by the next state.
Tensor ssd_step(Tensor& h, Operand x, Operand dt, Operand A_log, Operand B, Operand C, Operand D);

// The config of a block or a model. A block ignores vocab, layers and embedding_std.
struct MambaConfig {
  std::int64_t vocab = 256;
  int layers = 4;
  std::int64_t dim = 128, state = 16, conv = 4, expand = 2;
  std::int64_t dt_rank = 0;  // 0: dim/16, rounded up
  Discretisation discretisation = Discretisation::euler;
  float eps = 1e-5f;
  float embedding_std = 0.05f;  // initial standard deviation of the token embedding of a model
};

// Initial values and weight decay of the parameters of a MambaBlock, by name.
struct MambaBlockOptions {
  ParamOptions norm = {}, in_proj = {}, conv_W = {}, conv_b = {}, x_proj = {}, dt_proj = {},
               dt_bias = {};
  ParamOptions A_log = {}, D = {}, out_proj = {};
};

// A Mamba block: x + out_proj(y silu(z)), where
// (u, z) = in_proj(norm(x)), u = silu(conv(u)), (dt, B, C) = x_proj(u),
// y = selective_scan(u, dt_proj(dt), A_log, B, C, D).
struct MambaBlock {
  RMSNorm norm;
  Linear in_proj;
  Conv1d conv;
  Linear x_proj, dt_proj;
  Param A_log, D;
  Linear out_proj;
  Discretisation discretisation;

  explicit MambaBlock(const MambaConfig& config, const MambaBlockOptions& options = {},
                      Site site = Site::here());
  Tensor operator()(Operand x) const;  // [B, T, D] -> [B, T, D]
  // Computes the positions that follow those in the state, and updates the state. Positions are
  // computed one after the other.
  Tensor step(Operand x, MambaState& state) const;
  StateSpec state(std::int64_t batch, Site site = Site::here()) const;
  // Multiplies the initial values of out_proj, which adds to the residual stream. Throws if they
  // are logarithms (init::log_of_uniform, init::step_size).
  void scale_residual_start(float factor);
  TENSORGRAD_FIELDS(norm, in_proj, conv, x_proj, dt_proj, A_log, D, out_proj)
};

// The config of a block or a model. A block ignores vocab, layers and embedding_std.
struct Mamba2Config {
  std::int64_t vocab = 256;
  int layers = 4;
  std::int64_t dim = 128, state = 64, conv = 4, expand = 2;
  std::int64_t head_size = 64;  // P; there are expand * dim / head_size heads
  int groups = 1;               // the heads of a group share B and C
  std::int64_t chunk = 64;      // SsdOptions::chunk
  float eps = 1e-5f;
  float embedding_std = 0.05f;  // initial standard deviation of the token embedding of a model
};

// Initial values and weight decay of the parameters of a Mamba2Block, by name.
struct Mamba2BlockOptions {
  ParamOptions norm = {}, in_proj = {}, conv_W = {}, conv_b = {}, dt_bias = {}, A_log = {}, D = {};
  ParamOptions out_norm = {}, out_proj = {};
};

// A Mamba-2 block: x + out_proj(out_norm(y silu(z))), where
// (z, xBC, dt) = in_proj(norm(x)), (x, B, C) = silu(conv(xBC)),
// y = ssd(x, dt + dt_bias, A_log, B, C, D).
struct Mamba2Block {
  RMSNorm norm;
  Linear in_proj;
  Conv1d conv;
  Param dt_bias, A_log, D;
  RMSNorm out_norm;
  Linear out_proj;
  std::int64_t state_size, head_size, groups, chunk;

  explicit Mamba2Block(const Mamba2Config& config, const Mamba2BlockOptions& options = {},
                       Site site = Site::here());
  Tensor operator()(Operand x) const;  // [B, T, D] -> [B, T, D]
  Tensor step(Operand x, MambaState& state) const;
  StateSpec state(std::int64_t batch, Site site = Site::here()) const;
  std::int64_t heads() const { return A_log.shape()[0]; }
  void scale_residual_start(float factor);
  TENSORGRAD_FIELDS(norm, in_proj, conv, dt_bias, A_log, D, out_norm, out_proj)
};

// A language model of Mamba blocks. Its output head is tied to the embedding.
struct Mamba {
  Param tok_emb;
  std::vector<MambaBlock> layers;
  RMSNorm norm;

  explicit Mamba(const MambaConfig& config, Site site = Site::here());
  Tensor operator()(Operand tokens) const;  // i32 [B, T] -> logits [B, T, V]
  // For generation, see tensorgrad/state.h. The state has a fixed size, so `capacity` is ignored.
  StateSpec state(std::int64_t batch, std::int64_t capacity = 0, Site site = Site::here()) const;
  Step step(Operand tokens, const Inputs& state) const;
  TENSORGRAD_FIELDS(tok_emb, layers, norm)
};

// A language model of Mamba-2 blocks. Its output head is tied to the embedding.
struct Mamba2 {
  Param tok_emb;
  std::vector<Mamba2Block> layers;
  RMSNorm norm;

  explicit Mamba2(const Mamba2Config& config, Site site = Site::here());
  Tensor operator()(Operand tokens) const;
  StateSpec state(std::int64_t batch, std::int64_t capacity = 0, Site site = Site::here()) const;
  Step step(Operand tokens, const Inputs& state) const;
  TENSORGRAD_FIELDS(tok_emb, layers, norm)
};

}  // namespace tensorgrad
