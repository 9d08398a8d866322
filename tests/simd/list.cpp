// Prints the vector targets of this machine and build, one per line, the best first.
#include <fmt/format.h>

#include "codegen/cpu/simd.h"

int main() {
  for (const std::string& name : tensorgrad::cpu::simd_targets()) fmt::print("{}\n", name);
}
