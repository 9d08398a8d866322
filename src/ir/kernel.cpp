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

std::string text_of(const RowsVariant& variant) {
  switch (variant.walk) {
    case RowsVariant::Walk::elements:
      return "element by element";
    case RowsVariant::Walk::rows:
      return fmt::format("row by row, {} thread{} each", variant.threads,
                         variant.threads == 1 ? "" : "s");
    case RowsVariant::Walk::parts:
      return fmt::format("rows in parts of {}", variant.part);
  }
  return "?";
}

std::string text_of(const ColumnsVariant& variant) {
  return variant.alone ? "a thread per column"
                       : fmt::format("columns in parts of {} rows", variant.turns);
}

std::string text_of(const ScanVariant& variant) {
  return variant.alone ? "a thread per row" : "a workgroup per row";
}

std::string text_of(const SegmentSumVariant& variant) {
  return variant.sorts ? "sorted by id" : fmt::format("positions in {} parts", variant.parts);
}

std::string text_of(const AttentionVariant& variant) {
  if (variant.row_per_thread) return "a row per thread";
  return fmt::format("tiles; tasks of {} queries, gradients in parts of {} keys", variant.queries,
                     variant.keys);
}

std::string in_parts(std::int64_t splits) {
  return splits > 1 ? fmt::format(", k in {} parts", splits) : "";
}

std::string text_of(std::monostate) { return ""; }

std::string text_of(const MatmulTiles& tiles) {
  return tiles.direct ? "no tiles"
                      : fmt::format("tiles {}{}", text(tiles.size()), in_parts(tiles.splits));
}

std::string text_of(const MatmulBlocks& blocks) {
  return fmt::format("blocks {}x{}x{} on {}{}{}", blocks.rows, blocks.columns, blocks.depth,
                     blocks.unit == MatmulUnit::amx ? "the tile unit" : "vectors",
                     blocks.transposed ? ", transposed" : "", in_parts(blocks.splits));
}

template <class... Kinds>
std::string text_of(const std::variant<Kinds...>& variant) {
  return std::visit([](const auto& own) { return text_of(own); }, variant);
}

}  // namespace

std::string variant_text(const Kernel& kernel) {
  return std::visit(
      [](const auto& core) -> std::string {
        if constexpr (requires { core.variant; })
          return text_of(core.variant);
        else
          return "";
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
  if (const std::string variant = variant_text(*this); !variant.empty()) out += "; " + variant;
  out += '\n';
  for (std::size_t i = 0; i < loads.size(); ++i)
    out += fmt::format("  #{} {} {}\n", i, text_of(loads[i]), loads[i].map.text());
  if (matmul) return out + text_of(*matmul);
  for_each_program(*this, [&](const ScalarProgram& program) { out += program.text(); });
  for_each_store(*this, [&](const Store& store) { out += text_of(store, "store"); });
  return out;
}

}  // namespace tensorgrad::ir
