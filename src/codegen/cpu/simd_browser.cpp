// WebAssembly is compiled for one target. The engine has its instructions, or refuses the module.
#include <hwy/highway.h>

#include "codegen/cpu/simd.h"

namespace tensorgrad::cpu {

std::vector<std::string> simd_targets() { return {simd_target()}; }
void choose_simd_target() {}
std::string simd_target() { return hwy::TargetName(HWY_STATIC_TARGET); }
bool uses_amx() { return false; }
bool uses_amx_always() { return false; }

}  // namespace tensorgrad::cpu
