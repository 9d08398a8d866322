// The data of `tg bench --profile`: the kernels of a step in order, with their times.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "command.h"
#include "tensorgrad/compile.h"

namespace tensorgrad::tool {

struct ProfiledKernel {
  std::int64_t number = 0;  // in the plan
  std::string phase;        // forward, backward or update
  std::string kind;         // rows, columns, matmul, single or copy
  std::string name;         // the ops it is made of
  std::string where;        // layer and line of the user's call
  std::int64_t dispatches = 0;
  double us = 0;
  std::int64_t operations = 0, bytes = 0;

  double gflops() const { return us > 0 ? static_cast<double>(operations) / us / 1e3 : 0; }
  double gb_per_s() const { return us > 0 ? static_cast<double>(bytes) / us / 1e3 : 0; }
};

struct Profile {
  std::string model, device;
  std::int64_t batch = 0;
  std::vector<ProfiledKernel> kernels;

  double total_us() const;
  std::int64_t dispatches() const;
};

// Runs a few steps with each dispatch timed alone.
Profile measure_profile(std::string model, std::int64_t batch, ProgramHandle& program);

Json profile_json(const Profile& profile);
void print_profile(const Profile& profile);  // longest first

// A self-contained HTML page: bars along time, and a table.
std::string profile_page(const std::vector<Profile>& profiles);

}  // namespace tensorgrad::tool
