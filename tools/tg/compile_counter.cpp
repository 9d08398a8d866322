#include "compile_counter.h"

#include <memory>

#include "output.h"

namespace tensorgrad::tool {

CompileCallback count_compiled(std::FILE* out) {
  // Shared ownership: the program keeps the callback, because it may compile when it first runs.
  const auto counter = std::make_shared<CompileCounter>(is_terminal(out));
  return [counter, out](const CompileProgress& progress) {
    const std::string text = counter->show(progress, CompileCounter::Clock::now());
    if (!text.empty()) print_text(out, text);
  };
}

}  // namespace tensorgrad::tool
