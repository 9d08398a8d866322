#include "codegen/cpu/compiled.h"

#include <array>
#include <new>
#include <vector>

#include "support/integers.h"

namespace tensorgrad::cpu {

std::unique_ptr<Compiled> compile(const ir::Kernel& kernel) {
  switch (kernel.kind) {
    case ir::Kernel::Kind::rows:
      return compile_rows(kernel);
    case ir::Kernel::Kind::columns:
      return compile_columns(kernel);
    case ir::Kernel::Kind::arg_reduce:
      return compile_arg_reduce(kernel);
    case ir::Kernel::Kind::scan:
      return compile_scan(kernel);
    case ir::Kernel::Kind::matmul:
      return compile_matmul(kernel);
    case ir::Kernel::Kind::segment_sum:
      return compile_segment_sum(kernel);
    case ir::Kernel::Kind::scatter_add:
      return compile_scatter_add(kernel);
    case ir::Kernel::Kind::attention:
      return compile_attention(kernel);
    case ir::Kernel::Kind::attention_gradient:
      return compile_attention_gradient(kernel);
    case ir::Kernel::Kind::selective_scan:
      return compile_selective_scan(kernel);
    case ir::Kernel::Kind::selective_scan_gradient:
      return compile_selective_scan_gradient(kernel);
  }
  return nullptr;
}

float* scratch_floats(std::size_t count, int index) {
  struct Free {
    void operator()(float* p) const { ::operator delete[](p, std::align_val_t{64}); }
  };
  struct Area {
    std::unique_ptr<float[], Free> floats;
    std::size_t size = 0;
  };
  thread_local std::array<Area, kKeptRows + 1> areas;
  Area& area = areas[usize(index)];
  if (area.size < count) {
    area.floats.reset(
        static_cast<float*>(::operator new[](count * sizeof(float), std::align_val_t{64})));
    area.size = count;
  }
  return area.floats.get();
}

}  // namespace tensorgrad::cpu
