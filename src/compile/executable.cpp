#include "compile/executable.h"

#include <utility>
#include <vector>

#include "compile/memory.h"
#include "support/integers.h"

namespace tensorgrad::detail {

using ir::Result;
using ir::Space;

namespace {

std::optional<std::int64_t> find_guard(const schedule::Plan& plan) {
  for (std::size_t i = 0; i < plan.graph.results.size(); ++i) {
    const Result& result = plan.graph.results[i];
    if (result.kind == Result::Kind::output && result.name == optim::kFailedOutput)
      return plan.results[i].offset;
  }
  return {};
}

Completion<Done> allocate_memory(const std::shared_ptr<Executable>& executable) {
  const schedule::Plan& plan = executable->made.plan;
  runtime::Device& device = *executable->made.device;
  std::vector<Completion<Done>> parts;
  const auto add = [&](Space space, auto tenants_of, std::shared_ptr<runtime::Buffer>& to) {
    parts.push_back(
        allocate(device, space, plan.elements[usize(space)], &plan, [executable, tenants_of] {
          return tenants_of(*executable);
        }).map([executable, &to](const std::shared_ptr<runtime::Buffer>& buffer) {
          to = buffer;
          return Done{};
        }));
  };
  add(
      Space::outputs, [](const Executable& e) { return tenants(e.made.plan.outputs); },
      executable->outputs);
  for (int i = 0; i < ir::kArenas; ++i)
    add(
        ir::arena(i), [](const Executable& e) { return tenants(e.made.plan); },
        executable->arenas[usize(i)]);
  return all(parts);
}

}  // namespace

Completion<std::shared_ptr<Executable>> make_executable(Compilation front) {
  const auto executable = std::make_shared<Executable>();
  executable->made = std::move(front);
  const std::shared_ptr<Compilation> made(executable, &executable->made);
  return run_stages(made, Stage::Id::update, Stage::Id::lower)
      // Memory comes before the kernels, which take a while to compile, so that lack of memory
      // fails early.
      .map([executable](Done) { return allocate_memory(executable); })
      .map([made](Done) { return run_stages(made, Stage::Id::emit, Stage::Id::load); })
      .map([executable](Done) {
        executable->guard = find_guard(executable->made.plan);
        return executable;
      });
}

}  // namespace tensorgrad::detail
