#include "runtime/cpu/subnormals.h"

#if defined(__x86_64__) || defined(__i386__)
#include <xmmintrin.h>
#endif

namespace tensorgrad::cpu {

namespace {

#if defined(__x86_64__) || defined(__i386__)
constexpr std::uint64_t kFlush = _MM_FLUSH_ZERO_ON,
                        kOther = 0x40;  // kOther: treats subnormal operands as zero
std::uint64_t mode() { return _mm_getcsr(); }
void set_mode(std::uint64_t mode) { _mm_setcsr(static_cast<unsigned>(mode)); }
#elif defined(__aarch64__)
constexpr std::uint64_t kFlush = std::uint64_t{1} << 24, kOther = 0;  // FZ of the register FPCR
std::uint64_t mode() {
  std::uint64_t mode;
  asm volatile("mrs %0, fpcr" : "=r"(mode));
  return mode;
}
void set_mode(std::uint64_t mode) { asm volatile("msr fpcr, %0" : : "r"(mode)); }
#else
constexpr std::uint64_t kFlush = 0, kOther = 0;
std::uint64_t mode() { return 0; }
void set_mode(std::uint64_t) {}
#endif

}  // namespace

bool flushes_subnormals() { return kFlush != 0; }

FlushSubnormals::FlushSubnormals() : before_(mode()) {
  const std::uint64_t wanted = (before_ | kFlush) & ~kOther;
  changed_ = wanted != before_;
  if (changed_) set_mode(wanted);
}

FlushSubnormals::~FlushSubnormals() {
  if (changed_) set_mode(before_);
}

}  // namespace tensorgrad::cpu
