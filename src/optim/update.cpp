#include "optim/update.h"

#include <cmath>

#include "tensorgrad/ops.h"

namespace tensorgrad::optim {

namespace {

using ir::Result;

class Update {
 public:
  Update(ops::Builder& builder, const UpdateOptions& options) : builder_(builder), options_(options) {}

  void run(const Tensor& loss, std::vector<Trained> trained) {
    if (options_.non_finite != NonFinite::ignore) guard(loss, trained);
    if (options_.accumulate > 1 && !accumulate(trained)) return;
    for (Trained& t : trained)
      if (t.normalize) t.gradient = t.gradient / (norm_of({t}) + 1e-6f);
    if (options_.clip_grad_norm > 0) clip(trained);
    rate_ = builder_.leaf("input", ops::Builder::kRateInput, {DType::f32, {}});
    std::visit([&](const auto& optimizer) { apply(optimizer, trained); }, options_.optimizer);
  }

 private:
  Tensor state(const std::string& name, const Tensor& like) {
    return builder_.leaf("state", name, {like.dtype(), like.shape()});
  }

  // Writes `value` into the parameter or state of that name, unless the guard forbids it.
  void write(const std::string& name, const Tensor& before, const Tensor& value) {
    const Tensor kept = may_write_.valid() ? where(may_write_, value, before) : value;
    write_always(name, kept);
  }
  void write_always(const std::string& name, const Tensor& value) {
    builder_.graph.results.push_back({Result::Kind::update, name, TensorAccess::node(value)});
  }
  void output(const char* name, const Tensor& value) {
    builder_.graph.results.push_back({Result::Kind::output, name, TensorAccess::node(value)});
  }

  // Under `fail` the flag stays set, so that steps queued behind a bad one change nothing.
  void guard(const Tensor& loss, const std::vector<Trained>& trained) {
    Tensor bad = sum(cast(logical_not(is_finite(loss)), i32));
    for (const Trained& t : trained) bad = bad + sum(cast(logical_not(is_finite(t.gradient)), i32));
    const Tensor finite = equal(bad, 0);
    output(kFiniteOutput, finite);
    may_write_ = finite;
    if (options_.non_finite == NonFinite::fail) {
      const Tensor failed = builder_.leaf("state", kFailedState, {DType::i32, {}});
      may_write_ = logical_and(finite, equal(failed, 0));
      write_always(kFailedState, where(finite, failed, 1));
    }
  }

  // Adds this step's share to the sums. Returns whether the step applies them.
  bool accumulate(std::vector<Trained>& trained) {
    for (Trained& t : trained) {
      const std::string name = "accumulated:" + t.name;
      const Tensor before = state(name, t.value);
      const Tensor total = before + t.gradient * (1.0f / static_cast<float>(options_.accumulate));
      if (options_.applies)
        write_always(name, zeros(before.shape()));
      else
        write(name, before, total);
      t.gradient = total;
    }
    return options_.applies;
  }

  static Tensor norm_of(const std::vector<Trained>& trained) {
    Tensor total;
    for (const Trained& t : trained) {
      const Tensor squares = sum(t.gradient * t.gradient);
      total = total.valid() ? total + squares : squares;
    }
    return sqrt(total);
  }

  void clip(std::vector<Trained>& trained) {
    if (trained.empty()) return;
    const Tensor norm = norm_of(trained);
    output(kNormOutput, norm);
    const Tensor scale = minimum(1.0f, options_.clip_grad_norm / (norm + 1e-6f));
    for (Trained& t : trained) t.gradient = t.gradient * scale;
  }

  void apply(const Sgd& sgd, const std::vector<Trained>& trained) {
    for (const Trained& t : trained) {
      Tensor g = t.gradient;
      if (sgd.weight_decay != 0 && t.decay) g = g + t.value * sgd.weight_decay;
      if (sgd.momentum != 0) {
        const std::string name = "momentum:" + t.name;
        const Tensor before = state(name, t.value);
        const Tensor velocity = before * sgd.momentum + g;
        write(name, before, velocity);
        g = sgd.nesterov ? g + velocity * sgd.momentum : velocity;
      }
      write(t.name, t.value, t.value - g * rate_);
    }
  }

  void apply(const Adam& adam, const std::vector<Trained>& trained) {
    apply_adam(adam.beta1, adam.beta2, adam.eps, 0, trained);
  }
  void apply(const AdamW& adam, const std::vector<Trained>& trained) {
    apply_adam(adam.beta1, adam.beta2, adam.eps, adam.weight_decay, trained);
  }

  // m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2; p -= lr / (1 - b1^t) * m / (sqrt(v / (1 - b2^t)) + eps)
  void apply_adam(float beta1, float beta2, float eps, float decay, const std::vector<Trained>& trained) {
    const Tensor t = count_updates();
    // 1 - b^t without the cancellation at small t.
    const auto correction = [&](float beta) { return -expm1(t * std::log(static_cast<double>(beta))); };
    const Tensor rate = rate_ / correction(beta1);
    const Tensor root = rsqrt(correction(beta2));
    for (const Trained& p : trained) {
      const Tensor m_before = state("m:" + p.name, p.value), v_before = state("v:" + p.name, p.value);
      const Tensor m = m_before * beta1 + p.gradient * (1 - beta1);
      const Tensor v = v_before * beta2 + p.gradient * p.gradient * (1 - beta2);
      Tensor value = p.value;
      if (decay != 0 && p.decay) value = value - value * (rate_ * decay);
      value = value - rate * (m / (sqrt(v) * root + eps));
      write("m:" + p.name, m_before, m);
      write("v:" + p.name, v_before, v);
      write(p.name, p.value, value);
    }
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
  Tensor may_write_;  // bool scalar; invalid: always
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

}  // namespace

void check_optimizer(const Optimizer& optimizer) {
  std::visit([](const auto& own) { check(own); }, optimizer);
}

void append_update(ops::Builder& builder, const Tensor& loss, std::vector<Trained> trained,
                   const UpdateOptions& options) {
  ops::BuildScope scope(builder);
  builder.forced_site = 0;
  Update(builder, options).run(loss, std::move(trained));
  builder.forced_site = -1;
}

}  // namespace tensorgrad::optim
