// Prints the vector targets that this machine and build have, one to a line, the best one first.
#include <fmt/format.h>

#include "codegen/cpu/simd.h"

int main() {
  for (const std::string& name : tensorgrad::cpu::simd_targets()) fmt::print("{}\n", name);
}
