#include "passes/pipeline.h"

#include <algorithm>

#include "passes/algebra.h"
#include "passes/cse.h"
#include "passes/dce.h"
#include "passes/expand.h"
#include "passes/fold.h"
#include "passes/join.h"
#include "passes/products.h"
#include "passes/recognise.h"
#include "passes/views.h"

namespace tensorgrad::passes {

namespace {

// A pass that is the same for all devices.
template <ir::Graph (*pass)(ir::Graph)>
ir::Graph any(ir::Graph graph, const ir::DeviceModel&) {
  return pass(std::move(graph));
}

constexpr Pass kBeforeGradients[] = {
    {"attention", "written-out attention is one op", any<recognise_attention>},
};

constexpr Pass kPipeline[] = {
    {"expand", "softmax, norms and similar composites are expanded to simpler ops", any<expand>,
     false},
    {"fold", "constant expressions are constants", any<fold>},
    {"algebra", "no-op arithmetic is removed; chained scales and offsets are merged", any<algebra>},
    {"join", "a sum of padded parts is a concat", any<join>},
    {"views", "no-op views are removed; chains of views are merged", any<views>},
    {"cse", "nothing is computed twice", any<cse>},
    {"products", "a sum of matmuls over adjacent columns is one matmul", products},
    {"dce", "dead code is removed", any<dce>},
};

ir::Graph run(std::span<const Pass> passes, ir::Graph graph, const ir::DeviceModel& model,
              const std::vector<std::string>& without) {
  for (const Pass& pass : passes)
    if (!pass.optional || std::find(without.begin(), without.end(), pass.name) == without.end())
      graph = pass.run(std::move(graph), model);
  ir::verify(graph);
  return graph;
}

}  // namespace

std::span<const Pass> before_gradients() { return kBeforeGradients; }
std::span<const Pass> pipeline() { return kPipeline; }

ir::Graph recognise(ir::Graph graph, const std::vector<std::string>& without) {
  return run(kBeforeGradients, std::move(graph), {}, without);
}

ir::Graph simplify(ir::Graph graph, const ir::DeviceModel& model,
                   const std::vector<std::string>& without) {
  return run(kPipeline, std::move(graph), model, without);
}

}  // namespace tensorgrad::passes
