// The parameters of a model: what they are, which of them are trained, and where they lie in
// memory. Knows no device.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "schedule/layout.h"
#include "tensorgrad/compile.h"

namespace tensorgrad::detail {

struct Parameter {
  std::string name;
  Shape shape;
  Init init;
  bool decay = false, frozen = false;
};

struct Parameters {
  std::vector<Parameter> list;                 // in field order
  std::map<std::string, std::string> aliases;  // name of a tied field -> name of the parameter

  std::vector<std::string> names() const;
};

// Names the parameters of a model by their fields, and binds them to its id. Tied fields are one
// parameter, under the name of the first.
Parameters collect_parameters(const FoundParams& found, std::uint64_t model);

// Sets which parameters are frozen and which decay, as the options say.
void select_trained(Parameters& parameters, const TrainingOptions& options);

// Throws a UserError if an initialiser does not fit its parameter. Calls initialisers that are
// functions of the user now, because they may refer to objects that are destroyed later.
void prepare_initialisers(Parameters& parameters, std::uint32_t seed);

// Trained parameters come first, those that decay before the others: the optimizer uses one flat
// tensor. Frozen parameters come last.
struct ParameterLayout {
  schedule::Layout layout;
  std::int64_t trained_elements = 0;  // of the flat tensor
};
ParameterLayout lay_out(const Parameters& parameters);

}  // namespace tensorgrad::detail
