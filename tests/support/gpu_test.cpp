#include "tests/support/gpu_test.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "runtime/webgpu/adapters.h"
#include "tensorgrad/error.h"
#include "tools/tg/compile_counter.h"

namespace tensorgrad {

std::string no_adapter() {
  static const std::string why = []() -> std::string {
    // The time of the software driver to compile shaders with barriers is quadratic in its vector
    // width.
    setenv("LP_NATIVE_VECTOR_WIDTH", "128", 0);
    try {
      return webgpu::adapters().empty() ? webgpu::why_no_adapter() : "";
    } catch (const Error& error) {
      return error.what();
    }
  }();
  return why;
}

CompileCallback shown_compiling() {
  const auto counter = std::make_shared<tool::CompileCounter>(isatty(STDERR_FILENO) != 0);
  return [counter](const CompileProgress& progress) {
    const std::string text = counter->show(progress, tool::CompileCounter::Clock::now());
    std::fputs(text.c_str(), stderr);
  };
}

void GpuTest::SetUp() {
  if (no_adapter().empty()) return;
  const char* ci = std::getenv("CI");
  if (ci && (std::string(ci) == "true" || std::string(ci) == "1")) FAIL() << no_adapter();
  GTEST_SKIP() << no_adapter();
}

}  // namespace tensorgrad
