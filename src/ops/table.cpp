#include "ops/table.h"

#include <array>
#include <unordered_map>

#include "support/fail.h"
#include "support/integers.h"

namespace tensorgrad::ops {

std::span<const Family> families() {
  static const std::array all{
      Family{"leaf", leaf_family()},
      Family{"elementwise", elementwise_family()},
      Family{"compare", compare_family()},
      Family{"movement", movement_family()},
      Family{"reduce", reduce_family()},
      Family{"matmul", matmul_family()},
      Family{"gather", gather_family()},
      Family{"window", window_family()},
      Family{"conv1d", conv1d_family()},
      Family{"random", random_family()},
      Family{"composite", composite_family()},
      Family{"attention", attention_family()},
      Family{"state_space", state_space_family()},
  };
  return all;
}

const ir::Primitive* find_primitive(std::string_view name) {
  static const auto by_name = [] {
    std::unordered_map<std::string_view, const ir::Primitive*> map;
    for (const Family& family : families())
      for (const ir::Primitive* op : family.primitives) map.emplace(op->name, op);
    return map;
  }();
  const auto found = by_name.find(name);
  return found == by_name.end() ? nullptr : found->second;
}

const ir::Primitive& primitive(ir::OpId id) {
  static const auto by_id = [] {
    std::array<const ir::Primitive*, ir::kOpIds> all{};
    for (const Family& family : families())
      for (const ir::Primitive* op : family.primitives) all[usize(op->id)] = op;
    return all;
  }();
  return *by_id[usize(id)];
}

const ir::Primitive& leaf_primitive(ir::Core kind) {
  for (const ir::Primitive* op : leaf_family())
    if (op->core == kind) return *op;
  internal_error("not a leaf");
}

}  // namespace tensorgrad::ops
