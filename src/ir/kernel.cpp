#include "ir/kernel.h"

#include <fmt/format.h>

namespace tensorgrad::ir {

const char* name(Space space) {
  switch (space) {
    case Space::parameters:
      return "parameters";
    case Space::gradients:
      return "gradients";
    case Space::state:
      return "state";
    case Space::inputs:
      return "inputs";
    case Space::outputs:
      return "outputs";
    case Space::arena:
      return "arena";
    case Space::arena_1:
      return "arena_1";
    case Space::arena_2:
      return "arena_2";
    case Space::arena_3:
      return "arena_3";
  }
  return "?";
}

const char* kind_name(const Kernel& kernel) {
  return std::visit([](const auto& core) { return core.kName; }, kernel.core);
}

std::string space_text(const Kernel& kernel, const char* separator) {
  return std::visit(
      [&](const auto& core) {
        if constexpr (requires { core.space(); })
          return fmt::format("{} {} {}", core.space().lines, separator, core.space().length);
        else
          return fmt::format("{} x [{}, {}]", core.batches, core.M, core.K);
      },
      kernel.core);
}

namespace {

std::string text_of(const Store& store, const char* what) {
  return fmt::format("  {} %{} r{} -> {}+{}\n", what, store.node, store.value,
                     name(store.place.space), store.place.offset);
}

std::string text_of(const Load& load) {
  switch (load.source) {
    case Load::Source::memory:
      return fmt::format("{} {}+{}", tensorgrad::name(load.dtype), name(load.place.space),
                         load.place.offset);
    case Load::Source::iota:
      return "iota";
    case Load::Source::constant:
      return fmt::format("constant {}", load.value);
  }
  return "?";
}

std::string text_of(const MatmulKernel& core) {
  std::string out = "  left:\n" + core.a.text();
  for (const MatmulPart& part : core.parts) {
    out += fmt::format("  right, {} columns:\n", part.N) + part.b.text() + "  result:\n" +
           part.epilogue.text();
    for (const Store& store : part.stores) out += text_of(store, "store");
    if (part.column_sums) out += text_of(*part.column_sums, "column sums of right");
  }
  return out;
}

}  // namespace

std::string Kernel::text() const {
  const auto* const matmul = get_if<MatmulKernel>();
  std::string out =
      fmt::format("kernel {}: {} {}", name, kind_name(*this), space_text(*this, "of"));
  if (matmul) out += fmt::format(" x [{}, ...]", matmul->K);
  out += '\n';
  for (std::size_t i = 0; i < loads.size(); ++i)
    out += fmt::format("  #{} {} {}\n", i, text_of(loads[i]), loads[i].map.text());
  if (matmul) return out + text_of(*matmul);
  for_each_program(*this, [&](const ScalarProgram& program) { out += program.text(); });
  for_each_store(*this, [&](const Store& store) { out += text_of(store, "store"); });
  return out;
}

}  // namespace tensorgrad::ir
