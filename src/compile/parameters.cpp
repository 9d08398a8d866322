#include "compile/parameters.h"

#include "compile/initialise.h"
#include "support/fail.h"
#include "support/integers.h"
#include "support/text.h"
#include "trace/trace.h"

namespace tensorgrad::detail {

std::vector<std::string> Parameters::names() const {
  std::vector<std::string> out;
  for (const Parameter& p : list) out.push_back(p.name);
  return out;
}

Parameters collect_parameters(const FoundParams& found, std::uint64_t model) {
  Parameters out;
  std::map<const void*, int> tied;
  for (const auto& [path, param] : found) {
    const std::string name = path.empty() ? "param" : path;
    const int index = static_cast<int>(out.list.size());
    if (const void* tie = ParamAccess::tie(*param)) {
      const auto [first_index, is_new] = tied.emplace(tie, index);
      if (!is_new) {
        const Parameter& first = out.list[usize(first_index->second)];
        if (first.shape != param->shape())
          internal_error("{} and {} are tied but differ in shape: {} against {}", first.name, name,
                         first.shape.text(),
                         param->shape().text());  // a bug: a tie copies the shape
        ParamAccess::bind(*param, first.name, model, first_index->second);
        out.aliases.emplace(name, first.name);
        continue;
      }
    }
    ParamAccess::bind(*param, name, model, index);
    out.list.push_back({name, param->shape(), param->init(), param->decays(), param->frozen()});
  }
  return out;
}

void select_trained(Parameters& parameters, const TrainingOptions& options) {
  for (Parameter& p : parameters.list) {
    if (options.decay) p.decay = matches_any(*options.decay, p.name);
    if (matches_any(options.freeze, p.name)) p.frozen = true;
    if (options.train_only && !matches_any(*options.train_only, p.name)) p.frozen = true;
  }
}

void prepare_initialisers(Parameters& parameters, std::uint32_t seed) {
  for (Parameter& p : parameters.list) {
    compile_stage::check_init(p.init, p.shape, p.name);
    if (p.init.kind == Init::Kind::function)
      p.init = init::literal(compile_stage::initial_values(p.init, p.shape, p.name, seed));
  }
}

ParameterLayout lay_out(const Parameters& parameters) {
  ParameterLayout out;
  const auto place = [&](auto wanted) {
    for (const Parameter& p : parameters.list)
      if (wanted(p)) out.layout.place(p.name, {DType::f32, p.shape});
  };
  place([](const Parameter& p) { return !p.frozen && p.decay; });
  place([](const Parameter& p) { return !p.frozen && !p.decay; });
  out.trained_elements = out.layout.elements();
  place([](const Parameter& p) { return p.frozen; });
  return out;
}

}  // namespace tensorgrad::detail
