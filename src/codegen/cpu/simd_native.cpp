#include "codegen/cpu/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codegen/cpu/simd_native.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tensorgrad::cpu::HWY_NAMESPACE {

const char* TargetInUse() { return hwy::TargetName(HWY_TARGET); }

}  // namespace tensorgrad::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <fmt/ranges.h>

#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <string_view>

#include "codegen/cpu/amx.h"
#include "support/fail.h"

namespace tensorgrad::cpu {

HWY_EXPORT(TargetInUse);

namespace {

constexpr std::string_view kAmx = "AMX", kAmxAlways = "AMX-ALL";
bool amx_chosen = false, amx_always = false;

// Queried once, before a choice hides the other targets.
const std::vector<std::int64_t>& targets() {
  static const std::vector<std::int64_t> all = hwy::SupportedAndGeneratedTargets();
  return all;
}

// 0 means the best one.
std::int64_t target_named(const std::string& name) {
  if (name.empty() || ((name == kAmx || name == kAmxAlways) && has_amx())) return 0;
  for (const std::int64_t target : targets())
    if (hwy::TargetName(target) == name) return target;
  user_error("TENSORGRAD_SIMD: '{}' is not available\n  hint: this machine and build have {}", name,
             fmt::join(simd_targets(), ", "));
}

}  // namespace

std::vector<std::string> simd_targets() {
  std::vector<std::string> names;
  if (has_amx()) names.emplace_back(kAmx);
  for (const std::int64_t target : targets()) names.emplace_back(hwy::TargetName(target));
  return names;
}

void choose_simd_target() {
  const char* set = std::getenv("TENSORGRAD_SIMD");
  std::string wanted = set ? set : "";
  for (char& c : wanted) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  const std::int64_t target = target_named(wanted);
  static std::once_flag once;
  std::call_once(once, [&] {
    targets();
    if (target) hwy::SetSupportedTargetsForTest(target);
    amx_chosen = !target && has_amx();
    amx_always = wanted == kAmxAlways;
  });
}

std::string simd_target() {
  choose_simd_target();
  return amx_chosen ? std::string(kAmx) : HWY_DYNAMIC_DISPATCH(TargetInUse)();
}

bool uses_amx() {
  choose_simd_target();
  return amx_chosen;
}

bool uses_amx_always() {
  choose_simd_target();
  return amx_always;
}

}  // namespace tensorgrad::cpu
#endif
