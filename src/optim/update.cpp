#include "optim/update.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <unordered_map>

#include "ir/rebuild.h"
#include "ops/table.h"
#include "tensorgrad/ops.h"

namespace tensorgrad::optim {

namespace {

using ir::Result;

struct StateWrite {
  ir::Core kind = ir::Core::state;  // or flat_state
  std::string name;
  Tensor value;
};

// What a step would write. If `value` is invalid, the parameters do not change.
struct Next {
  Tensor value;
  std::vector<StateWrite> state;
  // State that can be infinite while the value is finite. All other non-finite state makes the
  // value non-finite.
  Tensor hidden = {};
};

// A view of the flat tensors: unchanged, or the same memory with another shape.
using Lens = std::function<Tensor(const Tensor&)>;
Tensor plain(const Tensor& flat) { return flat; }

class Update {
 public:
  Update(ops::Builder& builder, const UpdateOptions& options)
      : builder_(builder), options_(options) {}

  void run(const Tensor& loss, const std::vector<Trained>& trained, std::int64_t elements) {
    value_ = builder_.leaf(ir::Core::flat_parameters, "", {DType::f32, {elements}});
    for (const Trained& t : trained)
      if (t.decay) decaying_ = std::max(decaying_, t.offset + t.gradient.count());
    const auto own = [](const Trained& t) { return reshape(t.gradient, {t.gradient.count()}); };
    gradient_ = flatten(trained, elements, own);
    builder_.graph.results.push_back(
        {Result::Kind::flat_gradient, "", TensorAccess::node(gradient_)});
    accumulates_ = options_.accumulate > 1;
    if (options_.purpose != Purpose::accumulate) prepare(trained, elements);

    if (options_.purpose == Purpose::candidate) {
      output(kCandidateOutput, next(plain).value);
      return;
    }
    // The guard and the update compute the same values twice on purpose: storing them would cost
    // more. The guard works on a reshaped view, so that value numbering does not merge the two.
    const Lens apart = [&](const Tensor& flat) { return reshape(flat, {1, elements}); };
    if (options_.non_finite != NonFinite::ignore) guard(loss, apart);
    count_steps();
    write(next(plain));
    if (accumulates_ && options_.purpose == Purpose::apply) end_round();
  }

 private:
  // Concatenates the gradients in the order of the parameters, with zeros in the gaps.
  template <class Part>
  Tensor flatten(const std::vector<Trained>& trained, std::int64_t elements, const Part& part) {
    std::vector<ir::NodeId> parts;
    for (std::size_t i = 0; i < trained.size(); ++i) {
      const Trained& t = trained[i];
      const Tensor g = part(t);
      const std::int64_t next = i + 1 < trained.size() ? trained[i + 1].offset : elements;
      parts.push_back(TensorAccess::node(pad(g, 0, 0, next - t.offset - t.gradient.count())));
    }
    // A concat even of one part: the parts of the flat gradient are computed into its memory.
    return builder_.tensor(
        builder_.graph.append(ops::primitive(ir::OpId::concat), parts, ir::AxisAttrs{.axis = 0}));
  }

  // State that is kept for every parameter.
  Tensor flat_state(const std::string& name) {
    return builder_.leaf(ir::Core::flat_state, name, {DType::f32, value_.shape()});
  }

  // Writes parameters and state, unless the guard forbids it.
  void write(const Next& next) {
    for (const StateWrite& state : next.state) write(state);
    if (next.value.valid())
      write_always(Result::Kind::flat_update, "", allowed(value_, next.value));
  }
  void write(const StateWrite& state) {
    const Tensor before =
        builder_.leaf(state.kind, state.name, {state.value.dtype(), state.value.shape()});
    write_always(kind_of(state), state.name, allowed(before, state.value));
  }
  static Result::Kind kind_of(const StateWrite& state) {
    return state.kind == ir::Core::flat_state ? Result::Kind::flat_update : Result::Kind::update;
  }
  Tensor allowed(const Tensor& before, const Tensor& value) const {
    return may_write_.valid() ? where(may_write_, value, before) : value;
  }

  // Resets the sums to zero. Under `fail`, a bad step keeps them, and the host drops them when the
  // next round starts. Under `skip`, only this write resets them, so it is unconditional.
  void end_round() {
    const Tensor none = zeros(value_.shape());
    if (options_.non_finite == NonFinite::skip)
      write_always(Result::Kind::flat_update, kSumsState, none);
    else
      write({ir::Core::flat_state, kSumsState, none});
  }
  void write_always(Result::Kind kind, const std::string& name, const Tensor& value) {
    builder_.graph.results.push_back({kind, name, TensorAccess::node(value)});
  }
  void output(const char* name, const Tensor& value) {
    builder_.graph.results.push_back({Result::Kind::output, name, TensorAccess::node(value)});
  }

  // A step is bad if the loss, or anything it would write, is not finite; a non-finite gradient
  // makes the new values non-finite. Under `fail`, the steps queued behind a bad one change
  // nothing. They count how far behind it they are, so that reading any of them tells which step
  // failed.
  void guard(const Tensor& loss, const Lens& apart) {
    const Next checked = next(apart);
    // One value per element, because a single value is fused into the sum and several would be
    // stored. Halving prevents overflow.
    Tensor all = checked.value.valid() ? checked.value : gradient(apart);
    if (checked.hidden.valid()) all = all * 0.5f + checked.hidden * 0.5f;
    const Tensor good = is_finite(all);
    const Tensor bad = sum(cast(logical_not(good), i32)) + cast(logical_not(is_finite(loss)), i32);
    Tensor failed = where(equal(bad, 0), 0, 1);
    if (options_.non_finite == NonFinite::fail) {
      const Tensor before = builder_.leaf(ir::Core::state, kFailedState, {DType::i32, {}});
      failed = where(equal(before, 0), failed, before + 1);
      write_always(Result::Kind::update, kFailedState, failed);
    }
    output(kFailedOutput, failed);
    may_write_ = equal(failed, 0);
  }

  // Counts steps if the graph checks ids. A step with a bad id is not counted.
  void count_steps() {
    const auto& nodes = builder_.graph.nodes;
    if (std::none_of(nodes.begin(), nodes.end(),
                     [](const ir::Node& node) { return ir::checks_ids(node); }))
      return;
    write_always(Result::Kind::update, kStepsState,
                 builder_.leaf(ir::Core::state, kStepsState, {DType::i32, {}}) + 1);
  }

  // Prepares the rest of the optimizer's inputs: normalised gradients, the clip factor, the rate.
  void prepare(const std::vector<Trained>& trained, std::int64_t elements) {
    if (std::any_of(trained.begin(), trained.end(), [](const Trained& t) { return t.normalize; })) {
      const Tensor all = gradient(plain);
      gradient_ = flatten(trained, elements, [&](const Trained& t) {
        const Tensor g = narrow(all, 0, t.offset, t.gradient.count());
        return t.normalize ? g / (sqrt(sum(g * g)) + 1e-6f) : g;
      });
      is_averaged_ = true;
    }
    if (options_.clip_grad_norm > 0) {
      const Tensor g = gradient(plain), norm = sqrt(sum(g * g));
      output(kNormOutput, norm);
      clip_ = minimum(1.0f, options_.clip_grad_norm / (norm + 1e-6f));
    }
    rate_ = builder_.leaf(ir::Core::input, ops::Builder::kRateInput, {DType::f32, {}});
    const auto ones = [](const Trained& t) { return full({t.gradient.count()}, 1.0f); };
    if (divides_by_zero_gradients()) is_parameter_ = flatten(trained, elements, ones) > 0.0f;
  }

  // The gradient, averaged over the steps of a round, then clipped.
  Tensor gradient(const Lens& lens) {
    Tensor g = lens(gradient_);
    if (accumulates_ && !is_averaged_)
      g = lens(flat_state(kSumsState)) + g * (1.0f / static_cast<float>(options_.accumulate));
    return clip_.valid() ? g * clip_ : g;
  }

  Next next(const Lens& lens) {
    if (options_.purpose == Purpose::accumulate)
      return {{}, {{ir::Core::flat_state, kSumsState, gradient(lens)}}};
    return std::visit([&](const auto& optimizer) { return next_of(optimizer, lens); },
                      options_.optimizer);
  }

  // `factor` for the parameters that decay, 0 for the others.
  Tensor decay_of(const Tensor& factor, const Lens& lens) const {
    return where(lens(arange(value_.count())) < decaying_, factor, 0.0f);
  }

  Next next_of(const Sgd& sgd, const Lens& lens) {
    Next out;
    const Tensor value = lens(value_);
    Tensor g = gradient(lens);
    if (sgd.weight_decay != 0 && decaying_ > 0)
      g = g + value * decay_of(full({}, sgd.weight_decay), lens);
    if (sgd.momentum != 0) {
      const Tensor velocity = lens(flat_state("momentum")) * sgd.momentum + g;
      out.state.push_back({ir::Core::flat_state, "momentum", velocity});
      g = sgd.nesterov ? g + velocity * sgd.momentum : velocity;
    }
    out.value = value - g * rate_;
    return out;
  }

  Next next_of(const Adam& adam, const Lens& lens) { return next_of_adam(adam, 0, lens); }
  Next next_of(const AdamW& adam, const Lens& lens) {
    return next_of_adam(adam, adam.weight_decay, lens);
  }
  Next next_of(const NoOptimizer&, const Lens&) { return {}; }

  // m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2
  // p -= lr / (1 - b1^t) * m / (sqrt(v / (1 - b2^t)) + eps)
  // t is the number of this update, from 1; skipped steps do not count.
  template <class A>
  Next next_of_adam(const A& adam, float decay, const Lens& lens) {
    const Tensor update = builder_.leaf(ir::Core::state, kUpdatesState, {DType::i32, {}}) + 1;
    const Tensor t = cast(update, f32);
    // 1 - b^t without the cancellation at small t.
    const auto correction = [&](float beta) {
      return -expm1(t * std::log(static_cast<double>(beta)));
    };
    const Tensor rate = rate_ / correction(adam.beta1);
    const Tensor root = rsqrt(correction(adam.beta2));
    const Tensor g = gradient(lens);
    const Tensor m = lens(flat_state("m")) * adam.beta1 + g * (1 - adam.beta1);
    const Tensor v = lens(flat_state("v")) * adam.beta2 + g * g * (1 - adam.beta2);
    Tensor value = lens(value_);
    if (decay != 0 && decaying_ > 0) value = value - value * decay_of(rate_ * decay, lens);
    Tensor divisor = sqrt(v) * root + adam.eps;
    if (is_parameter_.valid()) divisor = where(lens(is_parameter_), divisor, 1.0f);
    value = value - rate * (m / divisor);
    // An infinite v divides m by infinity.
    return {value,
            {{ir::Core::state, kUpdatesState, update},
             {ir::Core::flat_state, "m", m},
             {ir::Core::flat_state, "v", v}},
            v};
  }

  // Without an eps, the gaps between parameters, where all is zero, would become NaN.
  bool divides_by_zero_gradients() const {
    constexpr float kSmallest =
        std::numeric_limits<float>::min();  // devices flush smaller values to 0
    if (const auto* adam = std::get_if<Adam>(&options_.optimizer)) return adam->eps < kSmallest;
    if (const auto* adam = std::get_if<AdamW>(&options_.optimizer)) return adam->eps < kSmallest;
    return false;
  }

  ops::Builder& builder_;
  const UpdateOptions& options_;
  Tensor value_, gradient_;    // flat; the gradient is not yet clipped
  std::int64_t decaying_ = 0;  // number of leading elements that decay
  bool accumulates_ = false, is_averaged_ = false;
  Tensor clip_;          // factor; invalid: none
  Tensor is_parameter_;  // flat: false in gaps; invalid: not needed
  Tensor may_write_;     // bool scalar; invalid: always
  Tensor rate_;
};

// NaN fails every comparison, so each rule states what must hold.
void require(bool holds, const char* optimizer, const char* rule, float value) {
  if (!holds) user_error("{}: {}: {}", optimizer, rule, value);
}

void check(const Sgd& sgd) {
  require(sgd.momentum >= 0, "Sgd", "momentum must not be negative", sgd.momentum);
  require(sgd.weight_decay >= 0, "Sgd", "weight_decay must not be negative", sgd.weight_decay);
  if (sgd.nesterov && sgd.momentum == 0)
    user_error("Sgd: nesterov needs a momentum\n  hint: .momentum = 0.9f");
}

template <class A>
void check_adam(const char* name, const A& adam) {
  require(adam.beta1 >= 0 && adam.beta1 < 1, name, "beta1 must be at least 0 and below 1",
          adam.beta1);
  require(adam.beta2 >= 0 && adam.beta2 < 1, name, "beta2 must be at least 0 and below 1",
          adam.beta2);
  require(adam.eps >= 0, name, "eps must not be negative", adam.eps);
}

void check(const NoOptimizer&) {}
void check(const Adam& adam) { check_adam("Adam", adam); }
void check(const AdamW& adam) {
  check_adam("AdamW", adam);
  require(adam.weight_decay >= 0, "AdamW", "weight_decay must not be negative", adam.weight_decay);
}

// Returns the graph with each trained parameter read from the flat tensor instead of its own leaf,
// so that the update overwrites what everything else has read.
ir::Graph with_flat_parameters(const ir::Graph& graph, const std::vector<Trained>& trained,
                               std::int64_t elements) {
  std::unordered_map<std::string_view, std::int64_t> offsets;
  for (const Trained& t : trained) offsets.emplace(t.name, t.offset);
  ops::Builder builder;
  ops::BuildScope scope(builder);
  builder.forced_site = 0;
  ir::rebuild(graph, builder.graph, [&](ir::NodeId, const ir::Node& node) -> ir::NodeId {
    const bool is_flat = node.op->core == ir::Core::flat_parameters;
    if (node.op->core != ir::Core::parameter && !is_flat) return ir::kKeep;
    const auto offset = offsets.find(node.as<ir::LeafAttrs>().name);
    if (offset == offsets.end() && !is_flat) return ir::kKeep;  // frozen
    const Tensor flat = builder.leaf(ir::Core::flat_parameters, "", {DType::f32, {elements}});
    if (is_flat) return TensorAccess::node(flat);
    const Shape& shape = node.type.shape;
    return TensorAccess::node(reshape(narrow(flat, 0, offset->second, shape.count()), shape));
  });
  return std::move(builder.graph);
}

}  // namespace

void check_optimizer(const Optimizer& optimizer) {
  std::visit([](const auto& own) { check(own); }, optimizer);
}

void append_update(ops::Builder& builder, const Tensor& loss, const std::vector<Trained>& trained,
                   std::int64_t elements, const UpdateOptions& options) {
  ops::BuildScope scope(builder);
  builder.forced_site = 0;
  Update(builder, options).run(loss, trained, elements);
  builder.forced_site = -1;
  for (const Trained& t : trained)
    builder.graph.flat.push_back({t.name, t.offset, t.gradient.count()});
  builder.replace(with_flat_parameters(builder.graph, trained, elements));
}

}  // namespace tensorgrad::optim
