// The number of usable cores, from Linux files of other machines.
#include "runtime/cpu/cores.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <numeric>

namespace tensorgrad::cpu {
namespace {

namespace fs = std::filesystem;

class Cores : public testing::Test {
 protected:
  Cores() { fs::remove_all(root_); }
  ~Cores() override { fs::remove_all(root_); }

  void write(const fs::path& file, const std::string& text) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text << "\n";
  }
  // Processors 0 .. n-1, each with its sibling list.
  void machine(const std::vector<std::string>& siblings) {
    for (std::size_t i = 0; i < siblings.size(); ++i)
      write("sys/devices/system/cpu/cpu" + std::to_string(i) + "/topology/thread_siblings_list",
            siblings[i]);
  }
  int usable(int processors) {
    std::vector<int> all(static_cast<std::size_t>(processors));
    std::iota(all.begin(), all.end(), 0);
    return usable_cores(root_, all);
  }

  fs::path root_ = fs::temp_directory_path() / ("tensorgrad-cores-" + std::to_string(getpid()));
};

TEST_F(Cores, AreCountedOnceForTheirThreads) {
  machine({"0,2", "1,3", "0,2", "1,3"});
  EXPECT_EQ(usable(4), 2);
  EXPECT_EQ(usable_cores(root_, {0, 2}), 1) << "bound to both threads of one core";
  EXPECT_EQ(usable_cores(root_, {1, 2}), 2) << "bound to a thread of each";
}

TEST_F(Cores, WithoutATopologyAreProcessors) {
  EXPECT_EQ(usable(6), 6);
  EXPECT_EQ(usable(0), 1);
}

TEST_F(Cores, AreLimitedByTheQuotaOfAGroup) {
  write("proc/self/cgroup", "0::/jobs/one");
  write("sys/fs/cgroup/jobs/cpu.max", "250000 100000");
  EXPECT_EQ(usable(8), 3) << "two and a half processors' time, by the group above";
  write("sys/fs/cgroup/jobs/one/cpu.max", "max 100000");
  EXPECT_EQ(usable(8), 3);
  write("sys/fs/cgroup/jobs/one/cpu.max", "50000 100000");
  EXPECT_EQ(usable(8), 1);
}

TEST_F(Cores, AreLimitedByTheQuotaInsideAContainer) {
  write("proc/self/cgroup", "0::/");
  write("sys/fs/cgroup/cpu.max", "400000 100000");
  EXPECT_EQ(usable(8), 4);
  EXPECT_EQ(usable(2), 2) << "more time than processors";
}

TEST_F(Cores, AreLimitedByTheQuotaOfTheFirstVersion) {
  write("proc/self/cgroup",
        "5:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n1:name=systemd:/docker/abc");
  write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1");
  write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000");
  EXPECT_EQ(usable(8), 8);
  write("sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "150000");
  write("sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_period_us", "100000");
  EXPECT_EQ(usable(8), 2);
}

TEST_F(Cores, AreNotLimitedByFilesThatMakeNoSense) {
  machine({"", "garbage", "garbage"});
  write("proc/self/cgroup", "nothing to see\n:\n0::/../..\n");
  write("sys/fs/cgroup/cpu.max", "many");
  EXPECT_EQ(usable(3), 2);
}

TEST_F(Cores, OfThisMachineAreAtLeastOne) { EXPECT_GE(usable_cores(), 1); }

}  // namespace
}  // namespace tensorgrad::cpu
