// The transformer language model, from attention to loss.
#include <cmath>

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

SelfAttention::SelfAttention(std::int64_t dim, int head_count, int group_count)
    : q(dim, dim, false),
      k(dim, group_width(dim, head_count, group_count), false),
      v(dim, k.W.shape()[1], false),
      o(dim, dim, false),
      heads(head_count),
      groups(group_count ? group_count : head_count) {}

Tensor SelfAttention::operator()(Operand x) const {
  Call call("SelfAttention", x.site());
  // One after the other: the order of arguments is the compiler's choice, the graph must not be.
  const Tensor query = split_heads(q(x), heads);
  const Tensor key = split_heads(k(x), groups), value = split_heads(v(x), groups);
  return o(merge_heads(attention(query, key, value)));
}

FeedForward::FeedForward(std::int64_t dim, std::int64_t hidden, Activation act)
    : up(dim, hidden), down(hidden, dim), activation(act) {}

Tensor FeedForward::operator()(Operand x) const {
  Call call("FeedForward", x.site());
  return down(activate(up(x), activation));
}

TransformerBlock::TransformerBlock(std::int64_t dim, int heads, Activation activation, float eps)
    : ln1(dim, eps), attn(dim, heads), ln2(dim, eps), mlp(dim, 4 * dim, activation) {}

Tensor TransformerBlock::operator()(Operand x) const {
  Call call("TransformerBlock", x.site());
  const Tensor h = x + attn(ln1(x));
  return h + mlp(ln2(h));
}

Transformer::Transformer(const TransformerConfig& config)
    : tok_emb({config.vocab, config.dim}, init::normal(0.02f)),
      pos_emb({config.context, config.dim}, init::normal(0.02f)),
      lnf(config.dim, config.eps) {
  for (int i = 0; i < config.layers; ++i)
    layers.emplace_back(config.dim, config.heads, config.activation, config.eps);
}

Tensor Transformer::operator()(Operand tokens) const {
  Call call("Transformer", tokens.site());
  const Tensor ids = call.tensor(tokens, i32);
  if (ids.rank() != 2) call.fail("", "needs tokens [B, T]: {}", call.describe("tokens", ids));
  const std::int64_t T = ids.size(1);
  if (T > pos_emb.shape()[0])
    call.fail("", "{} tokens are longer than the context of {}", T, pos_emb.shape()[0]);
  Tensor x = embedding(tok_emb, ids) + narrow(pos_emb, 0, 0, T);  // [B, T, D]
  for (const TransformerBlock& block : layers) x = block(x);
  return matmul(lnf(x), swap_axes(tok_emb, 0, 1));  // [B, T, V]
}

Tensor masked_cross_entropy(Operand logits, Operand targets, Operand mask) {
  Call call("masked_cross_entropy", logits.site());
  const Tensor ce = cross_entropy(logits, targets, {.reduction = Reduction::none, .ignore_index = {}});
  const Tensor m = cast(call.tensor(mask), f32);
  return sum(ce * m) / sum(m);
}

}  // namespace tensorgrad
