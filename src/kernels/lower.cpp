#include "kernels/lower.h"

#include <fmt/format.h>

#include "kernels/lowering.h"
#include "kernels/variants.h"

namespace tensorgrad::kernels {

using ir::Kernel;
using schedule::Group;

Kernel Lowering::run() {
  Kernel out;
  out.stage = step_.stage;
  if (step_.copied >= 0) {
    out.name = "copy";
    out.core = copy();
    out.loads = std::move(loads_);
    return out;
  }
  std::vector<std::string> names;
  for (const ir::NodeId id : step_.group.nodes) names.emplace_back(graph_[id].op->name);
  out.name = fmt::format("{}", fmt::join(names, "_"));
  switch (step_.group.kind) {
    case Group::Kind::rows:
      out.core = rows();
      break;
    case Group::Kind::columns:
      out.core = columns();
      break;
    case Group::Kind::matmul:
      out.core = matmul();
      break;
    case Group::Kind::single:
      out.core = single();
      break;
  }
  out.loads = std::move(loads_);
  return out;
}

std::vector<Kernel> lower(const schedule::Plan& plan, const ir::DeviceModel& model) {
  std::vector<Kernel> kernels;
  for (const schedule::Step& step : plan.steps) {
    kernels.push_back(Lowering(plan, step).run());
    choose_variants(kernels.back(), model);
  }
  return kernels;
}

}  // namespace tensorgrad::kernels
