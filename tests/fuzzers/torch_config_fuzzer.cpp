// Fuzzes the reader of the config.json of PyTorch weights (torch_config_check.h). Start it with
// torch_config_seeds.
#include "tests/fuzzers/torch_config_check.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string wrong = tensorgrad::fuzzers::check_torch_config(
      std::string_view(reinterpret_cast<const char*>(data), size));
  if (wrong.empty()) return 0;
  std::fprintf(stderr, "%s\n", wrong.c_str());
  std::abort();
}
