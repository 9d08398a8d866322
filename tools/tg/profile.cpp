#include "profile.h"

#include <algorithm>

#include "support/integers.h"

namespace tensorgrad::tool {

namespace {

constexpr int kSteps = 10;  // the shortest time of each dispatch counts
constexpr std::size_t kNameWidth = 60;

// Names list every fused op, up to a hundred. The number identifies a kernel.
std::string shortened(const std::string& name) {
  return name.size() <= kNameWidth ? name : name.substr(0, kNameWidth - 3) + "...";
}

}  // namespace

double Profile::total_us() const {
  double total = 0;
  for (const ProfiledKernel& kernel : kernels) total += kernel.us;
  return total;
}

std::int64_t Profile::dispatches() const {
  std::int64_t total = 0;
  for (const ProfiledKernel& kernel : kernels) total += kernel.dispatches;
  return total;
}

Profile measure_profile(std::string model, std::int64_t batch, ProgramHandle& program) {
  Profile out{.model = std::move(model),
              .device = where_text(program.device(), program.threads()),
              .batch = batch,
              .kernels = {}};
  for (const PlannedKernel& planned : program.plan()) {
    const std::vector<std::string>& ops = planned.ops;
    out.kernels.push_back(
        {.number = static_cast<std::int64_t>(out.kernels.size()),
         .phase = planned.phase,
         .kind = planned.kind,
         .name = ops.empty() ? planned.kind : fmt::format("{}", fmt::join(ops, " ")),
         .where = planned.where,
         .operations = planned.operations,
         .bytes = planned.bytes_read + planned.bytes_written});
  }
  for (const DispatchTime& time : program.profile(kSteps)) {
    ProfiledKernel& kernel = out.kernels.at(usize(time.kernel));
    kernel.us += time.microseconds;
    ++kernel.dispatches;
  }
  return out;
}

Json profile_json(const Profile& profile) {
  Json kernels = Json::array();
  for (const ProfiledKernel& kernel : profile.kernels)
    kernels.push_back({{"kernel", kernel.number},
                       {"phase", kernel.phase},
                       {"kind", kernel.kind},
                       {"name", kernel.name},
                       {"where", kernel.where},
                       {"us", rounded(kernel.us, 2)},
                       {"dispatches", kernel.dispatches},
                       {"gflops", rounded(kernel.gflops(), 2)},
                       {"gb_per_s", rounded(kernel.gb_per_s(), 2)}});
  return {{"model", profile.model},
          {"device", profile.device},
          {"batch", profile.batch},
          {"profile", kernels},
          {"total_us", rounded(profile.total_us(), 1)}};
}

void print_profile(const Profile& profile) {
  const double total = profile.total_us();
  print_out("{} at batch {} on {}: {} kernels, {} dispatches, {:.1f} us when each runs alone\n",
            profile.model, profile.batch, profile.device, profile.kernels.size(),
            profile.dispatches(), total);
  print_out("{:>12}{:>8}{:>10}{:>9}{:>8}  {:<10}{:<9}{}\n", "us", "%", "GFLOP/s", "GB/s", "kernel",
            "phase", "kind", "ops");
  std::vector<ProfiledKernel> longest = profile.kernels;
  std::stable_sort(longest.begin(), longest.end(),
                   [](const auto& a, const auto& b) { return a.us > b.us; });
  for (const ProfiledKernel& kernel : longest)
    print_out("{:>12.1f}{:>8.1f}{:>10.1f}{:>9.1f}{:>8}  {:<10}{:<9}{}{}{}\n", kernel.us,
              100 * kernel.us / total, kernel.gflops(), kernel.gb_per_s(), kernel.number,
              kernel.phase, kernel.kind, shortened(kernel.name), kernel.where.empty() ? "" : "  # ",
              kernel.where);
}

}  // namespace tensorgrad::tool
