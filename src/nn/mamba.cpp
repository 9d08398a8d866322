// Mamba: the block, its single step, and the language model.
#include "tensorgrad/mamba.h"

#include <cmath>

#include "nn/memory.h"
#include "nn/sizes.h"
#include "ops/builder.h"
#include "support/integers.h"

namespace tensorgrad {

using nn::at_position;
using nn::Memory;
using ops::Call;

namespace {

// Returns the config if it describes a valid block; throws otherwise.
const MambaConfig& checked_config(const MambaConfig& config, Site site) {
  nn::check_sizes("MambaBlock",
                  {{"dim", config.dim},
                   {"state", config.state},
                   {"conv", config.conv},
                   {"expand", config.expand}},
                  site);
  if (config.dt_rank < 0)
    nn::refuse("MambaBlock", fmt::format("dt_rank must be at least 0: {}", config.dt_rank), site);
  return config;
}

std::int64_t inner(const MambaConfig& config) { return config.expand * config.dim; }
std::int64_t rank_of(const MambaConfig& config) {
  return config.dt_rank ? config.dt_rank : ceil_div(config.dim, 16);
}

// log(1), log(2), ..., log(N) in every row: rates of decay from slow to fast.
Init log_counts(std::int64_t rows, std::int64_t N) {
  std::vector<float> values;
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t n = 1; n <= N; ++n)
      values.push_back(static_cast<float>(std::log(static_cast<double>(n))));
  return init::literal(std::move(values));
}

}  // namespace

Tensor selective_scan_step(Tensor& h, Operand u, Operand delta, Operand A_log, Operand B, Operand C,
                           Operand D, Discretisation discretisation) {
  Call call("selective_scan_step", u.site());
  const Tensor x = call.tensor(u), d = call.tensor(delta), a = call.tensor(A_log),
               b = call.tensor(B), c = call.tensor(C), skip = call.tensor(D);
  const bool ranks = x.rank() == 2 && a.rank() == 2;
  if (!ranks || h.shape() != Shape{x.size(0), x.size(1), a.size(1)} || d.shape() != x.shape() ||
      a.size(0) != x.size(1) || b.shape() != Shape{x.size(0), a.size(1)} ||
      c.shape() != b.shape() || skip.shape() != Shape{x.size(1)})
    call.fail("",
              "needs h [B, E, N], u, delta [B, E], A_log [E, N], B, C [B, N], D [E]: {}, {}, {}, "
              "{}, {}, {}, {}",
              call.describe("h", h), call.describe("u", x), call.describe("delta", d),
              call.describe("A_log", a), call.describe("B", b), call.describe("C", c),
              call.describe("D", skip));
  const Tensor A = minimum(-exp(a), -1e-30f);  // same bound as the scan: never 0
  const Tensor dl = unsqueeze(softplus(d), 2), exponent = dl * A;  // [B, E, 1], [B, E, N]
  const Tensor gain = discretisation == Discretisation::zoh ? expm1(exponent) / A : dl;
  h = h * exp(exponent) + gain * unsqueeze(b, 1) * unsqueeze(x, 2);
  return sum(h * unsqueeze(c, 1), -1) + x * skip;
}

MambaBlock::MambaBlock(const MambaConfig& config, const MambaBlockOptions& options, Site site)
    : norm(checked_config(config, site).dim, {.eps = config.eps, .g = options.norm}, site),
      in_proj(config.dim, 2 * inner(config), {.bias = false, .W = options.in_proj}, site),
      conv(inner(config), config.conv, {.W = options.conv_W, .b = options.conv_b}, site),
      x_proj(inner(config), rank_of(config) + 2 * config.state,
             {.bias = false, .W = options.x_proj}, site),
      dt_proj(rank_of(config), inner(config),
              {.W = options.dt_proj,
               .b = {.init = options.dt_bias.init.value_or(nn::step_sizes()),
                     .decay = options.dt_bias.decay}},
              site),
      A_log({inner(config), config.state}, log_counts(inner(config), config.state),
            {.init = options.A_log.init, .decay = options.A_log.decay.value_or(false)}),
      D({inner(config)}, init::ones(), options.D),
      out_proj(inner(config), config.dim, {.bias = false, .W = options.out_proj}, site),
      discretisation(config.discretisation) {}

void MambaBlock::scale_residual_start(float factor) {
  out_proj.W = nn::scaled_start(out_proj.W, factor);
}

Tensor MambaBlock::operator()(Operand x) const {
  Call call("MambaBlock", x.site());
  const std::vector<Tensor> parts = split(in_proj(norm(x)), 2);  // u and z, [B, T, E]
  const Tensor u = silu(conv(parts[0]));
  const std::int64_t N = A_log.shape()[1];
  const std::vector<Tensor> of_u = split(x_proj(u), {dt_proj.W.shape()[0], N, N});  // dt, B and C
  const Tensor y = selective_scan(u, dt_proj(of_u[0]), A_log, of_u[1], of_u[2], D,
                                  {.discretisation = discretisation});
  return x + out_proj(y * silu(parts[1]));
}

Tensor MambaBlock::step(Operand x, MambaState& state) const {
  Call call("MambaBlock", x.site());
  const std::vector<Tensor> parts = split(in_proj(norm(x)), 2);
  const Tensor u = silu(conv.step(parts[0], state.window));
  const std::int64_t N = A_log.shape()[1];
  const std::vector<Tensor> of_u = split(x_proj(u), {dt_proj.W.shape()[0], N, N});
  const Tensor delta = dt_proj(of_u[0]);
  std::vector<Tensor> y;
  for (std::int64_t t = 0; t < u.size(1); ++t)
    y.push_back(selective_scan_step(state.h, at_position(u, t), at_position(delta, t), A_log,
                                    at_position(of_u[1], t), at_position(of_u[2], t), D,
                                    discretisation));
  return x + out_proj(stack(y, 1) * silu(parts[1]));
}

StateSpec MambaBlock::state(std::int64_t batch, Site site) const {
  nn::check_sizes("MambaBlock::state", {{"batch", batch}}, site);
  const std::int64_t E = D.shape()[0];
  return {{"window", {batch, conv.kernel() - 1, E}}, {"h", {batch, E, A_log.shape()[1]}}};
}

Mamba::Mamba(const MambaConfig& config, Site site)
    : tok_emb({nn::checked(
                   "Mamba",
                   {{"vocab", config.vocab}, {"layers", config.layers}, {"dim", config.dim}}, site),
               config.dim},
              init::normal(config.embedding_std)),
      norm(config.dim, config.eps, site) {
  const float scale = 1 / std::sqrt(static_cast<float>(config.layers));
  for (int i = 0; i < config.layers; ++i)
    layers.emplace_back(config, MambaBlockOptions{}, site).scale_residual_start(scale);
}

Tensor Mamba::operator()(Operand tokens) const { return nn::logits_of("Mamba", *this, tokens); }
StateSpec Mamba::state(std::int64_t batch, std::int64_t, Site site) const {
  return nn::state_of(*this, batch, site);
}
Step Mamba::step(Operand tokens, const Inputs& state) const {
  return nn::step_of("Mamba", *this, tokens, state);
}

}  // namespace tensorgrad
