// Runs a test on every SIMD target that the machine and the build have.
#pragma once

#include <gtest/gtest.h>
#include <hwy/detect_targets.h>
#include <hwy/targets.h>

#include <cstdint>
#include <functional>

namespace tensorgrad {

// Calls f once for each target, with all others hidden from the dispatch.
inline void on_each_target(const std::function<void()>& f) {
#if HWY_TARGETS == HWY_STATIC_TARGET  // WebAssembly: there is no dispatch
  f();
#else
  for (std::int64_t rest = hwy::SupportedTargets() & HWY_TARGETS; rest != 0; rest &= rest - 1) {
    const std::int64_t target = rest & -rest;
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    SCOPED_TRACE(hwy::TargetName(target));
    f();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
#endif
}

}  // namespace tensorgrad
