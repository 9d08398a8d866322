#include "nn/registry.h"

#include <algorithm>
#include <array>

#include "nn/words.h"
#include "ops/builder.h"
#include "tensorgrad/language_model.h"
#include "tensorgrad/mamba.h"
#include "tensorgrad/nn.h"
#include "tensorgrad/reflect.h"

namespace tensorgrad::nn {

using ops::Argument;
using ops::kNothing;
using ops::Named;
using ops::op;
using ops::PublicFamily;
using ops::PublicOp;

// ---- functions

namespace {

std::span<const PublicOp> functions() {
  static constexpr PublicOp all[] = {
      op<activate>("activate", {"x", "activation"}, "Applies an activation to every element."),
      op<masked_cross_entropy>("masked_cross_entropy", {"logits", "targets", "mask"},
                               "The mean cross-entropy where the mask is 1."),
      op(
          "selective_scan_step",
          [](Operand h, Operand u, Operand delta, Operand A_log, Operand B, Operand C, Operand D,
             Discretisation discretisation) {
            Tensor state = TensorAccess::tensor(h);
            const Tensor y = selective_scan_step(state, u, delta, A_log, B, C, D, discretisation);
            return std::vector<Tensor>{y, state};
          },
          {"h", "u", "delta", "A_log", "B", "C", "D", {"discretisation", "euler"}},
          "One position of selective_scan. Returns y [B, E] and the next state [B, E, N]."),
      op(
          "ssd_step",
          [](Operand h, Operand x, Operand dt, Operand A_log, Operand B, Operand C, Operand D) {
            Tensor state = TensorAccess::tensor(h);
            const Tensor y = ssd_step(state, x, dt, A_log, B, C, D);
            return std::vector<Tensor>{y, state};
          },
          {"h", "x", "dt", "A_log", "B", "C", "D"},
          "One position of ssd. Returns y [B, H, P] and the next state [B, H, N, P]."),
  };
  return all;
}

}  // namespace

std::span<const PublicFamily> families() {
  static const std::array all{
      PublicFamily{"elementwise", "Elementwise arithmetic", ops::elementwise_ops()},
      PublicFamily{"compare", "Comparison and logic", ops::compare_ops()},
      PublicFamily{"reduce", "Reductions", ops::reduce_ops()},
      PublicFamily{"movement", "Shape", ops::movement_ops()},
      PublicFamily{"window", "Windows, convolution and pooling", ops::window_ops()},
      PublicFamily{"matmul", "Matmul", ops::matmul_ops()},
      PublicFamily{"gather", "Indexing", ops::gather_ops()},
      PublicFamily{"leaf", "Builders", ops::leaf_ops()},
      PublicFamily{"composite", "Machine learning", ops::composite_ops()},
      PublicFamily{"attention", "Attention", ops::attention_ops()},
      PublicFamily{"conv1d", "Convolution over sequences", ops::conv1d_ops()},
      PublicFamily{"state_space", "State spaces: Mamba", ops::state_space_ops()},
      PublicFamily{"ssd", "State spaces: Mamba-2", ops::ssd_ops()},
      PublicFamily{"random", "Random numbers", ops::random_ops()},
      PublicFamily{"nn", "Functions of layers", functions()},
  };
  return all;
}

const PublicOp* find_op(std::string_view name) {
  for (const PublicFamily& family : families())
    for (const PublicOp& op : family.ops)
      if (op.name == name) return &op;
  return nullptr;
}

std::vector<std::string> op_names() {
  std::vector<std::string> names;
  for (const PublicFamily& family : families())
    for (const PublicOp& op : family.ops) names.emplace_back(op.name);
  return names;
}

// ---- layers

namespace {

template <class L>
class LayerOf final : public Layer {
 public:
  explicit LayerOf(L layer) : layer_(std::move(layer)) {}

  std::unique_ptr<Layer> copy() const override { return std::make_unique<LayerOf>(*this); }
  void visit(const Visit& visit) override { walk_model<Param>(layer_, visit); }
  Tensor call(const Operand& input) const override { return layer_(input); }

 private:
  L layer_;
};

template <class Lambda>
std::unique_ptr<Layer> make_layer(const ops::Given& given) {
  auto layer = ops::invoke(+Lambda{}, given);
  return std::make_unique<LayerOf<decltype(layer)>>(std::move(layer));
}

template <class L, class... T>
constexpr PublicLayer record(L (*)(T...), std::string_view name, std::string_view input,
                             std::initializer_list<Named> parameters, std::string_view sentence,
                             std::unique_ptr<Layer> (*function)(const ops::Given&)) {
  return {name, sentence, input, ops::parameters_of<std::remove_cvref_t<T>...>(parameters),
          function};
}

// The lambda makes a layer of the parameters. `input` is the name of the parameter of its call.
template <class Lambda>
constexpr PublicLayer layer(std::string_view name, Lambda make,
                            std::initializer_list<Named> parameters, std::string_view input,
                            std::string_view sentence) {
  return record(+make, name, input, parameters, sentence, make_layer<Lambda>);
}

}  // namespace

std::unique_ptr<Layer> PublicLayer::make(std::span<const Argument> arguments, Site site) const {
  try {
    return function({arguments.data(), site});
  } catch (const BrokenRule& broken) {  // an argument does not fit
    throw UserError(user_message(name, broken.rule, broken.hint, "", site.file, site.line));
  }
}

std::span<const PublicLayer> layers() {
  static constexpr PublicLayer all[] = {
      layer(
          "Linear",
          [](std::int64_t in, std::int64_t out, bool bias, Site site) {
            return Linear(in, out, LinearOptions{.bias = bias}, site);
          },
          {"in", "out", {"bias", true}}, "x", "x W + b over the last axis; W is [in, out]."),
      layer(
          "LayerNorm",
          [](std::int64_t size, float eps, bool bias, Site site) {
            return LayerNorm(size, LayerNormOptions{.eps = eps, .bias = bias}, site);
          },
          {"size", {"eps", 1e-5}, {"bias", true}}, "x", "Layer norm over the last axis."),
      layer(
          "RMSNorm",
          [](std::int64_t size, float eps, Site site) {
            return RMSNorm(size, RMSNormOptions{.eps = eps}, site);
          },
          {"size", {"eps", 1e-5}}, "x", "RMS norm over the last axis."),
      layer(
          "Norm",
          [](std::int64_t size, NormKind kind, float eps, Site site) {
            return Norm(size, NormOptions{.kind = kind, .eps = eps}, site);
          },
          {"size", {"kind", "layer"}, {"eps", 1e-5}}, "x",
          "Layer norm or RMS norm, as an argument says."),
      layer(
          "Embedding",
          [](std::int64_t count, std::int64_t size, Site site) {
            return Embedding(count, size, {}, site);
          },
          {"count", "size"}, "ids", "Rows of a table [count, size] by id."),
      layer(
          "Conv2d",
          [](std::int64_t in, std::int64_t out, Pair kernel, Pair stride, Pair padding,
             Pair dilation, std::int64_t groups, bool bias, Site site) {
            return Conv2d(in, out, kernel,
                          Conv2dLayerOptions{.conv = {.stride = stride,
                                                      .padding = padding,
                                                      .dilation = dilation,
                                                      .groups = groups},
                                             .bias = bias},
                          site);
          },
          {"in",
           "out",
           "kernel",
           {"stride", 1},
           {"padding", 0},
           {"dilation", 1},
           {"groups", 1},
           {"bias", true}},
          "x", "Convolution of images [B, C, H, W]."),
      layer(
          "Conv1d",
          [](std::int64_t channels, std::int64_t kernel, Site site) {
            return Conv1d(channels, kernel, {}, site);
          },
          {"channels", "kernel"}, "x", "Causal depthwise convolution of sequences [B, T, C]."),
      layer(
          "SelfAttention",
          [](std::int64_t dim, int heads, int groups, std::optional<float> rope_base, bool biases,
             Site site) {
            return SelfAttention(
                dim, heads,
                SelfAttentionOptions{.groups = groups, .rope_base = rope_base, .biases = biases},
                site);
          },
          {"dim", "heads", {"groups", 0}, {"rope_base", kNothing}, {"biases", false}}, "x",
          "Causal self-attention [B, T, D] -> [B, T, D]; rotary positions with rope_base."),
      layer(
          "FeedForward",
          [](std::int64_t dim, std::int64_t hidden, Activation activation, Site site) {
            return FeedForward(dim, hidden, FeedForwardOptions{.activation = activation}, site);
          },
          {"dim", "hidden", {"activation", "gelu"}}, "x",
          "Two linear layers with an activation between them."),
      layer(
          "TransformerBlock",
          [](std::int64_t dim, int heads, std::int64_t hidden, NormKind norm, float eps, int groups,
             std::optional<float> rope_base, bool biases, Activation activation, Site site) {
            return TransformerBlock(
                dim, heads,
                TransformerBlockOptions{
                    .hidden = hidden,
                    .norm = {.kind = norm, .eps = eps},
                    .attention = {.groups = groups, .rope_base = rope_base, .biases = biases},
                    .mlp = {.activation = activation}},
                site);
          },
          {"dim",
           "heads",
           {"hidden", 0},
           {"norm", "layer"},
           {"eps", 1e-5},
           {"groups", 0},
           {"rope_base", kNothing},
           {"biases", false},
           {"activation", "gelu"}},
          "x", "x + attention(norm(x)), then x + mlp(norm(x))."),
      layer(
          "Transformer",
          [](std::int64_t vocab, std::int64_t dim, std::int64_t context, int depth, int heads,
             Activation activation, float eps, int groups, std::optional<float> rope_base,
             bool biases, NormKind norm, float embedding_std, Site site) {
            return Transformer(TransformerConfig{.vocab = vocab,
                                                 .dim = dim,
                                                 .context = context,
                                                 .layers = depth,
                                                 .heads = heads,
                                                 .activation = activation,
                                                 .eps = eps,
                                                 .groups = groups,
                                                 .rope_base = rope_base,
                                                 .biases = biases,
                                                 .norm = norm,
                                                 .embedding_std = embedding_std},
                               site);
          },
          {{"vocab", 256},
           {"dim", 128},
           {"context", 128},
           {"layers", 4},
           {"heads", 4},
           {"activation", "gelu"},
           {"eps", 1e-5},
           {"groups", 0},
           {"rope_base", kNothing},
           {"biases", false},
           {"norm", "layer"},
           {"embedding_std", 0.05}},
          "tokens", "A decoder-only language model: tokens [B, T] -> logits [B, T, V]."),
      layer(
          "MambaBlock",
          [](std::int64_t dim, std::int64_t state, std::int64_t conv, std::int64_t expand,
             std::int64_t dt_rank, Discretisation discretisation, float eps, Site site) {
            return MambaBlock(MambaConfig{.dim = dim,
                                          .state = state,
                                          .conv = conv,
                                          .expand = expand,
                                          .dt_rank = dt_rank,
                                          .discretisation = discretisation,
                                          .eps = eps},
                              {}, site);
          },
          {"dim",
           {"state", 16},
           {"conv", 4},
           {"expand", 2},
           {"dt_rank", 0},
           {"discretisation", "euler"},
           {"eps", 1e-5}},
          "x", "A Mamba block [B, T, D] -> [B, T, D]."),
      layer(
          "Mamba2Block",
          [](std::int64_t dim, std::int64_t state, std::int64_t conv, std::int64_t expand,
             std::int64_t head_size, int groups, std::int64_t chunk, float eps, Site site) {
            return Mamba2Block(Mamba2Config{.dim = dim,
                                            .state = state,
                                            .conv = conv,
                                            .expand = expand,
                                            .head_size = head_size,
                                            .groups = groups,
                                            .chunk = chunk,
                                            .eps = eps},
                               {}, site);
          },
          {"dim",
           {"state", 64},
           {"conv", 4},
           {"expand", 2},
           {"head_size", 64},
           {"groups", 1},
           {"chunk", 64},
           {"eps", 1e-5}},
          "x", "A Mamba-2 block [B, T, D] -> [B, T, D]."),
      layer(
          "Mamba",
          [](std::int64_t vocab, int depth, std::int64_t dim, std::int64_t state, std::int64_t conv,
             std::int64_t expand, std::int64_t dt_rank, Discretisation discretisation, float eps,
             float embedding_std, Site site) {
            return Mamba(MambaConfig{.vocab = vocab,
                                     .layers = depth,
                                     .dim = dim,
                                     .state = state,
                                     .conv = conv,
                                     .expand = expand,
                                     .dt_rank = dt_rank,
                                     .discretisation = discretisation,
                                     .eps = eps,
                                     .embedding_std = embedding_std},
                         site);
          },
          {{"vocab", 256},
           {"layers", 4},
           {"dim", 128},
           {"state", 16},
           {"conv", 4},
           {"expand", 2},
           {"dt_rank", 0},
           {"discretisation", "euler"},
           {"eps", 1e-5},
           {"embedding_std", 0.05}},
          "tokens", "A language model of Mamba blocks."),
      layer(
          "Mamba2",
          [](std::int64_t vocab, int depth, std::int64_t dim, std::int64_t state, std::int64_t conv,
             std::int64_t expand, std::int64_t head_size, int groups, std::int64_t chunk, float eps,
             float embedding_std, Site site) {
            return Mamba2(Mamba2Config{.vocab = vocab,
                                       .layers = depth,
                                       .dim = dim,
                                       .state = state,
                                       .conv = conv,
                                       .expand = expand,
                                       .head_size = head_size,
                                       .groups = groups,
                                       .chunk = chunk,
                                       .eps = eps,
                                       .embedding_std = embedding_std},
                          site);
          },
          {{"vocab", 256},
           {"layers", 4},
           {"dim", 128},
           {"state", 64},
           {"conv", 4},
           {"expand", 2},
           {"head_size", 64},
           {"groups", 1},
           {"chunk", 64},
           {"eps", 1e-5},
           {"embedding_std", 0.05}},
          "tokens", "A language model of Mamba-2 blocks."),
      layer(
          "LanguageModel",
          [](std::int64_t vocab, std::int64_t dim, std::string layers, int heads, int groups,
             Activation activation, float rope_base, float eps, NormKind norm, float embedding_std,
             std::int64_t mamba_state, std::int64_t mamba2_state, std::int64_t head_size,
             Site site) {
            return LanguageModel(
                LanguageModelConfig{.vocab = vocab,
                                    .dim = dim,
                                    .layers = std::move(layers),
                                    .mamba = {.state = mamba_state},
                                    .mamba2 = {.state = mamba2_state, .head_size = head_size},
                                    .heads = heads,
                                    .groups = groups,
                                    .activation = activation,
                                    .rope_base = rope_base,
                                    .eps = eps,
                                    .norm = norm,
                                    .embedding_std = embedding_std},
                site);
          },
          {{"vocab", 256},
           {"dim", 128},
           {"layers", "mamba mamba attention"},
           {"heads", 4},
           {"groups", 0},
           {"activation", "gelu"},
           {"rope_base", 10000.0},
           {"eps", 1e-5},
           {"norm", "layer"},
           {"embedding_std", 0.05},
           {"mamba_state", 16},
           {"mamba2_state", 64},
           {"head_size", 64}},
          "tokens", "A language model with layers of several kinds, in the order of the words."),
  };
  return all;
}

const PublicLayer* find_layer(std::string_view name) {
  const auto all = layers();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const PublicLayer& layer) { return layer.name == name; });
  return found == all.end() ? nullptr : &*found;
}

std::vector<std::string> layer_names() {
  std::vector<std::string> names;
  for (const PublicLayer& layer : layers()) names.emplace_back(layer.name);
  return names;
}

}  // namespace tensorgrad::nn
