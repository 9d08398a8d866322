#include "trace/trace.h"

#include "support/integers.h"
#include "support/text.h"

namespace tensorgrad {

Tensor Inputs::operator[](Name name) const {
  std::vector<std::string> names;
  for (const auto& [own, tensor] : items_) {
    if (own == name.text) return tensor;
    names.push_back(own);
  }
  const std::string near = nearest_name(name.text, names);
  throw UserError(user_message("input",
                               fmt::format("there is no input '{}': the inputs are {}", name.text,
                                           names.empty() ? "none" : join(names, ", ")),
                               near.empty() ? "" : fmt::format("'{}'?", near), "", name.site.file,
                               name.site.line));
}

namespace trace {

namespace {

void check_specs(const std::vector<InputSpec>& specs) {
  for (const InputSpec& spec : specs) {
    if (spec.name.empty() || spec.name[0] == '$')
      user_error("inputs: '{}' is not a name for an input: it must not be empty nor start with '$'",
                 spec.name);
    if (&spec != &specs.front())
      for (const InputSpec* other = &specs.front(); other != &spec; ++other)
        if (other->name == spec.name) user_error("inputs: the name '{}' is given twice", spec.name);
  }
}

Tensor check_loss(ops::Builder& builder, const Tensor& loss) {
  if (loss.dtype() == DType::f32 && loss.rank() == 0) return loss;
  const ir::Node& node = builder.graph[TensorAccess::node(loss)];
  const ir::CallSite& site = builder.graph.sites[usize(node.site)];
  throw UserError(user_message(
      "compile", fmt::format("the loss must be one f32 scalar: it is {}", node.type.text()),
      loss.dtype() == DType::f32 ? "mean(...) or sum(...) of it?" : "", site.scope, site.file,
      site.line));
}

}  // namespace

Tracer::Tracer(const TraceOptions& options)
    : options_(options),
      traced_{ops::Builder({}, options.training, options.model), {}},
      inputs_({}) {
  check_specs(options.inputs);
  std::vector<std::pair<std::string, Tensor>> inputs;
  for (const InputSpec& spec : options.inputs)
    inputs.emplace_back(spec.name,
                        builder().leaf(ir::Core::input, spec.name, {spec.dtype, spec.shape}));
  inputs_ = Inputs(std::move(inputs));
}

Traced Tracer::finish(const Outputs& outputs) && {
  if (outputs.items().empty()) user_error("compile: the function returned no output");
  ir::Graph& graph = builder().graph;
  for (const auto& [given, tensor] : outputs.items()) {
    const std::string name = !given.empty()        ? given
                             : options_.wants_loss ? kLossOutput
                                                   : kOnlyOutput;
    if (name[0] == '$') user_error("compile: the output's name '{}' starts with '$'", name);
    if (!tensor.valid() || TensorAccess::trace(tensor) != builder().id())
      user_error("compile: the output '{}' is not a tensor of this trace", name);
    if (graph.find(ir::Result::Kind::output, name) >= 0)
      user_error("compile: two outputs are named '{}'", name);
    graph.results.push_back({ir::Result::Kind::output, name, TensorAccess::node(tensor)});
    if (options_.wants_loss && name == kLossOutput) traced_.loss = check_loss(builder(), tensor);
  }
  if (options_.wants_loss && !traced_.loss.valid()) {
    std::vector<std::string> names;
    for (const auto& [name, tensor] : outputs.items()) names.push_back(name);
    user_error(
        "compile: none of the outputs is the loss: they are {}\n  hint: name one of them \"loss\"",
        join(names, ", "));
  }
  return std::move(traced_);
}

Traced trace(const TraceOptions& options, const detail::Trace& function) {
  Tracer tracer(options);
  const ops::BuildScope scope(tracer.builder());
  const Outputs outputs = function(tracer.inputs());
  return std::move(tracer).finish(outputs);
}

}  // namespace trace

}  // namespace tensorgrad
