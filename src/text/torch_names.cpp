// Weights under the names of PyTorch programs: writing, reading, and the sizes they imply. The
// rules are in torch_rules. Also reads what nanoGPT writes: matrices of nn.Linear, models without
// biases.
#include <algorithm>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/fail.h"
#include "support/integers.h"
#include "support/text.h"
#include "text/models.h"
#include "text/torch_rules.h"

namespace tensorgrad {

using text::torch::for_each_number;
using text::torch::for_layer;
using text::torch::kHead;
using text::torch::Kind;
using text::torch::kinds;
using text::torch::parameters_of;
using text::torch::Place;
using text::torch::places_of;
using text::torch::Shapes;

namespace {

const Kind& kind_of(const char* call, const TextModelConfig& config) {
  text::check(config);
  for (const Kind& kind : kinds()) {
    if (config.kind != kind.name) continue;
    if (config.kind == "gpt" && config.groups != 0 && config.groups != config.heads)
      user_error("{}: GPT-2 has keys and values for each head: {} groups for {} heads", call,
                 config.groups, config.heads);
    return kind;
  }
  user_error(
      "{}: PyTorch programs have no names for a model of kind '{}'\n  hint: gpt, mamba or mamba2",
      call, config.kind);
}

std::string described(const Array& array) { return name(array.dtype()) + array.shape().text(); }

Array array_of(const Shape& shape) { return {shape, std::vector<float>(usize(shape.count()))}; }

// ---- their names as the rules have them

struct Given {
  std::string name;  // the name in the file
  const Array* array;
};
using Tensors = std::map<std::string, Given>;

// GPT-2's causal mask, which is not a weight.
bool is_buffer(std::string_view name) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias");
}

// Normalises a name: removes the prefixes of wrappers, writes GPT-2's names in full, and names
// Mamba's embedding as state-spaces does, not as transformers does.
std::string usual_name(std::string name) {
  // Prefixes occur in any order and number: DDP of a compiled model, or the other way round.
  for (bool more = true; more;) {
    more = false;
    for (const char* prefix : {"module.", "_orig_mod."})
      if (name.starts_with(prefix)) name.erase(0, std::strlen(prefix)), more = true;
  }
  for (const char* prefix : {"wte.", "wpe.", "h.", "ln_f."})
    if (name.starts_with(prefix)) return "transformer." + name;
  return name == "backbone.embeddings.weight" ? "backbone.embedding.weight" : name;
}

Tensors usual_names(const char* call, const NamedArrays& weights) {
  Tensors tensors;
  for (const auto& [name, array] : weights) {
    if (is_buffer(name)) continue;
    const auto [at, added] = tensors.insert({usual_name(name), {name, &array}});
    if (!added) user_error("{}: '{}' and '{}' are the same tensor", call, at->second.name, name);
  }
  return tensors;
}

// A few of the names, for an error.
std::string first_names(const Tensors& tensors) {
  std::vector<std::string> names;
  for (const auto& [usual, tensor] : tensors) names.push_back(tensor.name);
  constexpr std::size_t kFew = 4;
  if (names.size() > kFew) names.resize(kFew), names.push_back("...");
  return names.empty() ? "nothing" : join(names, ", ");
}

// ---- reading

// nn.Linear stores [out, in], GPT-2's own layer [in, out]. One matrix that is not square decides
// for all.
bool has_linear_layout(const Tensors& tensors) {
  const auto found = tensors.find(kinds()[0].telling);
  if (found == tensors.end()) return false;
  const Shape& shape = found->second.array->shape();
  return shape.rank() == 2 && shape[0] == 3 * shape[1];
}

class Reader {
 public:
  Reader(const TextModelConfig& config, const NamedArrays& weights)
      : config_(config),
        kind_(kind_of(kCall, config)),
        tensors_(usual_names(kCall, weights)),
        out_in_(kind_.out_in || has_linear_layout(tensors_)),
        own_(parameters_of(config)) {
    for (const auto& [name, tensor] : tensors_)
      has_biases_ = has_biases_ || name.ends_with(".bias");
  }

  NamedArrays read() {
    for (const Place& place : places_of(kind_, config_, out_in_)) {
      const auto found = tensors_.find(place.theirs);
      if (found == tensors_.end()) {
        leave_out(place);
        continue;
      }
      take(place, found->second);
      left_.erase(place.theirs);
    }
    check_head();
    for (const auto& [usual, tensor] : left_) refuse_unknown(tensor.name);
    return std::move(parameters_);
  }

 private:
  static constexpr const char* kCall = "from_torch_names";

  void take(const Place& place, const Given& tensor) {
    const Array& array = *tensor.array;
    if (array.dtype() != f32 || array.shape() != place.shape)
      user_error(
          "{}: '{}' is {}, the model needs f32{} for {}\n  hint: config_of_torch_weights(weights) "
          "returns the sizes",
          kCall, tensor.name, described(array), place.shape.text(), join(place.ours, ", "));
    const std::span<const float> numbers = array.floats();
    if (!own_.count(place.ours[0])) {  // a bias that our model lacks
      if (std::any_of(numbers.begin(), numbers.end(), [](float x) { return x != 0; }))
        user_error("{}: '{}' is not 0, and the model has no {}\n  hint: biases = true", kCall,
                   tensor.name, join(place.ours, ", "));
      return;
    }
    std::vector<std::vector<float>> parts;
    for (const Shape& shape : place.shapes) parts.emplace_back(usize(shape.count()));
    for_each_number(place, out_in_, [&](std::size_t part, std::size_t ours, std::size_t theirs) {
      parts[part][ours] = numbers[theirs];
    });
    for (std::size_t i = 0; i < parts.size(); ++i)
      parameters_[place.ours[i]] = Array(place.shapes[i], std::move(parts[i]));
  }

  // nanoGPT models may lack biases, also in their norms: then ours are 0.
  void leave_out(const Place& place) {
    if (!own_.count(place.ours[0])) return;
    const bool zero = config_.kind == "gpt" && !has_biases_ && place.theirs.ends_with(".bias");
    if (!zero || config_.biases)
      user_error("{}: '{}' is missing: the model needs f32{} for {}\n  hint: {}", kCall,
                 place.theirs, place.shape.text(), join(place.ours, ", "),
                 zero ? "no tensor is a bias: biases = false?"
                      : "config_of_torch_weights(weights) returns the sizes");
    for (std::size_t i = 0; i < place.ours.size(); ++i)
      parameters_[place.ours[i]] = array_of(place.shapes[i]);
  }

  void check_head() {
    const auto head = tensors_.find(kHead);
    if (head == tensors_.end()) return;
    const Array &own = *head->second.array, &tied = *tensors_.at(kind_.rules[0].theirs).array;
    const bool equal =
        own.dtype() == f32 && own.shape() == tied.shape() &&
        std::memcmp(own.floats().data(), tied.floats().data(), own.floats().size_bytes()) == 0;
    if (!equal)
      user_error("{}: '{}' differs from '{}': the head must be tied to the embedding", kCall,
                 head->second.name, tensors_.at(kind_.rules[0].theirs).name);
    left_.erase(kHead);
  }

  [[noreturn]] void refuse_unknown(const std::string& name) const {
    std::vector<std::string> known;
    for (const Place& place : places_of(kind_, config_, out_in_)) known.push_back(place.theirs);
    user_error("{}: a model of kind {} with layers = {} has no tensor '{}'\n  hint: {}", kCall,
               config_.kind, config_.layers, name, name_hint(name, known));
  }

  const TextModelConfig& config_;
  const Kind& kind_;
  const Tensors tensors_;
  const bool out_in_;
  const Shapes own_;
  bool has_biases_ = false;
  Tensors left_ = tensors_;  // not yet taken
  NamedArrays parameters_;
};

// ---- sizes

class Sizes {
 public:
  explicit Sizes(const NamedArrays& weights) : tensors_(usual_names(kCall, weights)) {}

  TextModelConfig read() const {
    TextModelConfig config;
    const Kind* kind = nullptr;
    for (const Kind& each : kinds())
      if (has(each.telling)) kind = &each;
    if (!kind)
      user_error(
          "{}: not weights of GPT-2, Mamba or Mamba-2: no tensor is called '{}', '{}' or '{}'\n  "
          "hint: "
          "there is {}",
          kCall, kinds()[0].telling, kinds()[1].telling, kinds()[2].telling, first_names(tensors_));
    config.kind = kind->name;
    const Shape& embedding = shape(kind->rules[0].theirs, 2);
    config.vocab = embedding[0], config.dim = embedding[1];
    const char* in_every_layer =
        config.kind == "gpt" ? "transformer.h.#.ln_1.weight" : "backbone.layers.#.norm.weight";
    config.layers = 0;
    while (has(for_layer(in_every_layer, config.layers))) ++config.layers;
    config.kind == "gpt" ? read_gpt2(config) : read_mamba(config);
    text::check(config);
    return config;
  }

 private:
  static constexpr const char* kCall = "config_of_torch_weights";

  void read_gpt2(TextModelConfig& config) const {
    config.context = shape("transformer.wpe.weight", 2)[0];
    config.biases = has("transformer.h.0.attn.c_attn.bias");
    // The activation of the two programs: nanoGPT has nn.Linear and the exact gelu, GPT-2 its own
    // layer and tanh.
    config.activation = has_linear_layout(tensors_) ? "gelu" : "gelu_tanh";
    config.heads = config.dim % 64 == 0 ? static_cast<int>(config.dim / 64) : 1;
  }

  void read_mamba(TextModelConfig& config) const {
    const std::string mixer = "backbone.layers.0.mixer.";
    const std::int64_t inner = shape(mixer + "out_proj.weight", 2)[1];
    const Shape& conv = shape(mixer + "conv1d.weight", 3);
    if (inner % config.dim != 0)
      user_error("{}: the inner width {} is not a multiple of the width {}", kCall, inner,
                 config.dim);
    config.expand = inner / config.dim;
    config.conv = conv[2];
    if (config.kind == "mamba") {
      config.state = shape(mixer + "A_log", 2)[1];
      config.dt_rank = shape(mixer + "dt_proj.weight", 2)[1];
    } else {
      config.state = (conv[0] - inner) / 2;  // B and C of one group
      config.head_size = inner / shape(mixer + "A_log", 1)[0];
    }
  }

  bool has(const std::string& name) const { return tensors_.count(name) > 0; }

  const Shape& shape(const std::string& name, int rank) const {
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) user_error("{}: '{}' is missing", kCall, name);
    const Array& array = *found->second.array;
    if (array.shape().rank() != rank || array.count() == 0)
      user_error("{}: '{}' is {}, it should have rank {} and not be empty", kCall,
                 found->second.name, described(array), rank);
    return array.shape();
  }

  const Tensors tensors_;
};

}  // namespace

NamedArrays to_torch_names(const TextModelConfig& config, const NamedArrays& parameters) {
  constexpr const char* kCall = "to_torch_names";
  const Kind& kind = kind_of(kCall, config);
  const Shapes own = parameters_of(config);
  for (const auto& [name, shape] : own) {
    const auto found = parameters.find(name);
    if (found == parameters.end())
      user_error("{}: '{}' is missing: the model has f32{}", kCall, name, shape.text());
    if (found->second.dtype() != f32 || found->second.shape() != shape)
      user_error("{}: '{}' is {}, the model has f32{}", kCall, name, described(found->second),
                 shape.text());
  }
  for (const auto& [name, array] : parameters)
    if (!own.count(name))
      user_error("{}: the model has no parameter '{}'{}", kCall, name,
                 name.find(".attn.") != name.npos && name.ends_with(".b")
                     ? "\n  hint: biases = true"
                     : "");
  NamedArrays weights;
  for (const Place& place : places_of(kind, config, kind.out_in)) {
    Array& theirs = weights[place.theirs] = array_of(place.shape);
    if (!own.count(place.ours[0])) continue;  // GPT-2 always has biases: write 0
    std::vector<std::span<const float>> parts;
    for (const std::string& name : place.ours) parts.push_back(parameters.at(name).floats());
    const std::span<float> numbers = theirs.floats();
    for_each_number(place, kind.out_in, [&](std::size_t part, std::size_t at, std::size_t there) {
      numbers[there] = parts[part][at];
    });
  }
  weights[kHead] = weights.at(kind.rules[0].theirs);
  return weights;
}

NamedArrays from_torch_names(const TextModelConfig& config, const NamedArrays& weights) {
  return Reader(config, weights).read();
}

TextModelConfig config_of_torch_weights(const NamedArrays& weights) {
  return Sizes(weights).read();
}

}  // namespace tensorgrad
