#include "optim/update.h"

#include <algorithm>
#include <cmath>

#include "tensorgrad/ops.h"

namespace tensorgrad::optim {

namespace {

using ir::Result;

class Update {
 public:
  Update(ops::Builder& builder, const UpdateOptions& options) : builder_(builder), options_(options) {}

  void run(const Tensor& loss, const std::vector<Trained>& trained, std::int64_t elements) {
    value_ = builder_.leaf("parameter", ir::kFlat, {DType::f32, {elements}});
    decaying_ = 0;
    for (const Trained& t : trained)
      if (t.decay) decaying_ = std::max(decaying_, t.offset + t.gradient.count());
    gradient_ = flatten(trained, elements, [](const Trained& t) { return reshape(t.gradient, {t.gradient.count()}); });
    builder_.graph.results.push_back({Result::Kind::gradient, ir::kFlat, TensorAccess::node(gradient_)});
    if (options_.non_finite != NonFinite::ignore) guard(loss);
    count_steps();
    if (options_.accumulate > 1 && !accumulate()) return;
    if (std::any_of(trained.begin(), trained.end(), [](const Trained& t) { return t.normalize; }))
      gradient_ = flatten(trained, elements, [&](const Trained& t) {
        const Tensor g = narrow(gradient_, 0, t.offset, t.gradient.count());
        return t.normalize ? g / (sqrt(sum(g * g)) + 1e-6f) : g;
      });
    if (options_.clip_grad_norm > 0) clip();
    rate_ = builder_.leaf("input", ops::Builder::kRateInput, {DType::f32, {}});
    std::visit([&](const auto& optimizer) { apply(optimizer); }, options_.optimizer);
  }

 private:
  // All gradients in the places of their parameters, zeros between them.
  template <class Part>
  static Tensor flatten(const std::vector<Trained>& trained, std::int64_t elements, const Part& part) {
    std::vector<Tensor> parts;
    for (std::size_t i = 0; i < trained.size(); ++i) {
      const Trained& t = trained[i];
      const Tensor g = part(t);
      const std::int64_t next = i + 1 < trained.size() ? trained[i + 1].offset : elements;
      parts.push_back(pad(g, 0, 0, next - t.offset - t.gradient.count()));
    }
    if (parts.size() == 1) parts.push_back(zeros({0}));  // a concat all the same, for the plan to see
    return concat(parts, 0);
  }

  // State beside every parameter.
  static std::string flat(const char* kind) { return std::string(kind) + ":" + ir::kFlat; }
  Tensor state(const char* kind) { return builder_.leaf("state", flat(kind), {DType::f32, value_.shape()}); }

  // Writes `value` into the parameters or state of that name, unless the guard forbids it.
  void write(const std::string& name, const Tensor& before, const Tensor& value) {
    write_always(name, may_write_.valid() ? where(may_write_, value, before) : value);
  }
  void write_always(const std::string& name, const Tensor& value) {
    builder_.graph.results.push_back({Result::Kind::update, name, TensorAccess::node(value)});
  }
  void output(const char* name, const Tensor& value) {
    builder_.graph.results.push_back({Result::Kind::output, name, TensorAccess::node(value)});
  }

  // Under `fail`, steps queued behind a bad one change nothing; they count how far behind it they are, so that whoever
  // reads one of them learns which it was.
  void guard(const Tensor& loss) {
    const Tensor bad = sum(cast(logical_not(is_finite(gradient_)), i32)) + cast(logical_not(is_finite(loss)), i32);
    Tensor failed = where(equal(bad, 0), 0, 1);
    if (options_.non_finite == NonFinite::fail) {
      const Tensor before = builder_.leaf("state", kFailedState, {DType::i32, {}});
      failed = where(equal(before, 0), failed, before + 1);
      write_always(kFailedState, failed);
    }
    output(kFailedOutput, failed);
    may_write_ = equal(failed, 0);
  }

  // Where ids can be bad: a step with one is not counted.
  void count_steps() {
    const auto& nodes = builder_.graph.nodes;
    if (std::none_of(nodes.begin(), nodes.end(), [](const ir::Node& node) { return ir::checks_ids(node); })) return;
    write_always(kStepsState, builder_.leaf("state", kStepsState, {DType::i32, {}}) + 1);
  }

  // Adds this step's share to the sums. Returns whether the step applies them.
  bool accumulate() {
    const Tensor before = state("accumulated");
    gradient_ = before + gradient_ * (1.0f / static_cast<float>(options_.accumulate));
    if (options_.applies)
      write_always(flat("accumulated"), zeros(before.shape()));
    else
      write(flat("accumulated"), before, gradient_);
    return options_.applies;
  }

  void clip() {
    const Tensor norm = sqrt(sum(gradient_ * gradient_));
    output(kNormOutput, norm);
    gradient_ = gradient_ * minimum(1.0f, options_.clip_grad_norm / (norm + 1e-6f));
  }

  // The factor for the parameters that decay, 0 for the others.
  Tensor decay_of(const Tensor& factor) const {
    return where(arange(value_.count()) < decaying_, factor, 0.0f);
  }

  void apply(const Sgd& sgd) {
    Tensor g = gradient_;
    if (sgd.weight_decay != 0 && decaying_ > 0) g = g + value_ * decay_of(full({}, sgd.weight_decay));
    if (sgd.momentum != 0) {
      const Tensor before = state("momentum");
      const Tensor velocity = before * sgd.momentum + g;
      write(flat("momentum"), before, velocity);
      g = sgd.nesterov ? g + velocity * sgd.momentum : velocity;
    }
    write(ir::kFlat, value_, value_ - g * rate_);
  }

  void apply(const Adam& adam) { apply_adam(adam.beta1, adam.beta2, adam.eps, 0); }
  void apply(const AdamW& adam) { apply_adam(adam.beta1, adam.beta2, adam.eps, adam.weight_decay); }

  // m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2; p -= lr / (1 - b1^t) * m / (sqrt(v / (1 - b2^t)) + eps)
  void apply_adam(float beta1, float beta2, float eps, float decay) {
    const Tensor t = count_updates();
    // 1 - b^t without the cancellation at small t.
    const auto correction = [&](float beta) { return -expm1(t * std::log(static_cast<double>(beta))); };
    const Tensor rate = rate_ / correction(beta1);
    const Tensor root = rsqrt(correction(beta2));
    const Tensor m_before = state("m"), v_before = state("v");
    const Tensor m = m_before * beta1 + gradient_ * (1 - beta1);
    const Tensor v = v_before * beta2 + gradient_ * gradient_ * (1 - beta2);
    Tensor value = value_;
    if (decay != 0 && decaying_ > 0) value = value - value * decay_of(rate_ * decay);
    value = value - rate * (m / (sqrt(v) * root + eps));
    write(flat("m"), m_before, m);
    write(flat("v"), v_before, v);
    write(ir::kFlat, value_, value);
  }

  // The number of this update, from 1; skipped steps do not count.
  Tensor count_updates() {
    const Tensor before = builder_.leaf("state", kUpdatesState, {DType::f32, {}});
    const Tensor now = before + 1.0f;
    write(kUpdatesState, before, now);
    return now;
  }

  ops::Builder& builder_;
  const UpdateOptions& options_;
  Tensor value_, gradient_;    // flat
  std::int64_t decaying_ = 0;  // the first so many elements decay
  Tensor may_write_;           // bool scalar; invalid: always
  Tensor rate_;
};

// NaN fails every comparison, so each rule is written as what must hold.
void require(bool holds, const char* optimizer, const char* rule, float value) {
  if (!holds) user_error("{}: {}: {}", optimizer, rule, value);
}

void check(const Sgd& sgd) {
  require(sgd.momentum >= 0, "Sgd", "momentum must not be negative", sgd.momentum);
  require(sgd.weight_decay >= 0, "Sgd", "weight_decay must not be negative", sgd.weight_decay);
  if (sgd.nesterov && sgd.momentum == 0) user_error("Sgd: nesterov needs a momentum\n  hint: .momentum = 0.9f");
}

template <class A>
void check_adam(const char* name, const A& adam) {
  require(adam.beta1 >= 0 && adam.beta1 < 1, name, "beta1 must be at least 0 and below 1", adam.beta1);
  require(adam.beta2 >= 0 && adam.beta2 < 1, name, "beta2 must be at least 0 and below 1", adam.beta2);
  require(adam.eps >= 0, name, "eps must not be negative", adam.eps);
}

void check(const Adam& adam) { check_adam("Adam", adam); }
void check(const AdamW& adam) {
  check_adam("AdamW", adam);
  require(adam.weight_decay >= 0, "AdamW", "weight_decay must not be negative", adam.weight_decay);
}

// The graph with each trained parameter read out of the flat tensor instead of a leaf of its own, so
// that the update overwrites what everything else has read.
ir::Graph with_flat_parameters(const ir::Graph& graph, const std::vector<Trained>& trained, std::int64_t elements) {
  ops::Builder builder;
  ops::BuildScope scope(builder);
  builder.graph.sites = graph.sites;
  builder.forced_site = 0;
  std::vector<ir::NodeId> renamed(static_cast<std::size_t>(graph.size()), -1);
  for (ir::NodeId id = 0; id < graph.size(); ++id) {
    ir::Node node = graph[id];
    ir::NodeId made = -1;
    if (node.op->name == "parameter") {
      const std::string& name = node.as<ir::LeafAttrs>().name;
      const auto own = std::find_if(trained.begin(), trained.end(), [&](const Trained& t) { return t.name == name; });
      if (own != trained.end() || name == ir::kFlat) {
        const Tensor flat = builder.leaf("parameter", ir::kFlat, {DType::f32, {elements}});
        const std::int64_t offset = own != trained.end() ? own->offset : 0;
        made = TensorAccess::node(reshape(narrow(flat, 0, offset, node.type.shape.count()), node.type.shape));
      }
    }
    if (made < 0) {
      made = builder.graph.size();
      for (ir::NodeId& input : node.inputs) input = renamed[static_cast<std::size_t>(input)];
      builder.graph.nodes.push_back(std::move(node));
    }
    renamed[static_cast<std::size_t>(id)] = made;
  }
  builder.graph.results = graph.results;
  for (Result& result : builder.graph.results) result.node = renamed[static_cast<std::size_t>(result.node)];
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
  builder.graph = with_flat_parameters(builder.graph, trained, elements);
}

}  // namespace tensorgrad::optim
