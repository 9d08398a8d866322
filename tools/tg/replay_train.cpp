// Training runs: builds the models of the format from their settings, replays the batches, and
// compares losses, first gradients and final parameters.
#include <cmath>
#include <functional>
#include <optional>

#include "attributes.h"
#include "replay.h"
#include "support/fail.h"
#include "support/integers.h"

namespace tensorgrad::tool {

namespace {

struct NamedActivation {
  const char* name;
  Tensor (*call)(Operand);
  std::optional<Activation> layer;  // for layers with a built-in activation
};

constexpr NamedActivation kActivations[] = {
    {"relu", relu, Activation::relu},
    {"gelu", gelu, Activation::gelu},
    {"gelu_tanh", gelu_tanh, Activation::gelu_tanh},
    {"silu", silu, Activation::silu},
    {"tanh", tanh, Activation::tanh},
    {"sigmoid", sigmoid, {}},
    {"softplus", softplus, {}},
};

const NamedActivation& activation_of(Attributes& settings) {
  const std::string name = settings.text("activation");
  for (const NamedActivation& activation : kActivations)
    if (activation.name == name) return activation;
  user_error("unknown activation '{}'", name);
}

// ---- models. Each has its settings as in the file, the batch tensor that it reads, and the names
// of its parameters where they differ from the paths in the struct.

struct Mlp {
  std::vector<Linear> layers;
  Tensor (*activation)(Operand);

  static constexpr const char* kInput = "x";
  explicit Mlp(Attributes& settings) : activation(activation_of(settings).call) {
    const std::vector<std::int64_t> dims = settings.integers("dims");
    for (std::size_t i = 1; i < dims.size(); ++i) layers.emplace_back(dims[i - 1], dims[i]);
    if (layers.empty()) user_error("mlp: dims needs at least two sizes");
  }
  Tensor operator()(Tensor x) const {
    for (const Linear& layer : layers) {
      if (&layer != &layers.front()) x = activation(x);
      x = layer(x);
    }
    return x;
  }
  // layers.0.W -> l1.W
  static std::string name(const std::string& path) { return numbered("layers.", "l", path); }

  static std::string numbered(std::string_view from, std::string_view to, const std::string& path) {
    if (path.rfind(from, 0) != 0) return path;
    const std::size_t dot = path.find('.', from.size());
    const int index = std::stoi(path.substr(from.size(), dot - from.size()));
    return fmt::format("{}{}{}", to, index + 1, path.substr(dot));
  }
  TENSORGRAD_FIELDS(layers)
};

struct Cnn {
  std::vector<Conv2d> convs;
  std::vector<Linear> fc;  // one; constructed when its size is known
  Pair pool{1};
  Tensor (*activation)(Operand);

  static constexpr const char* kInput = "x";
  explicit Cnn(Attributes& settings) : activation(activation_of(settings).call) {
    const std::vector<std::int64_t> image = settings.integers("image");
    if (image.size() != 3) user_error("cnn: image must be [channels, height, width]");
    const Pair kernel = settings.pair("kernel"), padding = settings.pair("padding", 0);
    pool = settings.pair("pool", 1);
    if (pool.h < 1 || pool.w < 1) user_error("cnn: pool is at least 1: {} x {}", pool.h, pool.w);
    std::int64_t C = image[0], H = image[1], W = image[2];
    for (const std::int64_t channels : settings.integers("channels")) {
      convs.emplace_back(C, channels, kernel, Conv2dOptions{.padding = padding});
      C = channels;
      H = (H + 2 * padding.h - kernel.h + 1) / pool.h;
      W = (W + 2 * padding.w - kernel.w + 1) / pool.w;
    }
    fc.emplace_back(C * H * W, settings.integer("classes"));
  }
  Tensor operator()(Tensor x) const {
    for (const Conv2d& conv : convs) x = max_pool2d(activation(conv(x)), pool);
    return fc[0](reshape(x, {x.size(0), -1}));
  }
  // convs.0.W -> c1.W, fc.0.W -> fc.W
  static std::string name(const std::string& path) {
    return path.rfind("fc.0.", 0) == 0 ? "fc." + path.substr(5)
                                       : Mlp::numbered("convs.", "c", path);
  }
  TENSORGRAD_FIELDS(convs, fc)
};

struct TransformerModel {
  Transformer transformer;

  static constexpr const char* kInput = "tokens";
  static TransformerConfig config(Attributes& settings) {
    const NamedActivation& activation = activation_of(settings);
    if (!activation.layer) user_error("transformer: no activation {}", activation.name);
    return {.vocab = settings.integer("vocab"),
            .dim = settings.integer("dim"),
            .context = settings.integer("context"),
            .layers = settings.small("layers"),
            .heads = settings.small("heads"),
            .activation = *activation.layer,
            .eps = static_cast<float>(settings.number("ln_eps", 1e-5))};
  }
  explicit TransformerModel(Attributes& settings) : transformer(config(settings)) {}
  Tensor operator()(Tensor tokens) const { return transformer(tokens); }
  static std::string name(const std::string& path) { return path.substr(path.find('.') + 1); }
  TENSORGRAD_FIELDS(transformer)
};

struct MambaModel {
  Mamba mamba;

  static constexpr const char* kInput = "tokens";
  static MambaConfig config(Attributes& settings) {
    return {.vocab = settings.integer("vocab"),
            .layers = settings.small("layers"),
            .dim = settings.integer("dim"),
            .state = settings.integer("state", 16),
            .conv = settings.integer("conv", 4),
            .expand = settings.integer("expand", 2),
            .dt_rank = settings.integer("dt_rank", 0),
            .eps = static_cast<float>(settings.number("norm_eps", 1e-5))};
  }
  explicit MambaModel(Attributes& settings) : mamba(config(settings)) {}
  Tensor operator()(Tensor tokens) const { return mamba(tokens); }
  static std::string name(const std::string& path) { return path.substr(path.find('.') + 1); }
  TENSORGRAD_FIELDS(mamba)
};

// ---- the rest of the description

// Token models name their target `targets`, the others `y`.
Tensor loss_of(const std::string& name, const Tensor& prediction, const char* target,
               const Inputs& in) {
  if (name == "mse") return mse_loss(prediction, in[target]);
  if (name == "cross_entropy") return cross_entropy(prediction, in[target]);
  if (name == "masked_cross_entropy")
    return masked_cross_entropy(prediction, in[target], in["mask"]);
  user_error("unknown loss '{}'", name);
}

const Json& part(const Json& description, const char* key) {
  const auto found = description.find(key);
  if (found == description.end()) user_error("'{}' is missing", key);
  return *found;
}

Schedule schedule_of(const Json& description, std::int64_t steps) {
  Attributes settings(part(description, "lr"), "lr setting");
  const std::string kind = settings.text("kind");
  Schedule lr = 0.0;
  if (kind == "constant") {
    lr = settings.number("value");
  } else if (kind == "linear") {
    const double peak = settings.number("peak"), last = settings.number("final");
    lr = linear(peak, last, settings.integer("steps", steps));
  } else {
    user_error("unknown lr kind '{}'", kind);
  }
  settings.finish();
  return lr;
}

void read_optimizer(const Json& description, std::int64_t steps, TrainingOptions& options) {
  Attributes settings(part(description, "optimizer"), "optimizer setting");
  const std::string kind = settings.text("kind");
  const Schedule lr = schedule_of(description, steps);
  const auto beta1 = static_cast<float>(settings.number("beta1", 0.9));
  const auto beta2 = static_cast<float>(settings.number("beta2", 0.999));
  const auto eps = static_cast<float>(settings.number("eps", 1e-8));
  const auto decay =
      static_cast<float>(settings.number("weight_decay", kind == "adamw" ? 0.01 : 0));
  options.clip_grad_norm = static_cast<float>(settings.number("clip_grad_norm", 0));
  settings.finish();
  if (kind == "adam") {
    if (decay != 0) user_error("adam has no weight_decay");
    options.optimizer = Adam{lr, beta1, beta2, eps};
  } else if (kind == "adamw") {
    options.optimizer = AdamW{lr, beta1, beta2, eps, decay};
  } else {
    user_error("unknown optimizer '{}'", kind);
  }
  options.decay = description.value("decay", NameFilter{});
}

// ---- the loop

Feed feed_of(const NamedArrays& batch) {
  Feed feed;
  for (const auto& [name, array] : batch) feed.set(name, array);
  return feed;
}

void compare_all(
    const ReferenceCase& reference, const std::string& start, const NamedArrays& results,
    const std::function<void(const std::string&, const Array&, const Array&)>& compare) {
  for (const auto& [name, array] : reference.tensors(start))
    if (!results.count(name)) user_error("{}{}: the model has no such parameter", start, name);
  for (const auto& [name, array] : results)
    compare(start + name, array, reference.tensor(start + name));
}

void run_steps(const ReferenceCase& reference, TrainingHandle& training, std::int64_t steps,
               const Tolerance& tolerance, Comparison& comparison,
               std::vector<std::string>& notes) {
  const Json& description = reference.description;
  const auto losses = description.value("losses", std::vector<double>{});
  const auto norms = description.value("grad_norms", std::vector<double>{});
  const bool clips = part(description, "optimizer").value("clip_grad_norm", Json()).is_number();
  for (std::int64_t step = 0; step < steps; ++step) {
    const auto i = usize(step);
    const NamedArrays batch = reference.tensors(fmt::format("batch/{}/", step));
    const Result result = training.step(feed_of(batch));
    comparison.number(fmt::format("the loss of step {}", step), result.loss(), losses[i],
                      tolerance.loss);
    if (step == 0)
      compare_all(reference, "grad1/", training.gradients(),
                  [&](const auto& name, const Array& got, const Array& wanted) {
                    comparison.scaled(name, got, wanted, tolerance.gradient);
                  });
    if (clips && i < norms.size() && !(std::fabs(result.grad_norm() - norms[i]) <= 1e-4 * norms[i]))
      notes.push_back(fmt::format("the gradient norm of step {} is {}, the reference is {}", step,
                                  result.grad_norm(), norms[i]));
  }
  if (tolerance.parameters)
    compare_all(reference, "final/", training.download(),
                [&](const auto& name, const Array& got, const Array& wanted) {
                  comparison.distance(name, got, wanted, *tolerance.parameters);
                });
}

template <class Model>
void replay_model(const ReferenceCase& reference, const DeviceOptions& where,
                  const Tolerance& tolerance, Comparison& comparison,
                  std::vector<std::string>& notes) {
  const Json& description = reference.description;
  Attributes settings(part(description, "model"), "model setting");
  settings.text("kind");
  Model model(settings);
  settings.finish();

  const auto losses = description.value("losses", std::vector<double>{});
  const auto steps = description.value("steps", static_cast<std::int64_t>(losses.size()));
  if (steps < 1 || steps != static_cast<std::int64_t>(losses.size()))
    user_error("{} steps with {} losses", steps, losses.size());
  TrainingOptions options{
      .device = where.device, .threads = where.threads, .without = where.without};
  read_optimizer(description, steps, options);
  const NamedArrays batch = reference.tensors("batch/0/");
  for (const auto& [name, array] : batch)
    options.inputs.push_back({name, array.shape(), array.dtype()});
  const char* target = batch.count("targets") ? "targets" : "y";
  const std::string loss = description.value("loss", "");
  for (const auto& [name, array] : batch)
    if (name != Model::kInput && name != target &&
        !(name == "mask" && loss == "masked_cross_entropy"))
      user_error("batch/0/{}: nothing uses this input", name);

  auto training = compile_renamed(std::move(model), Model::name, options,
                                  [&](const Model& m, const Inputs& in) {
                                    return loss_of(loss, m(in[Model::kInput]), target, in);
                                  });
  training.upload(reference.tensors("init/"));
  run_steps(reference, training, steps, tolerance, comparison, notes);
}

}  // namespace

void replay_training(const ReferenceCase& reference, const DeviceOptions& where,
                     const Tolerance& tolerance, Comparison& comparison,
                     std::vector<std::string>& notes) {
  const std::string kind = part(reference.description, "model").value("kind", "");
  if (kind == "mlp") return replay_model<Mlp>(reference, where, tolerance, comparison, notes);
  if (kind == "cnn") return replay_model<Cnn>(reference, where, tolerance, comparison, notes);
  if (kind == "transformer")
    return replay_model<TransformerModel>(reference, where, tolerance, comparison, notes);
  if (kind == "mamba")
    return replay_model<MambaModel>(reference, where, tolerance, comparison, notes);
  user_error("unknown model kind '{}'", kind);
}

}  // namespace tensorgrad::tool
