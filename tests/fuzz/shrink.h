// Shrinks a failing program: removes results, instructions, operands, axes and dice as long as it
// still fails.
#pragma once

#include <functional>

#include "tests/fuzz/program.h"

namespace tensorgrad::fuzz {

// `fails` holds for the given and for the returned program, and for no smaller one that was tried.
Program shrink(Program program, const std::function<bool(const Program&)>& fails);

// The program without the instructions that no result needs.
Program without_dead(const Program& program);

}  // namespace tensorgrad::fuzz
