// The words of the enums of ops.h.
#pragma once

#include "support/words.h"
#include "tensorgrad/ops.h"

namespace tensorgrad {

template <>
struct Words<DType> {
  static constexpr const char* kWhat = "dtype";
  static constexpr Word<DType> kAll[] = {
      {"f32", DType::f32}, {"i32", DType::i32}, {"bool", DType::boolean}};
};
template <>
struct Words<Reduction> {
  static constexpr const char* kWhat = "reduction";
  static constexpr Word<Reduction> kAll[] = {
      {"mean", Reduction::mean}, {"sum", Reduction::sum}, {"none", Reduction::none}};
};
template <>
struct Words<PadMode> {
  static constexpr const char* kWhat = "mode";
  static constexpr Word<PadMode> kAll[] = {{"constant", PadMode::constant},
                                           {"reflect", PadMode::reflect},
                                           {"circular", PadMode::circular}};
};
template <>
struct Words<Discretisation> {
  static constexpr const char* kWhat = "discretisation";
  static constexpr Word<Discretisation> kAll[] = {{"euler", Discretisation::euler},
                                                  {"zoh", Discretisation::zoh}};
};

}  // namespace tensorgrad
