#include "nn/sizes.h"

#include <algorithm>
#include <string>
#include <vector>

namespace tensorgrad::nn {

void check_sizes(std::string_view layer, std::initializer_list<Size> sizes, Site site) {
  if (std::all_of(sizes.begin(), sizes.end(), [](const Size& size) { return size.value >= 1; }))
    return;
  std::vector<std::string> parts;
  for (const Size& size : sizes) parts.push_back(fmt::format("{} {}", size.name, size.value));
  refuse(layer, fmt::format("sizes must be at least 1: {}", fmt::join(parts, ", ")), site);
}

void refuse(std::string_view layer, std::string_view rule, Site site) {
  // The call site is inside the standard library when a container made the layer. Leave it out.
  if (std::string_view(site.file).find("/include/c++/") != std::string_view::npos) site = {};
  throw UserError(user_message(layer, rule, "", "", site.file, site.line));
}

}  // namespace tensorgrad::nn
