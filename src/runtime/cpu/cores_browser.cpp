#include <algorithm>
#include <thread>

#include "runtime/cpu/cores.h"

namespace tensorgrad::cpu {

int usable_cores() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

}  // namespace tensorgrad::cpu
