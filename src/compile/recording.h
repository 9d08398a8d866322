// Recording: a program whose ops the caller calls, one by one, instead of passing a function. Other
// languages use it: no frame of the library is open while their code runs.
//   Recording recording = Recording::of_training(params, options);
//   { const ops::BuildScope scope(recording.tracer().builder()); ...ops... }
//   std::move(recording).finish({{"loss", loss}});
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "compile/program.h"
#include "trace/trace.h"

namespace tensorgrad::detail {

class Recording {
 public:
  // These check the options, like compile(), compile_forward() and attach().
  static Recording of_training(const FoundParams& params, const TrainingOptions& options);
  static Recording of_forward(const FoundParams& params, const ForwardOptions& options);
  static Recording of_attached(const std::shared_ptr<Driver>& driver, const AttachOptions& options);

  trace::Tracer& tracer() { return tracer_; }
  // Ends the trace and compiles the program.
  Future<Compiled> finish(const Outputs& outputs) &&;

 private:
  using Make = std::function<std::shared_ptr<Program>(Driver& driver, Request request,
                                                      const trace::Source& source)>;
  Recording(std::shared_ptr<Driver> driver, Request request, std::vector<TaskStep> before,
            Make make);

  std::shared_ptr<Driver> driver_;
  Request request_;
  std::vector<TaskStep> before_;  // what has to be done once per model
  Make make_;
  trace::Tracer tracer_;
};

}  // namespace tensorgrad::detail
