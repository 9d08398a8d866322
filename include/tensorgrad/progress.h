// Progress of compilation: for `.progress` in the options of compile() and similar calls.
#pragma once

#include <cstdint>
#include <functional>

namespace tensorgrad {

// What is being counted. Each kind of work counts from 0 to its total, one by one. It ends before
// the next kind begins. Kinds without work are left out.
enum class CompileWork : std::uint8_t {
  kernels,    // CPU kernels
  tuning,     // large matmuls: measures the fastest shader, once per kind of GPU
  shaders,    // GPU shaders
  first_run,  // dispatches of the first step or run, in which software GPU drivers compile
};

// `done` of `total` are finished.
struct CompileProgress {
  std::int64_t done = 0, total = 0;
  CompileWork work = CompileWork::kernels;
};

// A callback that reports the progress of compilation. It is called on the thread that compiles:
// with 0 before the first kernel, and after each kernel. The first run with captures compiles its
// own kernels, and so does profile() on a GPU: both report again. The program stores the callback;
// the callback must not use the program. An exception from the callback ends the call that
// compiles, and nothing has run. During `first_run` an exception only stops the reports: the step
// continues to its end.
//   .progress = [](const tg::CompileProgress& p) { std::printf("\r%ld of %ld", p.done, p.total); }
using CompileCallback = std::function<void(const CompileProgress&)>;

}  // namespace tensorgrad
