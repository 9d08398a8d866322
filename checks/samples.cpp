#include "checks/samples.h"

#include <cctype>
#include <iterator>

namespace tensorgrad::checks {

std::string Sample::name() const {
  std::string text = op + "_" + variant;
  for (char& c : text)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return text;
}

const Samples& samples() {
  static const Samples all = [] {
    Samples joined;
    for (Samples (*family)() :
         {unary_samples,    binary_samples,  logic_samples,       reduce_samples,
          position_samples, view_samples,    movement_samples,    matmul_samples,
          indexing_samples, builder_samples, normalise_samples,   attention_samples,
          conv1d_samples,   ssd_samples,     state_space_samples, loss_samples,
          window_samples,   random_samples,  operand_samples,     chain_samples}) {
      Samples rows = family();
      std::move(rows.begin(), rows.end(), std::back_inserter(joined));
    }
    return joined;
  }();
  return all;
}

}  // namespace tensorgrad::checks
