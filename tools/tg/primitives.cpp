// `tg ops --primitives`: what the compiler works on.
#include "command.h"
#include "ops.h"
#include "ops/table.h"

namespace tensorgrad::tool {

namespace {

std::string_view name_of(ir::Core core) {
  using ir::Core;
  switch (core) {
    case Core::input:
    case Core::parameter:
    case Core::flat_parameters:
    case Core::state:
    case Core::flat_state:
      return "leaf";
    case Core::constant:
      return "constant";
    case Core::iota:
      return "iota";
    case Core::elementwise:
      return "elementwise";
    case Core::view:
      return "view";
    case Core::concat:
      return "concat";
    case Core::reduce:
      return "reduce";
    case Core::arg_reduce:
      return "arg_reduce";
    case Core::scan:
      return "scan";
    case Core::matmul:
      return "matmul";
    case Core::gather:
      return "gather";
    case Core::take:
      return "take";
    case Core::segment_sum:
      return "segment_sum";
    case Core::scatter_add:
      return "scatter_add";
    case Core::fold:
      return "fold";
    case Core::attention:
      return "attention";
    case Core::attention_gradient:
      return "attention_gradient";
    case Core::selective_scan:
      return "selective_scan";
    case Core::selective_scan_gradient:
      return "selective_scan_gradient";
    case Core::composite:
      return "composite";
  }
  return "?";
}

}  // namespace

void list_primitives(bool json) {
  constexpr const char* kRow = "{:<13}{:<25}{:<25}{:<7}{}\n";
  std::size_t count = 0;
  if (!json) print_out(fmt::runtime(kRow), "family", "op", "core", "arity", "gradient");
  for (const ops::Family& family : ops::families()) {
    for (const ir::Primitive* op : family.primitives) {
      ++count;
      if (json) {
        print_json({{"family", family.name},
                    {"op", op->name},
                    {"core", name_of(op->core)},
                    {"arity", op->arity},
                    {"gradient", op->gradient != nullptr}});
      } else {
        print_out(fmt::runtime(kRow), op == family.primitives.front() ? family.name : "", op->name,
                  name_of(op->core), op->arity < 0 ? "any" : std::to_string(op->arity),
                  op->gradient ? "yes" : "-");
      }
    }
  }
  print_to(people(json), "{} primitives in {} families\n", count, ops::families().size());
}

}  // namespace tensorgrad::tool
