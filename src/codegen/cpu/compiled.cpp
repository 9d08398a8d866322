#include "codegen/cpu/compiled.h"

#include <array>
#include <new>
#include <variant>
#include <vector>

#include "support/integers.h"

namespace tensorgrad::cpu {

std::unique_ptr<Compiled> compile(const ir::Kernel& kernel) {
  return std::visit([&](const auto& core) { return compile_core(kernel, core); }, kernel.core);
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
