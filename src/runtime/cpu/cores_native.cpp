#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <set>
#include <sstream>
#include <string>
#include <thread>

#include "runtime/cpu/cores.h"

#if defined(__linux__)
#include <sched.h>
#endif

namespace tensorgrad::cpu {

int most_threads() { return std::numeric_limits<int>::max(); }

namespace fs = std::filesystem;

namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

std::string first_line(const fs::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

// "200000 100000" is the time of two processors. "max 100000", "-1 100000" and a missing file mean
// no limit.
double processors_granted(const std::string& quota_and_period) {
  std::istringstream text(quota_and_period);
  double quota = 0, period = 0;
  if (!(text >> quota >> period) || quota <= 0 || period <= 0) return kNoLimit;
  return quota / period;
}

// The smallest quota of `group` and the groups above it, up to the mount point `top`. In a
// container the path may be that of the host; folders that do not exist set no limit.
template <class Granted>
double least_granted(const fs::path& top, const std::string& group, Granted granted) {
  double least = granted(top);
  fs::path at = top;
  for (const fs::path& part : fs::path(group).relative_path())
    least = std::min(least, granted(at /= part));
  return least;
}

// Lines of /proc/self/cgroup are "0::/group" for cgroups v2, and "4:cpu,cpuacct:/group" for v1.
double granted_by_groups(const fs::path& root) {
  const fs::path top = root / "sys/fs/cgroup";
  std::ifstream lines(root / "proc/self/cgroup");
  double least = kNoLimit;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t names = line.find(':'), path = line.find(':', names + 1);
    if (names == std::string::npos || path == std::string::npos) continue;
    const std::string controllers = line.substr(names + 1, path - names - 1),
                      group = line.substr(path + 1);
    if (controllers.empty()) {
      least = std::min(least, least_granted(top, group, [](const fs::path& at) {
                         return processors_granted(first_line(at / "cpu.max"));
                       }));
    } else if (("," + controllers + ",").find(",cpu,") != std::string::npos) {
      for (const std::string& mount : {controllers, std::string("cpu")})
        least = std::min(least, least_granted(top / mount, group, [](const fs::path& at) {
                           return processors_granted(first_line(at / "cpu.cfs_quota_us") + " " +
                                                     first_line(at / "cpu.cfs_period_us"));
                         }));
    }
  }
  return least;
}

}  // namespace

int usable_cores(const fs::path& root, const std::vector<int>& processors) {
  // Threads of one core have the same sibling list. A processor without a list counts as a core.
  std::set<std::string> cores;
  for (const int processor : processors) {
    const std::string name = "cpu" + std::to_string(processor);
    const std::string siblings =
        first_line(root / "sys/devices/system/cpu" / name / "topology/thread_siblings_list");
    cores.insert(siblings.empty() ? name : siblings);
  }
  const double granted = std::ceil(granted_by_groups(root));
  return static_cast<int>(std::max(1.0, std::min(static_cast<double>(cores.size()), granted)));
}

int usable_cores() {
#if defined(__linux__)
  cpu_set_t allowed;  // for 1,024 processors; the call fails on larger machines
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) {
    std::vector<int> processors;
    for (int i = 0; i < CPU_SETSIZE; ++i)
      if (CPU_ISSET(i, &allowed)) processors.push_back(i);
    return usable_cores("/", processors);
  }
#endif
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace tensorgrad::cpu
