#include "codegen/cpu/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codegen/cpu/simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tensorgrad::cpu::HWY_NAMESPACE {

const char* TargetInUse() { return hwy::TargetName(HWY_TARGET); }

}  // namespace tensorgrad::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <fmt/ranges.h>

#include <cstdint>
#include <cstdlib>
#include <mutex>

#include "support/fail.h"

namespace tensorgrad::cpu {

HWY_EXPORT(TargetInUse);

namespace {

// Asked once, before a choice hides the others.
const std::vector<std::int64_t>& targets() {
  static const std::vector<std::int64_t> all = hwy::SupportedAndGeneratedTargets();
  return all;
}

std::int64_t target_named(const std::string& name) {
  for (const std::int64_t target : targets())
    if (hwy::TargetName(target) == name) return target;
  user_error("TENSORGRAD_SIMD: there is no '{}' here\n  hint: this machine and build have {}", name,
             fmt::join(simd_targets(), ", "));
}

}  // namespace

std::vector<std::string> simd_targets() {
  std::vector<std::string> names;
  for (const std::int64_t target : targets()) names.emplace_back(hwy::TargetName(target));
  return names;
}

void choose_simd_target() {
  const char* wanted = std::getenv("TENSORGRAD_SIMD");
  const std::int64_t target = wanted && *wanted ? target_named(wanted) : 0;
  static std::once_flag once;
  std::call_once(once, [&] {
    targets();
    if (target) hwy::SetSupportedTargetsForTest(target);
  });
}

std::string simd_target() {
  choose_simd_target();
  return HWY_DYNAMIC_DISPATCH(TargetInUse)();
}

}  // namespace tensorgrad::cpu
#endif
