#include "text/program.h"

#include <optional>
#include <type_traits>
#include <variant>

#include "support/fail.h"
#include "tensorgrad/nn.h"
#include "text/models.h"

namespace tensorgrad::detail {

namespace {

template <class M>
bool attends(const M& model) {
  if constexpr (std::is_same_v<M, LanguageModel>) {
    for (const LanguageModelLayer& layer : model.layers)
      if (layer.attention) return true;
    return false;
  } else {
    return std::is_same_v<M, Transformer>;
  }
}

// Programs over one set of parameters. The root is compiled by the constructor, the others at their
// first use.
template <class M>
class ModelProgram : public TextProgram {
 public:
  ModelProgram(const TextModelConfig& config, M model, std::int64_t batch, TrainingOptions options)
      : TextProgram(config),
        batch_(batch),
        capacity_(attends(model) ? config.context : 0),
        progress_(options.progress) {
    options.inputs = {{"tokens", {batch, config.context}, i32},
                      {"targets", {batch, config.context}, i32}};
    state_ = model.state(1, capacity_, Site{});
    root_.template emplace<Training<M>>(
        compile(std::move(model), options, [](const M& m, const Inputs& in) {
          return cross_entropy(m(in["tokens"]), in["targets"]);
        }));
  }

  ModelProgram(const TextModelConfig& config, M model, std::int64_t capacity,
               ForwardOptions options)
      : TextProgram(config),
        capacity_(attends(model) ? (capacity > 0 ? capacity : config.context) : 0) {
    state_ = model.state(1, capacity_, Site{});
    options.inputs = with_state(state_, {{"tokens", {1, 1}, i32}});
    root_.template emplace<Forward<M>>(compile_forward(std::move(model), options, listen));
  }

  TrainingHandle& training() override { return std::get<Training<M>>(root_); }

  ForwardHandle& evaluation() override {
    if (!evaluation_) {
      const Shape shape{batch_, config().context};
      evaluation_ = std::get<Training<M>>(root_).attach(
          {.inputs = {{"tokens", shape, i32}, {"targets", shape, i32}, {"mask", shape}},
           .progress = progress_},
          [](const M& m, const Inputs& in) {
            return masked_cross_entropy(m(in["tokens"]), in["targets"], in["mask"]);
          });
    }
    return *evaluation_;
  }

  ForwardHandle& next() override {
    if (auto* own = std::get_if<Forward<M>>(&root_)) return *own;
    if (!next_)
      next_ = std::get<Training<M>>(root_).attach(
          {.inputs = with_state(state_, {{"tokens", {1, 1}, i32}}), .progress = progress_}, listen);
    return *next_;
  }

  std::int64_t capacity() const override { return capacity_; }
  StateSpec state() const override { return state_; }

 private:
  static Outputs listen(const M& m, const Inputs& in) { return m.step(in["tokens"], in); }

  std::int64_t batch_ = 0, capacity_;
  CompileCallback progress_;
  StateSpec state_;
  std::variant<std::monostate, Training<M>, Forward<M>> root_;
  std::optional<Forward<M>> evaluation_, next_;
};

}  // namespace

std::shared_ptr<TextProgram> text_training(const TextModelConfig& config, std::int64_t batch,
                                           TrainingOptions options) {
  return text::with_model(config, [&](auto model) -> std::shared_ptr<TextProgram> {
    return std::make_shared<ModelProgram<decltype(model)>>(config, std::move(model), batch,
                                                           std::move(options));
  });
}

std::shared_ptr<TextProgram> text_generation(const TextModelConfig& config, std::int64_t capacity,
                                             ForwardOptions options) {
  return text::with_model(config, [&](auto model) -> std::shared_ptr<TextProgram> {
    return std::make_shared<ModelProgram<decltype(model)>>(config, std::move(model), capacity,
                                                           std::move(options));
  });
}

}  // namespace tensorgrad::detail
