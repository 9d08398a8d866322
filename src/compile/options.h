// Options of compile(): what is refused, and what they ask of the pipeline. Knows no device.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compile/parameters.h"
#include "compile/pipeline.h"
#include "tensorgrad/compile.h"

namespace tensorgrad::detail {

// The passes to leave out: those in `without`, and those in TENSORGRAD_WITHOUT. Throws a UserError
// for a name that is not a pass.
std::vector<std::string> passes_left_out(std::vector<std::string> without);

// `threads`, or TENSORGRAD_THREADS if it is 0, or 0 for one thread per core.
int threads_asked_for(int threads);

// Throws a UserError if an option is invalid, or if a filter matches no parameter.
void check_options(const TrainingOptions& options, const Parameters& parameters);

// The learning-rate schedule of an optimizer.
Schedule rate_of(const Optimizer& optimizer);

// What the pipeline has to compile for these options. Throws a UserError if nothing is trained.
Request training_request(const TrainingOptions& options, const Parameters& parameters,
                         const ParameterLayout& layout, std::uint64_t model);
Request forward_request(const AttachOptions& options, std::uint64_t model);

}  // namespace tensorgrad::detail
