// Mamba-2: the block, its single step, and the language model.
#include <cmath>

#include "nn/memory.h"
#include "nn/sizes.h"
#include "ops/builder.h"
#include "tensorgrad/mamba.h"

namespace tensorgrad {

using nn::at_position;
using nn::Memory;
using ops::Call;

namespace {

constexpr float kSlowest = 1, kFastest = 16;  // initial decay rates

// Returns the config if it describes a valid block; throws otherwise.
const Mamba2Config& checked_config(const Mamba2Config& config, Site site) {
  nn::check_sizes("Mamba2Block",
                  {{"dim", config.dim},
                   {"state", config.state},
                   {"conv", config.conv},
                   {"expand", config.expand},
                   {"head_size", config.head_size},
                   {"groups", config.groups}},
                  site);
  const std::int64_t inner = config.expand * config.dim, heads = inner / config.head_size;
  if (inner % config.head_size != 0)
    nn::refuse("Mamba2Block",
               fmt::format("head_size must divide expand * dim: expand {}, dim {}, head_size {}",
                           config.expand, config.dim, config.head_size),
               site);
  if (heads % config.groups != 0)
    nn::refuse(
        "Mamba2Block",
        fmt::format("groups must divide the heads, expand * dim / head_size: {} heads, groups {}",
                    heads, config.groups),
        site);
  return config;
}

std::int64_t inner(const Mamba2Config& config) { return config.expand * config.dim; }
std::int64_t head_count(const Mamba2Config& config) { return inner(config) / config.head_size; }
std::int64_t conv_channels(const Mamba2Config& config) {
  return inner(config) + 2 * config.groups * config.state;
}

struct Projected {
  Tensor z, xBC, dt;  // [B, T, E], [B, T, E + 2GN], [B, T, H]
};

Projected project(const Mamba2Block& block, const Operand& x) {
  const std::int64_t E = block.out_proj.W.shape()[0], channels = block.conv.W.shape()[0];
  const std::vector<Tensor> parts =
      split(block.in_proj(block.norm(x)), {E, channels, block.heads()});
  return {parts[0], parts[1], parts[2] + block.dt_bias};
}

// Splits [B, T, E + 2GN] into x [B, T, H, P], B and C [B, T, G, N].
std::vector<Tensor> split_channels(const Mamba2Block& block, const Tensor& u) {
  const std::int64_t B = u.size(0), T = u.size(1), G = block.groups, N = block.state_size;
  std::vector<Tensor> parts = split(u, {block.heads() * block.head_size, G * N, G * N});
  parts[0] = reshape(parts[0], {B, T, block.heads(), block.head_size});
  for (const std::size_t i : {1, 2}) parts[i] = reshape(parts[i], {B, T, G, N});
  return parts;
}

Tensor finish(const Mamba2Block& block, const Operand& x, const Tensor& y, const Tensor& z) {
  return x + block.out_proj(block.out_norm(reshape(y, z.shape()) * silu(z)));
}

}  // namespace

Tensor ssd_step(Tensor& h, Operand x, Operand dt, Operand A_log, Operand B, Operand C, Operand D) {
  Call call("ssd_step", x.site());
  const Tensor u = call.tensor(x), d = call.tensor(dt), decay = call.tensor(A_log),
               b = call.tensor(B), c = call.tensor(C), skip = call.tensor(D);
  if (u.rank() != 3 || b.rank() != 3 || c.shape() != b.shape() || b.size(1) == 0 ||
      u.size(1) % b.size(1) != 0 ||
      h.shape() != Shape{u.size(0), u.size(1), b.size(2), u.size(2)} ||
      d.shape() != Shape{u.size(0), u.size(1)} || decay.shape() != Shape{u.size(1)} ||
      skip.shape() != decay.shape())
    call.fail("",
              "needs h [B, H, N, P], x [B, H, P], dt [B, H], A_log, D [H], B, C [B, G, N], where G "
              "divides H: "
              "{}, {}, {}, {}, {}, {}, {}",
              call.describe("h", h), call.describe("x", u), call.describe("dt", d),
              call.describe("A_log", decay), call.describe("B", b), call.describe("C", c),
              call.describe("D", skip));
  const std::int64_t batch = u.size(0), H = u.size(1), P = u.size(2), G = b.size(1), N = b.size(2),
                     R = H / G;
  const Tensor dl = softplus(d);  // [B, H]
  const Tensor a = reshape(exp(dl * -exp(decay)), {batch, H, 1, 1});
  const Tensor input = reshape(u * unsqueeze(dl, 2), {batch, G, R, 1, P});
  const Tensor added = reshape(input * reshape(b, {batch, G, 1, N, 1}), {batch, H, N, P});
  h = h * a + added;
  const Tensor seen = reshape(h, {batch, G, R, N, P}) * reshape(c, {batch, G, 1, N, 1});
  return reshape(sum(seen, 3), {batch, H, P}) + u * unsqueeze(skip, 1);
}

Mamba2Block::Mamba2Block(const Mamba2Config& config, const Mamba2BlockOptions& options, Site site)
    : norm(checked_config(config, site).dim, {.eps = config.eps, .g = options.norm}, site),
      in_proj(config.dim, inner(config) + conv_channels(config) + head_count(config),
              {.bias = false, .W = options.in_proj}, site),
      conv(conv_channels(config), config.conv, {.W = options.conv_W, .b = options.conv_b}, site),
      dt_bias({head_count(config)}, nn::step_sizes(), options.dt_bias),
      A_log({head_count(config)}, init::log_of_uniform(kSlowest, kFastest), options.A_log),
      D({head_count(config)}, init::ones(), options.D),
      out_norm(inner(config), {.eps = config.eps, .g = options.out_norm}, site),
      out_proj(inner(config), config.dim, {.bias = false, .W = options.out_proj}, site),
      state_size(config.state),
      head_size(config.head_size),
      groups(config.groups),
      chunk(config.chunk) {}

void Mamba2Block::scale_residual_start(float factor) {
  out_proj.W = nn::scaled_start(out_proj.W, factor);
}

Tensor Mamba2Block::operator()(Operand x) const {
  Call call("Mamba2Block", x.site());
  const Projected p = project(*this, x);
  const std::vector<Tensor> parts = split_channels(*this, silu(conv(p.xBC)));
  return finish(*this, x, ssd(parts[0], p.dt, A_log, parts[1], parts[2], D, {.chunk = chunk}), p.z);
}

Tensor Mamba2Block::step(Operand x, MambaState& state) const {
  Call call("Mamba2Block", x.site());
  const Projected p = project(*this, x);
  const std::vector<Tensor> parts = split_channels(*this, silu(conv.step(p.xBC, state.window)));
  std::vector<Tensor> y;
  for (std::int64_t t = 0; t < p.z.size(1); ++t)
    y.push_back(ssd_step(state.h, at_position(parts[0], t), at_position(p.dt, t), A_log,
                         at_position(parts[1], t), at_position(parts[2], t), D));
  return finish(*this, x, stack(y, 1), p.z);
}

StateSpec Mamba2Block::state(std::int64_t batch, Site site) const {
  nn::check_sizes("Mamba2Block::state", {{"batch", batch}}, site);
  return {{"window", {batch, conv.kernel() - 1, conv.W.shape()[0]}},
          {"h", {batch, heads(), state_size, head_size}}};
}

Mamba2::Mamba2(const Mamba2Config& config, Site site)
    : tok_emb({nn::checked(
                   "Mamba2",
                   {{"vocab", config.vocab}, {"layers", config.layers}, {"dim", config.dim}}, site),
               config.dim},
              init::normal(config.embedding_std)),
      norm(config.dim, config.eps, site) {
  const float scale = 1 / std::sqrt(static_cast<float>(config.layers));
  for (int i = 0; i < config.layers; ++i)
    layers.emplace_back(config, Mamba2BlockOptions{}, site).scale_residual_start(scale);
}

Tensor Mamba2::operator()(Operand tokens) const { return nn::logits_of("Mamba2", *this, tokens); }
StateSpec Mamba2::state(std::int64_t batch, std::int64_t, Site site) const {
  return nn::state_of(*this, batch, site);
}
Step Mamba2::step(Operand tokens, const Inputs& state) const {
  return nn::step_of("Mamba2", *this, tokens, state);
}

}  // namespace tensorgrad
