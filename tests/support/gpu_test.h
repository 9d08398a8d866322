// For tests that need a GPU: without one they are skipped with the reason, and under CI they fail.
#pragma once

#include <gtest/gtest.h>

#include <string>

namespace tensorgrad {

// The reason why there is no adapter; empty if there is one.
std::string no_adapter();

class GpuTest : public testing::Test {
 protected:
  void SetUp() override;
};

}  // namespace tensorgrad
