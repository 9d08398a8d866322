// What the language models share: tokens in, logits out, and the state between their steps.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ops/builder.h"
#include "tensorgrad/mamba.h"
#include "tensorgrad/nn.h"
#include "tensorgrad/state.h"

namespace tensorgrad::nn {

// Number of tokens seen so far. Part of the state of every model with attention.
inline constexpr const char* kPosition = "position";

// "layers.2.keys"
std::string layer_state_name(std::size_t layer, std::string_view name);
// Adds one layer's state to the model's state.
void add_layer(StateSpec& state, std::size_t layer, const StateSpec& of_layer);

// The state of one step: read by name, written under the same names.
class Memory {
 public:
  Memory(const Inputs& in, Site site) : in_(in), site_(site) {}

  Tensor read(const std::string& name) const { return in_[{name, site_}]; }
  void write(const std::string& name, const Tensor& value) { after_.emplace_back(name, value); }

  // Calls step(state of that layer) and writes back the state that `step` leaves.
  template <class F>
  Tensor with_state(std::size_t layer, F&& step) {
    MambaState state{read(layer_state_name(layer, "window")), read(layer_state_name(layer, "h"))};
    const Tensor out = step(state);
    write(layer_state_name(layer, "window"), state.window);
    write(layer_state_name(layer, "h"), state.h);
    return out;
  }
  template <class F>
  Tensor with_cache(std::size_t layer, F&& step) {
    KeyValues cache{read(layer_state_name(layer, "keys")), read(layer_state_name(layer, "values"))};
    const Tensor out = step(cache);
    write(layer_state_name(layer, "keys"), cache.keys);
    write(layer_state_name(layer, "values"), cache.values);
    return out;
  }
  // Adds T to the position and returns the position before these T tokens. The run fails if a cache
  // of `capacity` positions has no room for them.
  Tensor advance(std::int64_t T, std::int64_t capacity);
  std::int64_t cache_size(std::size_t layer) const {
    return read(layer_state_name(layer, "keys")).size(-2);
  }

  Step finish(const Tensor& logits) { return {logits, std::move(after_)}; }

 private:
  const Inputs& in_;
  Site site_;
  std::vector<std::pair<std::string, Tensor>> after_;
};

// Returns the tokens as i32 [B, T]; fails the call if they are not.
Tensor token_ids(const ops::Call& call, const Operand& tokens);

// Returns `position`, the position before T tokens. The run fails if a cache of `capacity`
// positions has no room for them.
Tensor with_room(const Tensor& position, std::int64_t T, std::int64_t capacity);

// Selects position t of [B, T, ...].
inline Tensor at_position(const Tensor& x, std::int64_t t) {
  return squeeze(narrow(x, 1, t, 1), 1);
}

// Initial values for the bias of a step size: steps from 0.001 to 0.1.
inline Init step_sizes() { return init::step_size(1e-3f, 1e-1f); }

// The parameter with its initial values multiplied by `factor`. Throws a UserError if the
// initialiser produces logarithms, which a factor cannot scale.
Param scaled_start(const Param& param, float factor);

// ---- Models made of one kind of Mamba block. M has tok_emb, layers and norm; its output head is
// tied to the embedding.

template <class M>
Tensor logits_of(const char* name, const M& model, const Operand& tokens) {
  ops::Call call(name, tokens.site());
  Tensor x = embedding(model.tok_emb, token_ids(call, tokens));  // [B, T, D]
  for (const auto& block : model.layers) x = block(x);
  return matmul(model.norm(x), swap_axes(model.tok_emb, 0, 1));  // [B, T, V]
}

template <class M>
StateSpec state_of(const M& model, std::int64_t batch, Site site) {
  StateSpec state;
  for (std::size_t i = 0; i < model.layers.size(); ++i)
    add_layer(state, i, model.layers[i].state(batch, site));
  return state;
}

template <class M>
Step step_of(const char* name, const M& model, const Operand& tokens, const Inputs& state) {
  ops::Call call(name, tokens.site());
  Memory memory(state, tokens.site());
  Tensor x = embedding(model.tok_emb, token_ids(call, tokens));
  for (std::size_t i = 0; i < model.layers.size(); ++i)
    x = memory.with_state(i, [&](MambaState& own) { return model.layers[i].step(x, own); });
  return memory.finish(matmul(model.norm(x), swap_axes(model.tok_emb, 0, 1)));
}

}  // namespace tensorgrad::nn
