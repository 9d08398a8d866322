#include "bench_models.h"

#include "draw.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::tool {

namespace {

std::vector<float> random_floats(std::int64_t count, float low, float high, std::uint32_t seed) {
  std::vector<float> out;
  for (std::int64_t i = 0; i < count; ++i)
    out.push_back(low + (high - low) * unit_float(draw(seed, DrawFor::bench, i)));
  return out;
}

TrainingOptions training_options(std::vector<InputSpec> inputs, float clip_grad_norm,
                                 const DeviceOptions& where) {
  return {.inputs = std::move(inputs),
          .optimizer = AdamW{.lr = 1e-3, .weight_decay = 0.01f},
          .clip_grad_norm = clip_grad_norm,
          .device = where.device,
          .threads = where.threads,
          .without = where.without,
          .progress = where.progress};
}

struct Mlp {
  Linear l1{1, 64}, l2{64, 64}, l3{64, 1};
};

BenchProgram build_mlp(const BenchModel&, std::int64_t B, const DeviceOptions& where) {
  auto train = compile(Mlp{}, training_options({{"x", {B, 1}}, {"y", {B, 1}}}, 0, where),
                       [](const Mlp& m, const Inputs& in) {
                         return mse_loss(m.l3(relu(m.l2(relu(m.l1(in["x"]))))), in["y"]);
                       });
  train.set_input("x", random_floats(B, -3, 3, 0));
  train.set_input("y", random_floats(B, 0, 1, 1));
  return BenchProgram(train);
}

template <class Model>
BenchProgram build_language_model(Model model, std::int64_t vocab, std::int64_t B, std::int64_t T,
                                  const DeviceOptions& where) {
  const Shape shape{B, T};
  auto train =
      compile(std::move(model),
              training_options({{"tokens", shape, i32}, {"targets", shape, i32}, {"mask", shape}},
                               1, where),
              [](const Model& m, const Inputs& in) {
                return masked_cross_entropy(m(in["tokens"]), in["targets"], in["mask"]);
              });
  std::vector<std::int32_t> tokens, targets;  // [B, T] of [B, T + 1]
  for (std::int64_t b = 0; b < B; ++b) {
    for (std::int64_t t = 0; t <= T; ++t) {
      const auto id = static_cast<std::int32_t>(below(vocab, draw(0, DrawFor::bench, b, t)));
      if (t < T) tokens.push_back(id);
      if (t > 0) targets.push_back(id);
    }
  }
  train.set_input("tokens", tokens);
  train.set_input("targets", targets);
  train.set_input("mask", std::vector<float>(tokens.size(), 1.0f));
  return BenchProgram(train);
}

BenchProgram build_transformer(const TransformerConfig& config, std::int64_t B,
                               const DeviceOptions& where) {
  return build_language_model(Transformer(config), config.vocab, B, config.context, where);
}

BenchProgram build_addition(const BenchModel&, std::int64_t B, const DeviceOptions& where) {
  return build_transformer({.vocab = 12,
                            .dim = 64,
                            .context = 8,
                            .layers = 3,
                            .heads = 4,
                            .activation = Activation::relu},
                           B, where);
}

BenchProgram build_gpt_small(const BenchModel&, std::int64_t B, const DeviceOptions& where) {
  return build_transformer({.vocab = 65, .dim = 128, .context = 128, .layers = 4, .heads = 4}, B,
                           where);
}

BenchProgram build_gpt_char(const BenchModel&, std::int64_t B, const DeviceOptions& where) {
  return build_transformer({.vocab = 65, .dim = 384, .context = 256, .layers = 6, .heads = 6}, B,
                           where);
}

BenchProgram build_mamba_small(const BenchModel&, std::int64_t B, const DeviceOptions& where) {
  const MambaConfig config{
      .vocab = 65, .layers = 4, .dim = 128, .state = 16, .conv = 4, .expand = 2, .dt_rank = 8};
  return build_language_model(Mamba(config), config.vocab, B, 128, where);
}

struct OneBlock {
  MambaBlock block{{.dim = 256, .state = 64, .conv = 4, .expand = 2, .dt_rank = 16}};
};

BenchProgram build_mamba_block(const BenchModel&, std::int64_t B, const DeviceOptions& where) {
  const Shape shape{B, 256, 256};
  auto train =
      compile(OneBlock{}, training_options({{"x", shape}}, 1, where),
              [](const OneBlock& m, const Inputs& in) { return mean(square(m.block(in["x"]))); });
  train.set_input("x", random_floats(shape.count(), -1.7f, 1.7f, 0));  // standard deviation 1
  return BenchProgram(train);
}

struct NoParameters {};

BenchProgram build_gemm(const BenchModel& model, std::int64_t, const DeviceOptions& where) {
  const std::int64_t N = model.gemm;
  auto product = compile_forward(
      NoParameters{},
      {.inputs = {{"a", {N, N}}, {"b", {N, N}}},
       .device = where.device,
       .threads = where.threads,
       .without = where.without,
       .progress = where.progress},
      [](const NoParameters&, const Inputs& in) { return matmul(in["a"], in["b"]); });
  product.set_input("a", random_floats(N * N, -1, 1, 0));
  product.set_input("b", random_floats(N * N, -1, 1, 1));
  return BenchProgram(product);
}

constexpr BenchModel kModels[] = {
    {"mlp_sin", "multilayer perceptron 1-64-64-1", 256, 0, build_mlp},
    {"addition", "transformer, vocab 12, dim 64, 3 layers, T 8", 128, 0, build_addition},
    {"gpt_small", "transformer, vocab 65, dim 128, 4 layers, T 128", 32, 0, build_gpt_small},
    {"gpt_char", "transformer, vocab 65, dim 384, 6 layers, T 256", 64, 0, build_gpt_char},
    {"mamba_small", "Mamba-1, vocab 65, dim 128, 4 layers, T 128", 16, 0, build_mamba_small},
    {"mamba_block", "one Mamba-1 block, dim 256, state 64, T 256", 2, 0, build_mamba_block},
    {"gemm_512", "matmul 512 x 512 x 512", 1, 512, build_gemm},
    {"gemm_1024", "matmul 1024 x 1024 x 1024", 1, 1024, build_gemm},
    {"gemm_2048", "matmul 2048 x 2048 x 2048", 1, 2048, build_gemm},
    {"gemm_4096", "matmul 4096 x 4096 x 4096", 1, 4096, build_gemm},
};

}  // namespace

Result BenchProgram::step() {
  if (auto* training = std::get_if<TrainingHandle>(&handle_)) return training->step();
  return std::get<ForwardHandle>(handle_).run();
}

const ProgramHandle& BenchProgram::program() const {
  return std::visit([](const auto& handle) -> const ProgramHandle& { return handle; }, handle_);
}

ProgramHandle& BenchProgram::program() {
  return std::visit([](auto& handle) -> ProgramHandle& { return handle; }, handle_);
}

std::span<const BenchModel> bench_models() { return kModels; }

const BenchModel& find_bench_model(std::string_view name) {
  return find_named(bench_models(), "model", name);
}

std::string bench_model_list() {
  std::string list = "Models:\n";
  for (const BenchModel& model : kModels)
    list += fmt::format("  {:<13}{}{}\n", model.name, model.description,
                        model.gemm ? "" : fmt::format(", batch {}", model.batch));
  return list;
}

}  // namespace tensorgrad::tool
