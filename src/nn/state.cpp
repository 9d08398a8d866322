// The state of generation: declared, fed, read back.
#include "tensorgrad/state.h"

#include "nn/memory.h"

namespace tensorgrad {

std::vector<InputSpec> with_state(const StateSpec& state, std::vector<InputSpec> inputs) {
  inputs.insert(inputs.end(), state.begin(), state.end());
  return inputs;
}

NamedArrays zero_state(const StateSpec& state) {
  NamedArrays memory;
  for (const InputSpec& spec : state) {
    const auto count = static_cast<std::size_t>(spec.shape.count());
    memory[spec.name] = spec.dtype == f32 ? Array(spec.shape, std::vector<float>(count))
                                          : Array(spec.shape, std::vector<std::int32_t>(count), spec.dtype);
  }
  return memory;
}

Feed feed_state(const NamedArrays& memory, Feed feed) {
  for (const auto& [name, array] : memory) feed.set(name, array);
  return feed;
}

NamedArrays state_after(const Result& result, const StateSpec& state) {
  NamedArrays memory;
  for (const InputSpec& spec : state) memory[spec.name] = result[spec.name];
  return memory;
}

Step::operator Outputs() const {
  std::vector<std::pair<std::string, Tensor>> items{{"logits", logits}};
  items.insert(items.end(), state.begin(), state.end());
  return items;
}

namespace nn {

std::string layer_state_name(std::size_t layer, std::string_view name) {
  return fmt::format("layers.{}.{}", layer, name);
}

void add_layer(StateSpec& state, std::size_t layer, const StateSpec& of_layer) {
  for (InputSpec spec : of_layer) {
    spec.name = layer_state_name(layer, spec.name);
    state.push_back(std::move(spec));
  }
}

void check_sizes(const char* model, std::int64_t vocab, std::int64_t layers) {
  if (vocab < 1 || layers < 1) user_error("{}: needs at least one token and one layer: vocab {}, layers {}", model, vocab, layers);
}

// The last of the T positions is looked up in a table as long as the cache, so that a full one ends the run.
Tensor with_room(const Tensor& position, std::int64_t T, std::int64_t capacity) {
  const int last = static_cast<int>(T) - 1;
  return squeeze(take_along_axis(arange(capacity), reshape(position + last, {1}), 0), 0) - last;
}

Tensor Memory::advance(std::int64_t T, std::int64_t capacity) {
  const Tensor before = read(kPosition);
  write(kPosition, before + static_cast<int>(T));
  return with_room(before, T, capacity);
}

Tensor token_ids(const ops::Call& call, const Operand& tokens) {
  const Tensor ids = call.tensor(tokens, i32);
  if (ids.rank() != 2) call.fail("", "needs tokens [B, T]: {}", call.describe("tokens", ids));
  return ids;
}

void scale_start(Linear& layer, float factor) {
  const Init& own = layer.W.init();
  layer.W = Param(layer.W.shape(), init::uniform(own.a * factor, own.b * factor));
}

}  // namespace nn

}  // namespace tensorgrad
