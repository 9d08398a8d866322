// Products of matrices by a given unit: for tests, which want the one that would not be chosen too.
#pragma once

#include <memory>
#include <span>

#include "codegen/cpu/compiled.h"
#include "codegen/cpu/matmul_cut.h"

namespace tensorgrad::cpu {

// By one of `choice`, which this machine has.
std::unique_ptr<Compiled> compile_matmul(const ir::Kernel& kernel,
                                         std::span<const Products> choice);

}  // namespace tensorgrad::cpu
