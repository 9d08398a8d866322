// Chooses the vector instructions of the kernels. Highway compiles them for several targets and
// picks the best one that the machine supports. TENSORGRAD_SIMD selects another one, to test or to
// compare.
#pragma once

#include <string>
#include <vector>

namespace tensorgrad::cpu {

// The targets that this build contains and this machine can run, by Highway's names, best first.
// AMX comes first on machines with the tile unit (amx.h): it means the best vector target, with
// matmul on the tile unit.
std::vector<std::string> simd_targets();

// Applies TENSORGRAD_SIMD, in upper or lower case. A name that is not in simd_targets() is a user
// error. The first call decides for the whole process, because kernels are compiled for one target;
// it must come before the first kernel.
void choose_simd_target();

// The target in use.
std::string simd_target();

// Whether the target is AMX; and whether AMX also computes the matmuls that vectors compute faster:
// TENSORGRAD_SIMD=AMX-ALL, for tests.
bool uses_amx();
bool uses_amx_always();

}  // namespace tensorgrad::cpu
