// Which vector instructions the kernels use. Highway compiles them for several targets and takes
// the best one that the machine has; TENSORGRAD_SIMD names another, to test it or to compare.
#pragma once

#include <string>
#include <vector>

namespace tensorgrad::cpu {

// The targets that this build has and this machine can run, by Highway's names, the best one first.
// Before them all stands AMX where there is the tile unit (amx.h): the best vectors, and products
// of matrices on that unit.
std::vector<std::string> simd_targets();

// Obeys TENSORGRAD_SIMD, in upper or lower case; a name that is not among simd_targets() is a
// user's error. The first call decides for the process, because kernels are compiled for one
// target: it comes before the first of them.
void choose_simd_target();

// The one in use.
std::string simd_target();

// Whether that is AMX, and whether even for the products that vectors compute faster:
// TENSORGRAD_SIMD=AMX-ALL, for tests.
bool uses_amx();
bool uses_amx_always();

}  // namespace tensorgrad::cpu
