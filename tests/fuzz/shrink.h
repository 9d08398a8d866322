// Makes a failing program small: takes away results, instructions, operands, axes and dice as long
// as it still fails.
#pragma once

#include <functional>

#include "tests/fuzz/program.h"

namespace tensorgrad::fuzz {

// `fails` holds for the program, and for what is returned; nothing that is tried in the end does.
Program shrink(Program program, const std::function<bool(const Program&)>& fails);

// The program without the instructions that no result needs.
Program without_dead(const Program& program);

}  // namespace tensorgrad::fuzz
