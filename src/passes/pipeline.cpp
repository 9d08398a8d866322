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

constexpr Pass kBeforeGradients[] = {
    {"attention", "attention that is written out is one op", recognise_attention},
};

constexpr Pass kPipeline[] = {
    {"expand", "softmax, norms and the like are written with simpler ops", expand},
    {"fold", "what depends on numbers alone is a number", fold},
    {"algebra", "no arithmetic that changes nothing, scales and offsets joined", algebra},
    {"join", "no sum that puts parts side by side", join},
    {"views", "no view that changes nothing, chains of views joined", views},
    {"cse", "nothing is computed twice", cse},
    {"products", "a sum of products side by side is one product", products},
    {"dce", "nothing is computed that no result needs", dce},
};

ir::Graph run(std::span<const Pass> passes, ir::Graph graph,
              const std::vector<std::string>& without) {
  for (const Pass& pass : passes)
    if (std::find(without.begin(), without.end(), pass.name) == without.end())
      graph = pass.run(graph);
  ir::verify(graph);
  return graph;
}

}  // namespace

std::span<const Pass> before_gradients() { return kBeforeGradients; }
std::span<const Pass> pipeline() { return kPipeline; }

ir::Graph recognise(ir::Graph graph, const std::vector<std::string>& without) {
  return run(kBeforeGradients, std::move(graph), without);
}

ir::Graph simplify(ir::Graph graph, const std::vector<std::string>& without) {
  return run(kPipeline, std::move(graph), without);
}

}  // namespace tensorgrad::passes
