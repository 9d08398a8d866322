// For tests that need a GPU: without one they are skipped with the reason, and under CI they fail.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "tensorgrad/progress.h"

namespace tensorgrad {

// The reason why there is no adapter; empty if there is one.
std::string no_adapter();

// Reports to whoever runs the test how many shaders a slow driver has compiled. For `progress`.
CompileCallback shown_compiling();

class GpuTest : public testing::Test {
 protected:
  void SetUp() override;
};

}  // namespace tensorgrad
