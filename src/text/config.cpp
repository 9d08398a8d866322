// Configs of language models: conversion to and from JSON, and to the configs of the models.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "support/fail.h"
#include "support/json.h"
#include "support/json_text.h"
#include "support/text.h"
#include "tensorgrad/reflect.h"
#include "text/models.h"
#include "text/words.h"

namespace tensorgrad {

namespace {

// ---- JSON

// Returns what `get` returns; prefixes its errors with "model config".
template <class F>
auto in_config(F get) {
  try {
    return get();
  } catch (const UserError& error) {
    user_error("model config: {}", error.what());
  }
}

// A config is one flat object.
JsonDocument parse_object(std::string_view text) {
  JsonDocument document = in_config([&] { return parse_json(text, 1); });
  if (!document.root().is_object())
    user_error("model config: not a JSON object: {}", shown(document.root()));
  return document;
}

[[noreturn]] void refuse_value(std::string_view name, const char* needed, const Json& value) {
  user_error("model config: '{}' must be {}: {}", name, needed, shown(value));
}

template <class T>
void read_field(std::string_view name, T& field, const Json& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    if (!value.is_text()) refuse_value(name, "a string", value);
    field = value.text();
  } else if constexpr (std::is_same_v<T, bool>) {
    if (!value.is_boolean()) refuse_value(name, "true or false", value);
    field = value.boolean();
  } else if constexpr (std::is_same_v<T, float>) {
    if (!value.is_number()) refuse_value(name, "a number", value);
    const double number = value.number();
    if (std::abs(number) > static_cast<double>(std::numeric_limits<float>::max()))
      refuse_value(name, "in range", value);
    field = static_cast<float>(number);
  } else if constexpr (std::is_enum_v<T>) {
    if (!value.is_text()) refuse_value(name, "a string", value);
    field = in_config([&] { return from_word<T>(value.text()); });
  } else {
    if (!value.is_integer()) refuse_value(name, "an integer", value);
    const std::optional<std::int64_t> integer = value.integer();
    if (!integer || !std::in_range<T>(*integer)) refuse_value(name, "in range", value);
    field = static_cast<T>(*integer);
  }
}

// ---- words

Activation activation_of(const TextModelConfig& config) {
  return in_config([&] { return from_word<Activation>(config.activation); });
}

// With fewer than three layers, the last one is attention.
std::string every_third_attends(int layers) {
  std::vector<std::string> words;
  for (int i = 1; i <= layers; ++i)
    words.push_back(i % 3 == 0 || (layers < 3 && i == layers) ? "attention" : "mamba");
  return join(words, " ");
}

}  // namespace

std::string TextModelConfig::to_json() const {
  JsonText json;
  json.begin('{');
  for_each_field(*this, [&](std::string_view name, const auto& field) {
    if constexpr (std::is_enum_v<std::remove_cvref_t<decltype(field)>>)
      json.field(name, in_config([&] { return word_of(field); }));
    else
      json.field(name, field);
  });
  return json.end('}').take();
}

TextModelConfig TextModelConfig::from_json(std::string_view text) {
  const JsonDocument document = parse_object(text);
  const Json& json = document.root();
  TextModelConfig config;
  std::vector<std::string> names;
  for_each_field(config, [&](std::string_view name, auto& field) {
    names.emplace_back(name);
    if (const Json* found = json.find(name)) read_field(name, field, *found);
  });
  for (const auto& [name, value] : json.members())
    if (std::find(names.begin(), names.end(), name) == names.end())
      user_error("model config: unknown name '{}'\n  hint: {}", name, name_hint(name, names));
  text::check(config);
  TextModelConfig small = config;
  small.layers = std::min(config.layers, 3);  // three layers include each kind
  text::with_model(small, [](const auto&) {});
  return config;
}

namespace text {

void check(const TextModelConfig& config) {
  const auto words = static_cast<std::int64_t>(split_words(config.schedule).size());
  struct Size {
    const char* name;
    std::int64_t value, least, most;
  };
  constexpr std::int64_t kIds = std::numeric_limits<std::int32_t>::max(), kWide = 1 << 20,
                         kMany = 1 << 12;
  const Size sizes[] = {
      {"vocab", config.vocab, 1, kIds},          {"dim", config.dim, 1, kWide},
      {"context", config.context, 1, kIds},      {"layers", config.layers, 1, kMany},
      {"heads", config.heads, 1, kWide},         {"groups", config.groups, 0, kWide},
      {"state", config.state, 0, kWide},         {"dt_rank", config.dt_rank, 0, kWide},
      {"conv", config.conv, 1, kWide},           {"expand", config.expand, 1, kMany},
      {"head_size", config.head_size, 0, kWide}, {"schedule's length", words, 0, kMany},
      {"chunk", config.chunk, 1, kWide},         {"state_groups", config.state_groups, 1, kWide}};
  for (const Size& size : sizes)
    if (size.value < size.least || size.value > size.most)
      user_error("model config: {} must be between {} and {}: {}", size.name, size.least, size.most,
                 size.value);
  // Mamba stores the initial values of its states.
  constexpr double kMostStates = 1 << 28;
  const std::int64_t layers = words ? words : config.layers, state = mamba2_config(config).state;
  const double states = static_cast<double>(layers) * static_cast<double>(config.expand) *
                        static_cast<double>(config.dim) * static_cast<double>(state);
  if (config.kind != "gpt" && states > kMostStates)
    user_error("model config: more than {} states: {} layers of {} x {} x {} (expand, dim, state)",
               kMostStates, layers, config.expand, config.dim, state);
  const std::pair<const char*, float> positive[] = {{"eps", config.eps},
                                                    {"rope_base", config.rope_base},
                                                    {"embedding_std", config.embedding_std}};
  for (const auto& [name, value] : positive)
    if (!(value > 0) || !std::isfinite(value))
      user_error("model config: {} must be a positive number: {}", name, value);
  if (config.biases && config.kind != "gpt")
    user_error("model config: biases are only for models of kind gpt: the kind is {}", config.kind);
  if (!config.schedule.empty() && config.kind != "hybrid")
    user_error("model config: a schedule is only for models of kind hybrid: the kind is {}",
               config.kind);
}

void refuse_kind(const std::string& kind) {
  user_error("model config: unknown kind '{}'\n  hint: gpt, mamba, mamba2 or hybrid", kind);
}

TransformerConfig gpt_config(const TextModelConfig& config) {
  return {.vocab = config.vocab,
          .dim = config.dim,
          .context = config.context,
          .layers = config.layers,
          .heads = config.heads,
          .activation = activation_of(config),
          .eps = config.eps,
          .groups = config.groups,
          .rope_base = config.positions == Positions::rotary ? std::optional(config.rope_base)
                                                             : std::nullopt,
          .biases = config.biases,
          .norm = config.norm,
          .embedding_std = config.embedding_std};
}

MambaConfig mamba_config(const TextModelConfig& config) {
  return {.vocab = config.vocab,
          .layers = config.layers,
          .dim = config.dim,
          .state = config.state ? config.state : MambaConfig{}.state,
          .conv = config.conv,
          .expand = config.expand,
          .dt_rank = config.dt_rank,
          .discretisation = config.discretisation,
          .eps = config.eps,
          .embedding_std = config.embedding_std};
}

// The largest head size up to 64 that divides the inner width.
static std::int64_t head_size_of(std::int64_t inner) {
  std::int64_t size = std::min<std::int64_t>(64, std::max<std::int64_t>(inner, 1));
  while (inner % size != 0) --size;
  return size;
}

Mamba2Config mamba2_config(const TextModelConfig& config) {
  return {.vocab = config.vocab,
          .layers = config.layers,
          .dim = config.dim,
          .state = config.state ? config.state : Mamba2Config{}.state,
          .conv = config.conv,
          .expand = config.expand,
          .head_size =
              config.head_size > 0 ? config.head_size : head_size_of(config.expand * config.dim),
          .groups = config.state_groups,
          .chunk = config.chunk,
          .eps = config.eps,
          .embedding_std = config.embedding_std};
}

LanguageModelConfig hybrid_config(const TextModelConfig& config) {
  return {.vocab = config.vocab,
          .dim = config.dim,
          .layers = config.schedule.empty() ? every_third_attends(config.layers) : config.schedule,
          .mamba = mamba_config(config),
          .mamba2 = mamba2_config(config),
          .heads = config.heads,
          .groups = config.groups,
          .activation = activation_of(config),
          .rope_base = config.rope_base,
          .eps = config.eps,
          .norm = config.norm,
          .embedding_std = config.embedding_std};
}

}  // namespace text

}  // namespace tensorgrad
