// Finds the op that made the first non-finite value of a failed step. Parameters and inputs are
// still those of that step, so the step runs again with every value kept.
#include <cmath>
#include <utility>

#include "compile/read_arrays.h"
#include "compile/training.h"
#include "ir/primitive.h"
#include "schedule/operand.h"
#include "support/fail.h"
#include "support/integers.h"

namespace tensorgrad::detail {

using ir::NodeId;
using ir::Result;

namespace {

enum class Health { finite, infinite, nan };

Health health_of(std::span<const float> values) {
  Health worst = Health::finite;
  for (const float x : values) {
    if (std::isnan(x)) return Health::nan;
    if (std::isinf(x)) worst = Health::infinite;
  }
  return worst;
}

Health health_of(const Array& array) {
  return array.dtype() == DType::f32 ? health_of(array.floats()) : Health::finite;
}

const char* word(Health health) { return health == Health::nan ? "NaN" : "infinite"; }

// Walks from the loss, or else from the first bad gradient, back to a node whose operands are
// finite. Reads one value after the other: first `starts_`, then the operands of node `at_`.
class Walk : public std::enable_shared_from_this<Walk> {
 public:
  Walk(runtime::Device& device, std::shared_ptr<const Executable> executable)
      : device_(device), executable_(std::move(executable)) {
    starts_.push_back({graph().find(Result::Kind::output, trace::kLossOutput), "the loss"});
    for (const Result& result : graph().results)
      if (result.kind == Result::Kind::gradient)
        starts_.push_back({result.node, fmt::format("the gradient of {}", result.name)});
  }

  // The text, or none if the loss and all gradients are finite.
  Completion<std::string> run() {
    advance();
    return done_;
  }

 private:
  struct Start {
    NodeId node;
    std::string what;
  };

  const ir::Graph& graph() const { return executable_->made.plan.graph; }

  // A loop, because paths may be longer than the stack is deep.
  void advance() {
    try {
      while (!done_.ready()) {
        const Completion<Health> answer = health(next());
        if (!answer.ready())
          return answer.then([self = shared_from_this()](const Completion<Health>& late) {
            try {
              self->take(late.get());
              self->advance();
            } catch (...) {
              self->done_.set_error(std::current_exception());
            }
          });
        take(answer.get());
      }
    } catch (...) {
      done_.set_error(std::current_exception());
    }
  }

  NodeId next() const { return at_ < 0 ? starts_[index_].node : graph()[at_].inputs[index_]; }

  void take(Health health) {
    const std::size_t index = index_++;
    if (at_ < 0) {
      if (health != Health::finite) {
        head_ = fmt::format("{} is {}", starts_[index].what, word(health));
        look_at(starts_[index].node, health);
      } else if (index_ == starts_.size()) {
        done_.set("");
      }
      return;
    }
    if (health > worst_) worst_ = health, worst_operand_ = graph()[at_].inputs[index];
    look_on();
  }

  void look_at(NodeId node, Health health) {
    at_ = schedule::base_of(graph(), node);
    now_ = health;
    index_ = 0;
    worst_ = Health::finite;
    look_on();
  }
  void look_on() {
    if (index_ < graph()[at_].inputs.size()) return;
    if (worst_ == Health::finite)
      done_.set(text());
    else
      look_at(worst_operand_, worst_);
  }

  Completion<Health> health(NodeId id) const {
    const NodeId base = schedule::base_of(graph(), id);
    const auto& place = executable_->made.plan.places[usize(base)];
    if (!place) return Health::finite;  // a constant; if infinite, then on purpose
    return read_arrays(device_, {{.name = "value",
                                  .what = "a value of the failed step",
                                  .buffer = executable_->spaces[usize(place->space)],
                                  .offset = place->offset,
                                  .type = graph()[base].type}})
        .map([](const NamedArrays& arrays) { return health_of(arrays.at("value")); });
  }

  std::string text() const {
    const ir::Node& node = graph()[at_];
    if (ir::is_leaf(node))
      return fmt::format("{}: the {} '{}' contains {} values", head_, node.op->name,
                         node.as<ir::LeafAttrs>().name, word(now_));
    const ir::CallSite& site = graph().sites[usize(node.site)];
    std::string op(node.op->name);
    if (op == "reduce_" + site.composite)
      op = site.composite;  // the name that the user called
    else if (!site.composite.empty())
      op += fmt::format(" (in {})", site.composite);
    return user_message(
        head_, fmt::format("{} produced the first {} value from finite operands", op, word(now_)),
        "parameters and optimizer state are unchanged by this step", site.scope, site.file,
        site.line);
  }

  runtime::Device& device_;
  std::shared_ptr<const Executable> executable_;
  Completion<std::string> done_;
  std::vector<Start> starts_;
  std::string head_;
  NodeId at_ = -1;         // -1 among the starts
  Health now_{};           // of node at_
  std::size_t index_ = 0;  // of the start or the operand that is read
  Health worst_{};         // of the operands so far
  NodeId worst_operand_ = -1;
};

// If loss and gradients are finite: names the parameter that the update would have spoiled.
std::string text_of_update(const NamedArrays& candidate, const Parameters& parameters,
                           const ParameterLayout& layout) {
  const auto message = [](const std::string& what) {
    return user_message(
        "the update", fmt::format("{}; the loss and the gradients are finite", what),
        "a smaller learning rate, or a larger eps of Adam? parameters and optimizer state are "
        "unchanged by this step",
        "", "", 0);
  };
  for (const auto& [name, values] : candidate)
    for (const Parameter& p : parameters.list) {
      if (p.frozen) continue;
      const auto offset = usize(layout.layout.find(p.name)->offset);
      const Health now = health_of(values.floats().subspan(offset, usize(p.shape.count())));
      if (now != Health::finite)
        return message(fmt::format("makes parameter {} {}", p.name, word(now)));
    }
  return message("makes a parameter or the optimizer state infinite or NaN");
}

Completion<NamedArrays> read_candidate(runtime::Device& device, const Executable& executable) {
  const schedule::Plan& plan = executable.made.plan;
  for (std::size_t i = 0; i < plan.graph.results.size(); ++i) {
    const Result& result = plan.graph.results[i];
    if (result.kind == Result::Kind::output && result.name == optim::kCandidateOutput)
      return read_arrays(device, {{.name = result.name,
                                   .what = "the updated parameters",
                                   .buffer = executable.outputs,
                                   .offset = plan.results[i].offset,
                                   .type = plan.graph[result.node].type}});
  }
  return NamedArrays{};
}

}  // namespace

std::vector<TaskStep> TrainingProgram::diagnose_steps(const std::shared_ptr<std::string>& text) {
  const auto self = shared_from_this();
  const auto built = std::make_shared<std::shared_ptr<Executable>>();
  const auto compile = [this, self, built](Kind kind) {
    return build(kind).map([built](const Built& now) {
      *built = now.executable;
      return Done{};
    });
  };
  const auto run_again = [this, self, built] {
    (*built)->spaces = spaces_of(**built);
    driver_.device().submit((*built)->made.loaded, (*built)->spaces);
  };
  const auto walk = [this, run_again, built, text] {
    run_again();
    return std::make_shared<Walk>(driver_.device(), *built)->run().map([text](std::string& why) {
      *text = std::move(why);
      return Done{};
    });
  };
  const auto update = [this, run_again, built, text] {
    run_again();
    return read_candidate(driver_.device(), **built)
        .map([this, text](const NamedArrays& candidate) {
          *text = text_of_update(candidate, state().parameters(), state().layout());
          return Done{};
        });
  };
  const auto unless_found = [text](auto step) {
    return [text, step] { return text->empty() ? step() : Completion<Done>(Done{}); };
  };
  return {[compile] { return compile(Kind::diagnosing); }, walk,
          unless_found([compile] { return compile(Kind::diagnosing_update); }),
          unless_found(update)};
}

}  // namespace tensorgrad::detail
