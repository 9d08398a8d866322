// All programs on the default device train on the late one.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/support/late_device.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  tensorgrad::add_late_device();
  setenv("TENSORGRAD_DEVICE", "late", 1);
  return RUN_ALL_TESTS();
}
