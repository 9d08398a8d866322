#include "passes/pipeline.h"

#include <algorithm>

#include "passes/algebra.h"
#include "passes/cse.h"
#include "passes/dce.h"
#include "passes/expand.h"
#include "passes/fold.h"
#include "passes/views.h"

namespace tensorgrad::passes {

namespace {

constexpr Pass kPipeline[] = {
    {"expand", "softmax, norms and the like are written with simpler ops", expand},
    {"fold", "what depends on numbers alone is a number", fold},
    {"algebra", "no arithmetic that changes nothing, scales and offsets joined", algebra},
    {"views", "no view that changes nothing, chains of views joined", views},
    {"cse", "nothing is computed twice", cse},
    {"dce", "nothing is computed that no result needs", dce},
};

}  // namespace

std::span<const Pass> pipeline() { return kPipeline; }

ir::Graph simplify(ir::Graph graph, const std::vector<std::string>& without) {
  for (const Pass& pass : kPipeline)
    if (std::find(without.begin(), without.end(), pass.name) == without.end()) graph = pass.run(graph);
  ir::verify(graph);
  return graph;
}

}  // namespace tensorgrad::passes
