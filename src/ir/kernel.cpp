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

const char* name(Kernel::Kind kind) {
  switch (kind) {
    case Kernel::Kind::rows:
      return "rows";
    case Kernel::Kind::columns:
      return "columns";
    case Kernel::Kind::arg_reduce:
      return "arg_reduce";
    case Kernel::Kind::scan:
      return "scan";
    case Kernel::Kind::matmul:
      return "matmul";
    case Kernel::Kind::segment_sum:
      return "segment_sum";
    case Kernel::Kind::scatter_add:
      return "scatter_add";
    case Kernel::Kind::attention:
      return "attention";
    case Kernel::Kind::attention_gradient:
      return "attention_gradient";
    case Kernel::Kind::selective_scan:
      return "selective_scan";
    case Kernel::Kind::selective_scan_gradient:
      return "selective_scan_gradient";
  }
  return "?";
}

namespace {

std::string text_of(const Store& store, const char* what) {
  return fmt::format("  {} %{} r{} -> {}+{}\n", what, store.node, store.value,
                     name(store.place.space), store.place.offset);
}

}  // namespace

std::string Kernel::text() const {
  std::string out = fmt::format("kernel {}: {}", name, ir::name(kind));
  if (kind == Kind::matmul)
    out += fmt::format(" {} x [{}, {}] x [{}, ...]\n", batches, M, K, K);
  else
    out += fmt::format(" {} of {}\n", lines, length);
  for (std::size_t i = 0; i < loads.size(); ++i) {
    const Load& load = loads[i];
    switch (load.source) {
      case Load::Source::memory:
        out += fmt::format("  #{} {} {}+{}", i, tensorgrad::name(load.dtype),
                           ir::name(load.place.space), load.place.offset);
        break;
      case Load::Source::iota:
        out += fmt::format("  #{} iota", i);
        break;
      case Load::Source::constant:
        out += fmt::format("  #{} constant {}", i, load.value);
        break;
    }
    out += fmt::format(" {}\n", load.map.text());
  }
  if (!program.code.empty()) out += program.text();
  for (const Store& store : stores) out += text_of(store, "store");
  if (kind == Kind::matmul) {
    out += "  left:\n" + a.text();
    for (const MatmulPart& part : parts) {
      out += fmt::format("  right, {} columns:\n", part.N) + part.b.text() + "  result:\n" +
             part.epilogue.text();
      for (const Store& store : part.stores) out += text_of(store, "store");
      if (part.sums_columns) out += text_of(part.column_sums, "column sums of right");
    }
  }
  return out;
}

}  // namespace tensorgrad::ir
