// The transformer language model, from attention to loss.
#include <cmath>

#include "nn/memory.h"
#include "ops/builder.h"
#include "support/fail.h"
#include "tensorgrad/nn.h"

namespace tensorgrad {

using ops::Call;

namespace {

// Width of the keys and values of all groups.
std::int64_t group_width(std::int64_t dim, int heads, int groups) {
  if (heads < 1 || dim % heads != 0) user_error("SelfAttention: {} heads do not divide the width {}", heads, dim);
  if (groups < 0 || (groups > 0 && heads % groups != 0))
    user_error("SelfAttention: {} groups do not divide {} heads", groups, heads);
  return dim / heads * (groups ? groups : heads);
}

}  // namespace

SelfAttention::SelfAttention(std::int64_t dim, int head_count, int group_count, std::optional<float> base,
                             bool biases)
    : q(dim, dim, biases),
      k(dim, group_width(dim, head_count, group_count), biases),
      v(dim, k.W.shape()[1], biases),
      o(dim, dim, biases),
      heads(head_count),
      groups(group_count ? group_count : head_count),
      rope_base(base) {
  for (Linear* projection : {&q, &k, &v, &o})
    if (projection->b) projection->b = Param(projection->b->shape(), init::zeros());
}

Tensor SelfAttention::operator()(Operand x) const {
  Call call("SelfAttention", x.site());
  // One after the other: the order of arguments is the compiler's choice, the graph must not be.
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

StateSpec SelfAttention::state(std::int64_t batch, std::int64_t capacity) const {
  if (capacity < 1) user_error("SelfAttention: the cache has room for at least one position: {}", capacity);
  const Shape cache{batch, groups, capacity, q.W.shape()[1] / heads};
  return {{"keys", cache}, {"values", cache}};
}

FeedForward::FeedForward(std::int64_t dim, std::int64_t hidden, Activation act)
    : up(dim, hidden), down(hidden, dim), activation(act) {}

Tensor FeedForward::operator()(Operand x) const {
  Call call("FeedForward", x.site());
  return down(activate(up(x), activation));
}

TransformerBlock::TransformerBlock(std::int64_t dim, int heads, Activation activation, float eps, int groups,
                                   std::optional<float> rope_base, bool biases)
    : ln1(dim, eps), attn(dim, heads, groups, rope_base, biases), ln2(dim, eps), mlp(dim, 4 * dim, activation) {}

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

Transformer::Transformer(const TransformerConfig& config)
    : tok_emb({config.vocab, config.dim}, init::normal(0.02f)), lnf(config.dim, config.eps), context(config.context) {
  nn::check_sizes("Transformer", config.vocab, config.layers);
  if (!config.rope_base) pos_emb.emplace(Shape{config.context, config.dim}, init::normal(0.02f));
  for (int i = 0; i < config.layers; ++i)
    layers.emplace_back(config.dim, config.heads, config.activation, config.eps, config.groups, config.rope_base,
                        config.biases);
}

Tensor Transformer::operator()(Operand tokens) const {
  Call call("Transformer", tokens.site());
  const Tensor ids = nn::token_ids(call, tokens);
  const std::int64_t T = ids.size(1);
  if (T > context) call.fail("", "{} tokens are longer than the context of {}", T, context);
  Tensor x = embedding(tok_emb, ids);  // [B, T, D]
  if (pos_emb) x = x + narrow(*pos_emb, 0, 0, T);
  for (const TransformerBlock& block : layers) x = block(x);
  return matmul(lnf(x), swap_axes(tok_emb, 0, 1));  // [B, T, V]
}

StateSpec Transformer::state(std::int64_t batch, std::int64_t capacity) const {
  if (capacity > context)
    user_error("Transformer: a cache of {} positions is longer than the context of {}", capacity, context);
  StateSpec state;
  for (std::size_t i = 0; i < layers.size(); ++i)
    nn::add_layer(state, i, layers[i].attn.state(batch, capacity == 0 ? context : capacity));
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
  const Tensor ce = cross_entropy(logits, targets, {.reduction = Reduction::none, .ignore_index = {}});
  const Tensor m = cast(call.tensor(mask), f32);
  return sum(ce * m) / sum(m);
}

}  // namespace tensorgrad
