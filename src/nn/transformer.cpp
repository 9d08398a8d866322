// The transformer language model, from attention to loss.
#include <cmath>
#include <utility>

#include "nn/memory.h"
#include "nn/sizes.h"
#include "ops/builder.h"
#include "tensorgrad/nn.h"

namespace tensorgrad {

using ops::Call;

namespace {

// Returns the width if it describes valid attention; throws otherwise.
std::int64_t checked_width(std::int64_t dim, int heads, const SelfAttentionOptions& options,
                           Site site) {
  const int groups = options.groups;
  nn::check_sizes("SelfAttention", {{"dim", dim}, {"heads", heads}}, site);
  if (dim % heads != 0)
    nn::refuse("SelfAttention", fmt::format("heads must divide dim: dim {}, heads {}", dim, heads),
               site);
  if (groups < 0 || (groups > 0 && heads % groups != 0))
    nn::refuse("SelfAttention",
               fmt::format("groups must divide heads: heads {}, groups {}", heads, groups), site);
  if (options.rope_base && dim / heads % 2 != 0)
    nn::refuse(
        "SelfAttention",
        fmt::format(
            "rotary positions need heads of an even size, dim / heads: dim {}, heads {} (size {})",
            dim, heads, dim / heads),
        site);
  return dim;
}

// Width of the keys, and of the values, of all groups together.
std::int64_t group_width(std::int64_t dim, int heads, const SelfAttentionOptions& options) {
  return dim / heads * (options.groups ? options.groups : heads);
}

LinearOptions projection(const SelfAttentionOptions& options) {
  LinearOptions linear{.bias = options.biases, .W = options.W, .b = options.b};
  if (!linear.b.init) linear.b.init = init::zeros();
  return linear;
}

}  // namespace

SelfAttention::SelfAttention(std::int64_t dim, int head_count, const SelfAttentionOptions& options,
                             Site site)
    : q(checked_width(dim, head_count, options, site), dim, projection(options), site),
      k(dim, group_width(dim, head_count, options), projection(options), site),
      v(dim, k.W.shape()[1], projection(options), site),
      o(dim, dim, projection(options), site),
      heads(head_count),
      groups(options.groups ? options.groups : head_count),
      rope_base(options.rope_base) {}

Tensor SelfAttention::operator()(Operand x) const {
  Call call("SelfAttention", x.site());
  // Separate statements, because the evaluation order of arguments is unspecified and the graph
  // must not depend on the compiler.
  Tensor query = split_heads(q(x), heads);
  Tensor key = split_heads(k(x), groups);
  const Tensor value = split_heads(v(x), groups);
  if (rope_base) query = rope(query, *rope_base), key = rope(key, *rope_base);
  return o(merge_heads(attention(query, key, value)));
}

Tensor SelfAttention::step(Operand x, KeyValues& cache, const Tensor& position) const {
  Call call("SelfAttention", x.site());
  Tensor query = split_heads(q(x), heads);
  Tensor key = split_heads(k(x), groups);
  const Tensor value = split_heads(v(x), groups);
  const Tensor first = nn::with_room(position, query.size(2), cache.keys.size(2));
  if (rope_base) query = rope(query, *rope_base, first), key = rope(key, *rope_base, first);
  cache.keys = replace_at(cache.keys, key, 2, first);
  cache.values = replace_at(cache.values, value, 2, first);
  return o(merge_heads(attention(query, cache.keys, cache.values, first)));
}

StateSpec SelfAttention::state(std::int64_t batch, std::int64_t capacity, Site site) const {
  nn::check_sizes("SelfAttention::state", {{"batch", batch}, {"capacity", capacity}}, site);
  const Shape cache{batch, groups, capacity, q.W.shape()[1] / heads};
  return {{"keys", cache}, {"values", cache}};
}

FeedForward::FeedForward(std::int64_t dim, std::int64_t hidden, const FeedForwardOptions& options,
                         Site site)
    : up(nn::checked("FeedForward", {{"dim", dim}, {"hidden", hidden}}, site), hidden, options.up,
         site),
      down(hidden, dim, options.down, site),
      activation(options.activation) {}

Tensor FeedForward::operator()(Operand x) const {
  Call call("FeedForward", x.site());
  return down(activate(up(x), activation));
}

TransformerBlock::TransformerBlock(std::int64_t dim, int heads,
                                   const TransformerBlockOptions& options, Site site)
    : ln1(nn::checked("TransformerBlock", {{"dim", dim}, {"heads", heads}}, site), options.norm,
          site),
      attn(dim, heads, options.attention, site),
      ln2(dim, options.norm, site),
      mlp(dim, options.hidden ? options.hidden : 4 * dim, options.mlp, site) {}

void TransformerBlock::scale_residual_start(float factor) {
  Param o = nn::scaled_start(attn.o.W, factor), down = nn::scaled_start(mlp.down.W, factor);
  attn.o.W = std::move(o), mlp.down.W = std::move(down);  // nothing throws here: both or none
}

Tensor TransformerBlock::operator()(Operand x) const {
  Call call("TransformerBlock", x.site());
  const Tensor h = x + attn(ln1(x));
  return h + mlp(ln2(h));
}

Tensor TransformerBlock::step(Operand x, KeyValues& cache, const Tensor& position) const {
  Call call("TransformerBlock", x.site());
  const Tensor h = x + attn.step(ln1(x), cache, position);
  return h + mlp(ln2(h));
}

Transformer::Transformer(const TransformerConfig& config, Site site)
    : tok_emb({nn::checked("Transformer",
                           {{"vocab", config.vocab},
                            {"dim", config.dim},
                            {"context", config.context},
                            {"layers", config.layers},
                            {"heads", config.heads}},
                           site),
               config.dim},
              init::normal(config.embedding_std)),
      lnf(config.dim, {.kind = config.norm, .eps = config.eps}, site),
      context(config.context) {
  if (!config.rope_base) pos_emb.emplace(Shape{config.context, config.dim}, init::normal(0.02f));
  // Each block adds two results to the residual stream. The scale keeps their sum as large as one
  // result.
  const float scale = 1 / std::sqrt(2 * static_cast<float>(config.layers));
  const TransformerBlockOptions options{.norm = {.kind = config.norm, .eps = config.eps},
                                        .attention = {.groups = config.groups,
                                                      .rope_base = config.rope_base,
                                                      .biases = config.biases},
                                        .mlp = {.activation = config.activation}};
  for (int i = 0; i < config.layers; ++i)
    layers.emplace_back(config.dim, config.heads, options, site).scale_residual_start(scale);
}

Tensor Transformer::operator()(Operand tokens) const {
  Call call("Transformer", tokens.site());
  const Tensor ids = nn::token_ids(call, tokens);
  const std::int64_t T = ids.size(1);
  if (T > context) call.fail("", "{} tokens exceed the context of {}", T, context);
  Tensor x = embedding(tok_emb, ids);  // [B, T, D]
  if (pos_emb) x = x + narrow(*pos_emb, 0, 0, T);
  for (const TransformerBlock& block : layers) x = block(x);
  return matmul(lnf(x), swap_axes(tok_emb, 0, 1));  // [B, T, V]
}

StateSpec Transformer::state(std::int64_t batch, std::int64_t capacity, Site site) const {
  if (capacity > context)
    nn::refuse("Transformer::state",
               fmt::format("the cache must not be longer than the context: capacity {}, context {}",
                           capacity, context),
               site);
  StateSpec state;
  for (std::size_t i = 0; i < layers.size(); ++i)
    nn::add_layer(state, i, layers[i].attn.state(batch, capacity == 0 ? context : capacity, site));
  state.push_back({nn::kPosition, {}, i32});
  return state;
}

Step Transformer::step(Operand tokens, const Inputs& state) const {
  Call call("Transformer", tokens.site());
  const Tensor ids = nn::token_ids(call, tokens);
  nn::Memory memory(state, tokens.site());
  const std::int64_t T = ids.size(1);
  const Tensor position = memory.advance(T, layers.empty() ? context : memory.cache_size(0));
  Tensor x = embedding(tok_emb, ids);
  if (pos_emb) x = x + embedding(*pos_emb, arange(T) + position);
  for (std::size_t i = 0; i < layers.size(); ++i)
    x = memory.with_cache(i, [&](KeyValues& cache) { return layers[i].step(x, cache, position); });
  return memory.finish(matmul(lnf(x), swap_axes(tok_emb, 0, 1)));
}

Tensor masked_cross_entropy(Operand logits, Operand targets, Operand mask) {
  Call call("masked_cross_entropy", logits.site());
  const Tensor ce =
      cross_entropy(logits, targets, {.reduction = Reduction::none, .ignore_index = {}});
  const Tensor m = cast(call.tensor(mask), f32);
  if (ce.shape().count() == 0)
    call.fail("a batch of at least 1", "there are no targets: {}",
              call.describe("targets", call.tensor(targets)));
  return sum(ce * m) / sum(m);
}

}  // namespace tensorgrad
