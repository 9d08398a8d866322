// Compiles kernels for the CPU: Kernel -> Compiled. Work is split into tasks by shape alone, never
// by the number of threads, and every sum has a fixed order: any number of threads gives the same
// bits.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

#include "codegen/cpu/block_program.h"
#include "codegen/cpu/reader.h"
#include "ir/kernel.h"

namespace tensorgrad::cpu {

// A non-owning reference to a function of the task index. The callable must outlive the call it is
// passed to. A std::function would allocate for each kernel of a step.
class TaskRef {
 public:
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, TaskRef>)
      TaskRef(F&& task)  // NOLINT: lambdas are passed as they are
      : object_(&task), call_([](const void* object, std::int64_t i) {
          (*static_cast<const std::remove_reference_t<F>*>(object))(i);
        }) {}
  void operator()(std::int64_t i) const { call_(object_, i); }

 private:
  const void* object_;
  void (*call_)(const void*, std::int64_t);
};

// Runs task(0) .. task(n-1), in parallel if possible, and returns when all are done. If tasks
// throw, rethrows the exception of the lowest index.
class Executor {
 public:
  virtual ~Executor() = default;
  virtual void run(std::int64_t tasks, TaskRef task) = 0;
};

class Compiled {
 public:
  virtual ~Compiled() = default;
  virtual void run(const Memory& memory, Executor& executor) const = 0;
};

std::unique_ptr<Compiled> compile(const ir::Kernel& kernel);

// One overload per kind of kernel; `core` is the core of `kernel`.
std::unique_ptr<Compiled> compile_core(const ir::Kernel& kernel, const ir::RowsKernel& core);
std::unique_ptr<Compiled> compile_core(const ir::Kernel& kernel, const ir::ColumnsKernel& core);
std::unique_ptr<Compiled> compile_core(const ir::Kernel& kernel, const ir::ArgReduceKernel& core);
std::unique_ptr<Compiled> compile_core(const ir::Kernel& kernel, const ir::ScanKernel& core);
std::unique_ptr<Compiled> compile_core(const ir::Kernel& kernel, const ir::MatmulKernel& core);
std::unique_ptr<Compiled> compile_core(const ir::Kernel& kernel, const ir::SegmentSumKernel& core);
std::unique_ptr<Compiled> compile_core(const ir::Kernel& kernel, const ir::ScatterAddKernel& core);
std::unique_ptr<Compiled> compile_core(const ir::Kernel& kernel, const ir::AttentionKernel& core);
std::unique_ptr<Compiled> compile_core(const ir::Kernel& kernel,
                                       const ir::AttentionGradientKernel& core);
std::unique_ptr<Compiled> compile_core(const ir::Kernel& kernel,
                                       const ir::SelectiveScanKernel& core);
std::unique_ptr<Compiled> compile_core(const ir::Kernel& kernel,
                                       const ir::SelectiveScanGradientKernel& core);

// Scratch memory of the calling thread: at least that many floats, kept between calls. Each use
// within one task has its own index. Between tasks any kernel may overwrite a buffer, except this
// one, which matmuls keep from task to task.
inline constexpr int kKeptRows = 6;
float* scratch_floats(std::size_t count, int index = 0);

}  // namespace tensorgrad::cpu
