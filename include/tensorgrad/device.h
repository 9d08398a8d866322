// The devices that programs can run on.
#pragma once

#include <string>
#include <vector>

namespace tensorgrad {

struct DeviceInfo {
  std::string name;         // what TrainingOptions::device takes
  std::string description;  // for people
  bool available = false;
  bool chosen_by_auto = false;
  std::string problem;      // why it is not available, and the command that repairs it
};

std::vector<DeviceInfo> devices();

}  // namespace tensorgrad
