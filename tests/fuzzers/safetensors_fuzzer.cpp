// Fuzzes the reader of safetensors files (safetensors_check.h). Start it with safetensors_seeds.
#include "tests/fuzzers/safetensors_check.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string wrong = tensorgrad::fuzzers::check_safetensors(
      std::string_view(reinterpret_cast<const char*>(data), size));
  if (wrong.empty()) return 0;
  std::fprintf(stderr, "%s\n", wrong.c_str());
  std::abort();
}
