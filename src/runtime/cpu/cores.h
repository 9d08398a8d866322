// How many threads the CPU is worth.
#pragma once

#include <filesystem>
#include <vector>

namespace tensorgrad::cpu {

// The cores that this process may use, at least 1: physical ones, because two threads of one core
// share the units that kernels keep busy.
int usable_cores();

// The same by the files that Linux has below `root`, for a process that may run on these
// processors: what the machine is made of (/sys/devices), and the time that its control groups
// grant it (/sys/fs/cgroup).
int usable_cores(const std::filesystem::path& root, const std::vector<int>& processors);

}  // namespace tensorgrad::cpu
