// The words of the enums of text models and their training.
#pragma once

#include "nn/words.h"
#include "tensorgrad/trainer.h"

namespace tensorgrad {

template <>
struct Words<Positions> {
  static constexpr const char* kWhat = "positions";
  static constexpr Word<Positions> kAll[] = {{"learned", Positions::learned},
                                             {"rotary", Positions::rotary}};
};
template <>
struct Words<LrSchedule> {
  static constexpr const char* kWhat = "lr schedule";
  static constexpr Word<LrSchedule> kAll[] = {{"cosine", LrSchedule::cosine},
                                              {"linear", LrSchedule::linear},
                                              {"constant", LrSchedule::constant}};
};

}  // namespace tensorgrad
