// Fuzzes the readers of tokenizers (vocabulary_check.h): they may throw only UserError, and
// accepted input must work. Start it with tests/fuzzers/vocabulary_seeds.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "tests/fuzzers/vocabulary_check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string wrong = tensorgrad::fuzzers::check_vocabulary(
      std::string_view(reinterpret_cast<const char*>(data), size));
  if (wrong.empty()) return 0;
  std::fprintf(stderr, "%s\n", wrong.c_str());
  std::abort();
}
