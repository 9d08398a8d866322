// The state of generation: declaration, input and readback.
#include "tensorgrad/state.h"

#include "nn/memory.h"
#include "support/fail.h"
#include "support/integers.h"

namespace tensorgrad {

std::vector<InputSpec> with_state(const StateSpec& state, std::vector<InputSpec> inputs) {
  inputs.insert(inputs.end(), state.begin(), state.end());
  return inputs;
}

NamedArrays zero_state(const StateSpec& state) {
  NamedArrays memory;
  for (const InputSpec& spec : state) {
    const auto count = usize(spec.shape.count());
    memory[spec.name] = spec.dtype == f32
                            ? Array(spec.shape, std::vector<float>(count))
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

// Looks up the last of the T positions in a table as long as the cache. If the cache is full, the
// id is out of range and the run fails.
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

Param scaled_start(const Param& param, float factor) {
  const auto refuse_kind = [](std::string_view kind) {
    user_error(
        "scale_residual_start: init::{} produces logarithms, which a factor cannot scale\n  hint: "
        "another init for this projection",
        kind);
  };
  Init own = param.init();
  switch (own.kind) {
    case Init::Kind::zeros:
      break;
    case Init::Kind::ones:
      own = init::constant(factor);
      break;
    case Init::Kind::constant:
    case Init::Kind::normal:
    case Init::Kind::uniform:
      own.a *= factor, own.b *= factor;
      break;
    case Init::Kind::literal:
      for (float& value : own.values) value *= factor;
      break;
    case Init::Kind::function:
      own.function = [whole = own.function, factor](std::int64_t i) { return whole(i) * factor; };
      break;
    case Init::Kind::log_of_uniform:
      refuse_kind("log_of_uniform");
      break;
    case Init::Kind::step_size:
      refuse_kind("step_size");
      break;
  }
  return Param(param.shape(), own).decay(param.decays()).freeze(param.frozen());
}

}  // namespace nn

}  // namespace tensorgrad
