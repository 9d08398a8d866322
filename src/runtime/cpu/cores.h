// The number of CPU cores that this process can use.
#pragma once

#include <filesystem>
#include <vector>

namespace tensorgrad::cpu {

// Returns the number of physical cores, at least 1. Two threads of one core would share the units
// that kernels keep busy.
int usable_cores();

// The largest number of threads that this program can have, the calling one included. In a web page
// the others are started before the program.
int most_threads();

// The same from the Linux files below `root`, for a process that may run on these processors: the
// topology in /sys/devices and the CPU quota in /sys/fs/cgroup.
int usable_cores(const std::filesystem::path& root, const std::vector<int>& processors);

}  // namespace tensorgrad::cpu
