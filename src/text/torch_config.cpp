// config.json beside PyTorch weights. It holds sizes that the weights do not show (heads, groups,
// activation, epsilon), and sizes that they do, which must agree. Two programs write such files:
// transformers, of Hugging Face, for GPT-2, Mamba and Mamba-2; and mamba_ssm, of state-spaces, for
// the latter two. A missing name has the default of its program. Settings that our models do not
// support are refused.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/fail.h"
#include "support/integers.h"
#include "support/json.h"
#include "support/text.h"
#include "tensorgrad/text_model.h"
#include "text/models.h"

namespace tensorgrad {

namespace {

// Python writes Infinity and NaN, which JSON lacks. Turns them into strings.
std::string without_python_numbers(std::string_view text) {
  std::string out;
  bool in_text = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::string_view word;
    for (const std::string_view each : {"-Infinity", "Infinity", "NaN"})
      if (!in_text && text.substr(at).starts_with(each)) word = each;
    if (!word.empty()) {
      out += fmt::format("\"{}\"", word);
      at += word.size() - 1;
      continue;
    }
    if (text[at] == '"') in_text = !in_text;
    out += text[at];
    if (in_text && text[at] == '\\' && at + 1 < text.size()) out += text[++at];
  }
  return out;
}

// An object of a config.json. Each function reads one name, or its default if the name is missing.
class Reader {
 public:
  explicit Reader(const Json& json, std::string prefix = {})
      : json_(json), prefix_(std::move(prefix)) {}

  // Null if the name is missing, or if null is its value.
  const Json* find(const char* name) const {
    const Json* found = json_.find(name);
    return found && !found->is_null() ? found : nullptr;
  }

  std::int64_t whole(const char* name, std::int64_t otherwise) const {
    const Json* value = find(name);
    if (!value) return otherwise;
    const std::optional<std::uint64_t> number = value->natural();
    if (!number || *number > (std::uint64_t{1} << 40)) refuse(name, "an integer was expected");
    return static_cast<std::int64_t>(*number);
  }

  float positive(const char* name, float otherwise) const {
    const Json* value = find(name);
    if (!value) return otherwise;
    const double number = value->number();  // 0 for other values
    if (!(number > 0) || !(static_cast<float>(number) > 0) ||
        !std::isfinite(static_cast<float>(number)))
      refuse(name, "a positive number was expected");
    return static_cast<float>(number);
  }

  std::string word(const char* name, const char* otherwise) const {
    const Json* value = find(name);
    if (!value) return otherwise;
    if (!value->is_text()) refuse(name, "a string was expected");
    return std::string(value->text());
  }

  // Checks a size that the weights show, too.
  void same(const char* name, std::int64_t of_weights) const {
    if (const std::int64_t value = whole(name, of_weights); value != of_weights)
      user_error("{}{} is {}, but the weights have {}", prefix_, name, value, of_weights);
  }

  void same_or_auto(const char* name, std::int64_t of_weights) const {
    const Json* value = find(name);
    if (value && value->text() != "auto") same(name, of_weights);
  }

  // These require the one value that our models support; `why` says what another would mean.
  void only(const char* name, bool ours, const char* why) const {
    const Json* value = find(name);
    if (value && !(value->is_boolean() && value->boolean() == ours)) refuse_other(name, why);
  }
  void only(const char* name, int ours, int otherwise, const char* why) const {
    const Json* value = find(name);
    if (value ? !(value->is_number() && value->number() == ours) : otherwise != ours)
      user_error("{}{} is {}: not supported: {}", prefix_, name,
                 value ? shown(*value) : fmt::format("{}", otherwise), why);
  }
  void only_empty(const char* name, const char* why) const {
    const Json* value = find(name);
    if (value && !(value->is_list() && value->size() == 0)) refuse_other(name, why);
  }

  // Requires that dt has no limits, [0, Infinity].
  void no_limit(const char* name) const {
    const Json* value = find(name);
    if (!value) return;
    const bool is_range = value->is_list() && value->size() == 2 && (*value)[0].is_number();
    if (!is_range || (*value)[0].number() != 0 || (*value)[1].text() != "Infinity")
      refuse_other(name, "dt has no limits here");
  }

  void known(std::initializer_list<std::string_view> names) const {
    for (const auto& [name, value] : json_.members())
      if (std::find(names.begin(), names.end(), name) == names.end())
        user_error("{}{} is {}: not supported: its meaning is unknown", prefix_, name,
                   shown(value));
  }

  [[noreturn]] void refuse(const char* name, const char* why) const {
    const Json* value = json_.find(name);
    user_error("{}{} is {}: {}", prefix_, name, value ? shown(*value) : "missing", why);
  }

  [[noreturn]] void refuse_other(const char* name, const char* why) const {
    refuse(name, fmt::format("not supported: {}", why).c_str());
  }

 private:
  const Json& json_;
  std::string prefix_;
};

// ---- words

struct Word {
  std::string_view theirs;
  const char* ours;
};
// gelu_fast is the same formula as gelu_new, written differently.
constexpr Word kActivations[] = {{"gelu_new", "gelu_tanh"},  {"gelu_pytorch_tanh", "gelu_tanh"},
                                 {"gelu_fast", "gelu_tanh"}, {"gelu", "gelu"},
                                 {"relu", "relu"},           {"silu", "silu"},
                                 {"swish", "silu"},          {"tanh", "tanh"}};

std::string activation_of(const Reader& json, const char* name, const char* otherwise) {
  const std::string theirs = json.word(name, otherwise);
  for (const Word& word : kActivations)
    if (theirs == word.theirs) return word.ours;
  json.refuse(name, "not supported: gelu_new, gelu, relu, silu and tanh are");
}

constexpr const char* kNotGrouped =
    "with several groups each group has a norm of its own, which the model here has not";

void only_silu(const Reader& json, const char* name) {
  if (activation_of(json, name, "silu") != "silu")
    json.refuse(name, "not supported: Mamba's activation is silu here");
}

std::int64_t heads_of(const TextModelConfig& config) {
  return config.expand * config.dim / config.head_size;
}

// ---- Hugging Face

void read_gpt2(const Reader& json, TextModelConfig& config) {
  json.same("n_embd", config.dim);
  json.same("n_layer", config.layers);
  json.same("n_positions", config.context);
  json.same("vocab_size", config.vocab);
  json.same("n_inner", 4 * config.dim);
  json.only("scale_attn_weights", true, "attention scales its scores here");
  json.only("scale_attn_by_inverse_layer_idx", false, "all layers scale alike here");
  json.only("add_cross_attention", false, "there is no cross-attention here");
  config.heads = static_cast<int>(std::min<std::int64_t>(json.whole("n_head", 12), 1 << 20));
  if (config.heads < 1 || config.dim % config.heads != 0)
    user_error("n_head is {}, which does not divide the width {}", config.heads, config.dim);
  config.activation = activation_of(json, "activation_function", "gelu_new");
  config.eps = json.positive("layer_norm_epsilon", 1e-5f);
}

// Fields that Mamba and Mamba-2 share.
void read_any_mamba(const Reader& json, TextModelConfig& config) {
  json.same("hidden_size", config.dim);
  json.same("num_hidden_layers", config.layers);
  json.same("vocab_size", config.vocab);
  json.same("conv_kernel", config.conv);
  json.same("expand", config.expand);
  json.only("use_bias", false, "the projections have no biases here");
  json.only("use_conv_bias", true, "the convolution has a bias here");
  only_silu(json, "hidden_act");
  config.eps = json.positive("layer_norm_epsilon", 1e-5f);
}

void read_mamba(const Reader& json, TextModelConfig& config) {
  read_any_mamba(json, config);
  json.same("state_size", config.state);
  json.same_or_auto("time_step_rank", config.dt_rank);
}

void read_mamba2(const Reader& json, TextModelConfig& config) {
  read_any_mamba(json, config);
  json.only("n_groups", 1, 8, kNotGrouped);
  json.same("state_size", config.state);
  json.same("head_dim", config.head_size);
  json.same("num_heads", heads_of(config));
  json.only("rms_norm", true, "the gated output has an RMSNorm here");
  json.no_limit("time_step_limit");
}

// ---- state-spaces

void read_state_spaces(const Json& all, TextModelConfig& config) {
  const Reader json(all);
  const JsonDocument none = parse_json("{}", 1);
  const Json* given = json.find("ssm_cfg");
  if (given && !given->is_object()) json.refuse("ssm_cfg", "an object was expected");
  const Reader ssm(given ? *given : none.root(), "ssm_cfg.");
  const bool second = config.kind == "mamba2";
  const std::string layer = ssm.word("layer", "Mamba1"), wanted = second ? "Mamba2" : "Mamba1";
  if (layer != wanted)
    user_error("ssm_cfg.layer is {}, but these are the weights of \"{}\"", shown(layer), wanted);
  // The names of the last two lines concern the start of training or the implementation.
  ssm.known({"layer",         "d_state",
             "d_conv",        "expand",
             "bias",          "conv_bias",
             "dt_rank",       "headdim",
             "ngroups",       "d_ssm",
             "rmsnorm",       "norm_before_gate",
             "D_has_hdim",    "activation",
             "dt_limit",      "dt_min",
             "dt_max",        "dt_init",
             "dt_scale",      "dt_init_floor",
             "A_init_range",  "conv_init",
             "use_fast_path", "use_mem_eff_path",
             "chunk_size",    "sequence_parallel"});
  const std::int64_t pad = std::max<std::int64_t>(json.whole("pad_vocab_size_multiple", 8), 1),
                     vocab = json.whole("vocab_size", config.vocab);
  if (vocab != config.vocab && round_up(vocab, pad) != config.vocab)
    user_error("vocab_size is {}, padded to a multiple of {}, but the weights have {}", vocab, pad,
               config.vocab);
  json.same("d_model", config.dim);
  json.same("n_layer", config.layers);
  json.only("d_intermediate", 0, 0, "there are no layers of an MLP between Mamba's here");
  json.only_empty("attn_layer_idx", "no layer attends here");
  json.only("rms_norm", true, "the norms are RMSNorms here");
  ssm.same("d_state", config.state);
  ssm.same("d_conv", config.conv);
  ssm.same("expand", config.expand);
  ssm.only("bias", false, "the projections have no biases here");
  ssm.only("conv_bias", true, "the convolution has a bias here");
  if (!second) return ssm.same_or_auto("dt_rank", config.dt_rank);
  ssm.only("ngroups", 1, 1, kNotGrouped);
  ssm.same("headdim", config.head_size);
  ssm.same("d_ssm", config.expand * config.dim);
  ssm.only("rmsnorm", true, "the gated output has an RMSNorm here");
  ssm.only("norm_before_gate", false, "the gate comes before the norm here");
  ssm.only("D_has_hdim", false, "D has one number per head here");
  only_silu(ssm, "activation");
  ssm.no_limit("dt_limit");
}

// ---- which

const char* model_type_of(const std::string& kind) {
  return kind == "gpt" ? "gpt2" : kind == "mamba" ? "mamba" : "mamba2";
}

void read_hugging_face(const Json& all, TextModelConfig& config) {
  const Reader json(all);
  const std::string type = json.word("model_type", "");
  if (type != "gpt2" && type != "mamba" && type != "mamba2")
    json.refuse("model_type", "not supported: gpt2, mamba and mamba2 are");
  if (type != model_type_of(config.kind))
    user_error("model_type is {}, but these are the weights of \"{}\"", shown(type),
               model_type_of(config.kind));
  if (type == "gpt2")
    read_gpt2(json, config);
  else if (type == "mamba")
    read_mamba(json, config);
  else
    read_mamba2(json, config);
}

}  // namespace

TextModelConfig config_of_torch_weights(const NamedArrays& weights, std::string_view config_json) {
  constexpr int kDepth = 16;
  TextModelConfig config = config_of_torch_weights(weights);
  const JsonDocument document = parse_json(without_python_numbers(config_json), kDepth);
  const Json& json = document.root();
  if (json.find("model_type"))
    read_hugging_face(json, config);
  else if (json.find("d_model") && config.kind != "gpt")
    read_state_spaces(json, config);
  else
    user_error(
        "not the config of a supported model: it has neither \"model_type\", as Hugging Face "
        "writes it, nor \"d_model\", as state-spaces writes it");
  text::check(config);
  return config;
}

}  // namespace tensorgrad
