#include "text/program.h"

#include <optional>
#include <type_traits>

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

template <class M>
Outputs listen(const M& m, const Inputs& in) {
  return m.step(in["tokens"], in);
}

// Programs over one set of parameters. Root is Training<M> or Forward<M>.
template <class M, class Root>
class ModelProgram : public TextProgram {
 public:
  struct Parts {
    TextModelConfig config;
    std::int64_t batch = 0, capacity = 0;
    CompileCallback progress;
    StateSpec state;
  };

  ModelProgram(Parts parts, Root root)
      : TextProgram(std::move(parts.config)),
        batch_(parts.batch),
        capacity_(parts.capacity),
        progress_(std::move(parts.progress)),
        state_(std::move(parts.state)),
        root_(std::move(root)) {}

  TrainingHandle& training() override {
    if constexpr (std::is_same_v<Root, Training<M>>)
      return root_;
    else
      internal_error("a program for generation was asked to train");
  }

  Future<ForwardHandle*> evaluation() override {
    return kept(evaluation_, [this] {
      const Shape shape{batch_, config().context};
      return root_.attach_async(
          {.inputs = {{"tokens", shape, i32}, {"targets", shape, i32}, {"mask", shape}},
           .progress = progress_},
          [](const M& m, const Inputs& in) {
            return masked_cross_entropy(m(in["tokens"]), in["targets"], in["mask"]);
          });
    });
  }

  Future<ForwardHandle*> next() override {
    if constexpr (std::is_same_v<Root, Forward<M>>)
      return {Completion<ForwardHandle*>(&root_), nullptr, "compiling"};
    else
      return kept(next_, [this] {
        return root_.attach_async(
            {.inputs = with_state(state_, {{"tokens", {1, 1}, i32}}), .progress = progress_},
            listen<M>);
      });
  }

  std::int64_t capacity() const override { return capacity_; }
  StateSpec state() const override { return state_; }

 private:
  using Attached = std::optional<Future<Forward<M>>>;

  // Compiles at the first use, and again if that failed.
  template <class Make>
  Future<ForwardHandle*> kept(Attached& attached, Make make) {
    if (attached && attached->ready()) try {
        attached->get();
      } catch (...) {
        attached.reset();
      }
    if (!attached) attached = make();
    return attached->map([](Forward<M>& made) -> ForwardHandle* { return &made; });
  }

  std::int64_t batch_, capacity_;
  CompileCallback progress_;
  StateSpec state_;
  Root root_;
  Attached evaluation_, next_;
};

}  // namespace

Future<std::shared_ptr<TextProgram>> text_training(const TextModelConfig& config,
                                                   std::int64_t batch, TrainingOptions options) {
  return text::with_model(config, [&]<class M>(M model) {
    using Made = ModelProgram<M, Training<M>>;
    typename Made::Parts parts{.config = config,
                               .batch = batch,
                               .capacity = attends(model) ? config.context : 0,
                               .progress = options.progress,
                               .state = {}};
    parts.state = model.state(1, parts.capacity, Site{});
    options.inputs = {{"tokens", {batch, config.context}, i32},
                      {"targets", {batch, config.context}, i32}};
    return compile_async(std::move(model), options,
                         [](const M& m, const Inputs& in) {
                           return cross_entropy(m(in["tokens"]), in["targets"]);
                         })
        .map([parts](Training<M>& root) -> std::shared_ptr<TextProgram> {
          return std::make_shared<Made>(parts, std::move(root));
        });
  });
}

Future<std::shared_ptr<TextProgram>> text_generation(const TextModelConfig& config,
                                                     std::int64_t capacity,
                                                     ForwardOptions options) {
  return text::with_model(config, [&]<class M>(M model) {
    using Made = ModelProgram<M, Forward<M>>;
    const std::int64_t positions = capacity > 0 ? capacity : config.context;
    typename Made::Parts parts{.config = config,
                               .capacity = attends(model) ? positions : 0,
                               .progress = options.progress,
                               .state = {}};
    parts.state = model.state(1, parts.capacity, Site{});
    options.inputs = with_state(parts.state, {{"tokens", {1, 1}, i32}});
    return compile_forward_async(std::move(model), options, listen<M>)
        .map([parts](Forward<M>& root) -> std::shared_ptr<TextProgram> {
          return std::make_shared<Made>(parts, std::move(root));
        });
  });
}

}  // namespace tensorgrad::detail
