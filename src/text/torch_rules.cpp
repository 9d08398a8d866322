// The tables of rules, and their application to a model. The parts of joined tensors have the same
// order there as here: q, k, v; x, z; dt, B, C; z, x, B, C, dt.
#include "text/torch_rules.h"
#include "support/fail.h"

#include <cstring>
#include <utility>

#include "support/text.h"
#include "tensorgrad/reflect.h"
#include "text/models.h"
#include "text/words.h"

namespace tensorgrad::text::torch {

namespace {

// # is the number of a layer.
constexpr Rule kGpt2[] = {
    {"tok_emb", "transformer.wte.weight"},
    {"pos_emb", "transformer.wpe.weight"},
    {"layers.#.ln1.g", "transformer.h.#.ln_1.weight"},
    {"layers.#.ln1.b", "transformer.h.#.ln_1.bias"},
    {"layers.#.attn.q.W layers.#.attn.k.W layers.#.attn.v.W", "transformer.h.#.attn.c_attn.weight",
     Form::matrix},
    {"layers.#.attn.q.b layers.#.attn.k.b layers.#.attn.v.b", "transformer.h.#.attn.c_attn.bias"},
    {"layers.#.attn.o.W", "transformer.h.#.attn.c_proj.weight", Form::matrix},
    {"layers.#.attn.o.b", "transformer.h.#.attn.c_proj.bias"},
    {"layers.#.ln2.g", "transformer.h.#.ln_2.weight"},
    {"layers.#.ln2.b", "transformer.h.#.ln_2.bias"},
    {"layers.#.mlp.up.W", "transformer.h.#.mlp.c_fc.weight", Form::matrix},
    {"layers.#.mlp.up.b", "transformer.h.#.mlp.c_fc.bias"},
    {"layers.#.mlp.down.W", "transformer.h.#.mlp.c_proj.weight", Form::matrix},
    {"layers.#.mlp.down.b", "transformer.h.#.mlp.c_proj.bias"},
    {"lnf.g", "transformer.ln_f.weight"},
    {"lnf.b", "transformer.ln_f.bias"},
};

constexpr Rule kMamba[] = {
    {"tok_emb", "backbone.embedding.weight"},
    {"layers.#.norm.g", "backbone.layers.#.norm.weight"},
    {"layers.#.in_proj.W", "backbone.layers.#.mixer.in_proj.weight", Form::matrix},
    {"layers.#.conv.W", "backbone.layers.#.mixer.conv1d.weight", Form::taps},
    {"layers.#.conv.b", "backbone.layers.#.mixer.conv1d.bias"},
    {"layers.#.x_proj.W", "backbone.layers.#.mixer.x_proj.weight", Form::matrix},
    {"layers.#.dt_proj.W", "backbone.layers.#.mixer.dt_proj.weight", Form::matrix},
    {"layers.#.dt_proj.b", "backbone.layers.#.mixer.dt_proj.bias"},
    {"layers.#.A_log", "backbone.layers.#.mixer.A_log"},
    {"layers.#.D", "backbone.layers.#.mixer.D"},
    {"layers.#.out_proj.W", "backbone.layers.#.mixer.out_proj.weight", Form::matrix},
    {"norm.g", "backbone.norm_f.weight"},
};

constexpr Rule kMamba2[] = {
    {"tok_emb", "backbone.embedding.weight"},
    {"layers.#.norm.g", "backbone.layers.#.norm.weight"},
    {"layers.#.in_proj.W", "backbone.layers.#.mixer.in_proj.weight", Form::matrix},
    {"layers.#.conv.W", "backbone.layers.#.mixer.conv1d.weight", Form::taps},
    {"layers.#.conv.b", "backbone.layers.#.mixer.conv1d.bias"},
    {"layers.#.dt_bias", "backbone.layers.#.mixer.dt_bias"},
    {"layers.#.A_log", "backbone.layers.#.mixer.A_log"},
    {"layers.#.D", "backbone.layers.#.mixer.D"},
    {"layers.#.out_norm.g", "backbone.layers.#.mixer.norm.weight"},
    {"layers.#.out_proj.W", "backbone.layers.#.mixer.out_proj.weight", Form::matrix},
    {"norm.g", "backbone.norm_f.weight"},
};

constexpr Kind kKinds[] = {
    {"gpt", kGpt2, "transformer.h.0.attn.c_attn.weight", false},
    {"mamba", kMamba, "backbone.layers.0.mixer.x_proj.weight", true},
    {"mamba2", kMamba2, "backbone.layers.0.mixer.dt_bias", true},
};

Shape shape_of_theirs(const std::vector<Shape>& parts, Form form, bool out_in) {
  Shape shape = parts[0];
  for (std::size_t i = 1; i < parts.size(); ++i) shape[-1] += parts[i].back();
  if (form == Form::matrix && out_in) std::swap(shape[0], shape[1]);
  if (form == Form::taps) shape.insert(1, 1);
  return shape;
}

}  // namespace

std::span<const Kind> kinds() { return kKinds; }

std::string for_layer(std::string name, int layer) {
  for (std::size_t at; (at = name.find('#')) != name.npos;)
    name.replace(at, 1, std::to_string(layer));
  return name;
}

Shapes parameters_of(const TextModelConfig& config) {
  return with_model(config, [](const auto& model) {
    Shapes shapes;
    walk_model<Param>(model,
                      [&](const std::string& name, const Param& p) { shapes[name] = p.shape(); });
    return shapes;
  });
}

// PyTorch's programs support one kind of GPT and one of Mamba. They would compute something else
// with the weights of other kinds.
void check_is_usual(const TextModelConfig& config) {
  if (config.kind == "gpt" &&
      (config.positions != Positions::learned || config.norm != NormKind::layer))
    user_error(
        "model config: GPT-2 has learned positions and layer norms: these are {} and {}\n"
        "  hint: train with --positions learned --norm layer",
        word_of(config.positions), word_of(config.norm));
  if (config.kind == "mamba" && config.discretisation != Discretisation::euler)
    user_error("model config: PyTorch's Mamba has the discretisation euler: this is {}",
               word_of(config.discretisation));
  if (config.kind == "mamba2" && config.state_groups > 1)
    user_error(
        "model config: PyTorch's Mamba-2 has a norm for each of its groups, this one has a single "
        "norm for {} groups",
        config.state_groups);
}

std::vector<Place> places_of(const Kind& kind, TextModelConfig config, bool out_in) {
  check_is_usual(config);
  config.biases = config.kind == "gpt";
  const Shapes shapes = parameters_of(config);
  std::vector<Place> places;
  for (const Rule& rule : kind.rules) {
    const bool in_layers = std::strchr(rule.theirs, '#') != nullptr;
    for (int layer = 0; layer < (in_layers ? config.layers : 1); ++layer) {
      Place place{.ours = split(for_layer(rule.ours, layer), ' '),
                  .theirs = for_layer(rule.theirs, layer),
                  .form = rule.form};
      for (const std::string& name : place.ours) place.shapes.push_back(shapes.at(name));
      place.shape = shape_of_theirs(place.shapes, rule.form, out_in);
      places.push_back(std::move(place));
    }
  }
  return places;
}

}  // namespace tensorgrad::text::torch
