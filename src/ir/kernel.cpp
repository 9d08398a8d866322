#include "ir/kernel.h"

#include <fmt/format.h>

namespace tensorgrad::ir {

const char* name(Space space) {
  switch (space) {
    case Space::parameters: return "parameters";
    case Space::gradients: return "gradients";
    case Space::state: return "state";
    case Space::inputs: return "inputs";
    case Space::outputs: return "outputs";
    case Space::arena: return "arena";
  }
  return "?";
}

const char* name(Kernel::Kind kind) {
  switch (kind) {
    case Kernel::Kind::map: return "map";
    case Kernel::Kind::reduce: return "reduce";
    case Kernel::Kind::arg_reduce: return "arg_reduce";
    case Kernel::Kind::scan: return "scan";
    case Kernel::Kind::matmul: return "matmul";
    case Kernel::Kind::segment_sum: return "segment_sum";
    case Kernel::Kind::scatter_add: return "scatter_add";
  }
  return "?";
}

std::string Kernel::text() const {
  std::string out = fmt::format("kernel {} ({}) over {}", name, ir::name(kind), space.text());
  if (kind == Kind::reduce)
    out += fmt::format(", {} over the {} {} axes", ir::name(combine), leading ? "first" : "last", reduced);
  out += '\n';
  for (std::size_t i = 0; i < loads.size(); ++i) {
    const Load& load = loads[i];
    switch (load.source) {
      case Load::Source::memory:
        out += fmt::format("  #{} {} {}+{}", i, tensorgrad::name(load.dtype), ir::name(load.place.space),
                           load.place.offset);
        break;
      case Load::Source::iota: out += fmt::format("  #{} iota", i); break;
      case Load::Source::constant: out += fmt::format("  #{} constant {}", i, load.value); break;
    }
    out += fmt::format(" {}\n", load.map.text());
  }
  out += program.text();
  out += fmt::format("  store {}+{} {}\n", ir::name(store.place.space), store.place.offset,
                     store.map.text());
  return out;
}

}  // namespace tensorgrad::ir
