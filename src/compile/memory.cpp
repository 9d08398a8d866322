#include "compile/memory.h"

#include <algorithm>
#include <limits>
#include <map>
#include <new>

#include "ir/primitive.h"
#include "support/fail.h"
#include "support/integers.h"
#include "support/order.h"
#include "support/text.h"

namespace tensorgrad::detail {

using ir::Space;

namespace {

constexpr std::size_t kNamed = 3;  // number of tensors that an error lists

std::string what_is(const ir::Graph& graph, ir::NodeId id) {
  const ir::Node& node = graph[id];
  const ir::CallSite& site = graph.sites[usize(node.site)];
  std::string out = fmt::format("{} of {}", node.type.text(),
                                site.composite.empty() ? node.op->name : site.composite);
  if (!site.scope.empty()) out += fmt::format(" in {}", site.scope);
  if (!site.file.empty()) out += fmt::format(", at {}:{}", base_name(site.file), site.line);
  return out;
}

std::string needs(const schedule::Plan& plan) {
  const bool training =
      std::any_of(plan.graph.results.begin(), plan.graph.results.end(),
                  [](const ir::Result& r) { return r.kind == ir::Result::Kind::gradient; });
  std::int64_t all = 0;
  std::vector<std::string> parts;
  for (int i = 0; i < ir::kSpaces; ++i) {
    const auto space = static_cast<Space>(i);
    if (space == Space::gradients && !training) continue;
    if (ir::is_arena(space) && space != Space::arena) continue;  // arenas are summed up
    const std::int64_t bytes = space == Space::arena ? plan.arena_bytes() : plan.bytes(space);
    all += bytes;
    if (bytes >= 1 << 16) parts.push_back(fmt::format("{} {}", word(space), in_mib(bytes)));
  }
  return fmt::format("the program needs {}{}{}", in_mib(all), parts.empty() ? "" : ": ",
                     join(parts, ", "));
}

}  // namespace

Completion<std::shared_ptr<runtime::Buffer>> allocate(
    runtime::Device& device, Space space, std::int64_t elements, const schedule::Plan* plan,
    std::function<std::vector<Tenant>()> largest) {
  using Memory = Completion<std::shared_ptr<runtime::Buffer>>;
  const auto begin = [&] {
    try {
      return device.allocate(elements, word(space));
    } catch (...) {
      return failed_now<std::shared_ptr<runtime::Buffer>>();
    }
  };
  Memory out;
  begin().then([out, space, plan, largest = std::move(largest)](const Memory& memory) {
    try {
      out.set(memory.get());
    } catch (const OutOfMemoryError& error) {
      const bool of_the_model =
          space == Space::parameters || space == Space::gradients || space == Space::state;
      out.set_error(std::make_exception_ptr(
          explained(error, largest(), plan,
                    of_the_model ? "a smaller model, or a device with more room"
                                 : "a smaller batch, or a device with more room")));
    } catch (...) {
      out.set_error(std::current_exception());
    }
  });
  return out;
}

Array host_array(const ir::Type& type, std::string_view what,
                 const std::function<void(std::span<std::byte>)>& fill) {
  const auto made = [&]<class T>(T) {
    std::vector<T> values(usize(type.shape.count()));
    fill(std::as_writable_bytes(std::span(values)));
    return values;
  };
  try {
    if (type.dtype == DType::f32) return {type.shape, made(float{})};
    return {type.shape, made(std::int32_t{}), type.dtype};
  } catch (const std::bad_alloc&) {
    throw no_host_memory(type, what);
  }
}

OutOfMemoryError no_host_memory(const ir::Type& type, std::string_view what) {
  return OutOfMemoryError(fmt::format("host: out of memory: {} to read {}, which is {}",
                                      in_mib(4 * type.shape.count()), what, type.text()));
}

const char* word(Space space) {
  switch (space) {
    case Space::state:
      return "optimizer state";
    case Space::arena:
    case Space::arena_1:
    case Space::arena_2:
    case Space::arena_3:
      return "activations";
    default:
      return ir::name(space);
  }
}

std::vector<Tenant> tenants(const schedule::Layout& layout) {
  std::vector<Tenant> out;
  for (const auto& entry : layout.entries())
    out.push_back(
        {fmt::format("{} {}", entry.name, entry.type.text()), 4 * entry.type.shape.count()});
  return out;
}

std::vector<Tenant> tenants(const schedule::Plan& plan) {
  const auto bytes_of = [&](ir::NodeId id) { return 4 * plan.graph[id].type.shape.count(); };
  const auto stage_of = [&](int step) {
    return step < static_cast<int>(plan.steps.size()) ? plan.steps[usize(step)].stage
                                                      : std::numeric_limits<int>::max();
  };
  using Where = std::pair<Space, std::int64_t>;
  std::map<Where, ir::NodeId> most;
  std::int64_t most_bytes = -1;
  for (std::size_t now = 0; now < plan.steps.size(); ++now) {
    std::map<Where, ir::NodeId> alive;  // by place: a result may replace its operand
    for (std::size_t born = 0; born <= now; ++born)
      for (const schedule::Stored& stored : plan.steps[born].stored)
        if (ir::is_arena(stored.place.space) && stage_of(stored.last_use) >= plan.steps[now].stage)
          alive.insert_or_assign(Where{stored.place.space, stored.place.offset}, stored.node);
    std::int64_t bytes = 0;
    for (const auto& [where, node] : alive) bytes += bytes_of(node);
    if (bytes > most_bytes) most_bytes = bytes, most = std::move(alive);
  }
  std::vector<Tenant> out;
  for (const auto& [where, node] : most) out.push_back({what_is(plan.graph, node), bytes_of(node)});
  return out;
}

OutOfMemoryError explained(const OutOfMemoryError& error, std::vector<Tenant> tenants,
                           const schedule::Plan* plan, const std::string& hint) {
  std::string text = error.what();
  std::vector<std::int64_t> smallness;
  for (const Tenant& tenant : tenants) smallness.push_back(-tenant.bytes);
  const std::vector<std::size_t> order = order_by(smallness);
  for (std::size_t i = 0; i < std::min(tenants.size(), kNamed); ++i) {
    const Tenant &tenant = tenants[order[i]], &largest = tenants[order[0]];
    if (tenant.bytes < largest.bytes / 100) break;  // too small to matter
    text += fmt::format("\n  {} {} for {}", i ? "        " : "largest:", in_mib(tenant.bytes),
                        tenant.text);
  }
  if (plan) text += "\n  " + needs(*plan);
  return OutOfMemoryError(text + "\n  hint: " + hint);
}

}  // namespace tensorgrad::detail
