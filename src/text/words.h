// Enum settings and their words in JSON and on the command line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "support/fail.h"
#include "support/text.h"
#include "tensorgrad/trainer.h"

namespace tensorgrad::text {

template <class E>
struct Word {
  const char* text;
  E value;
};

// Every enum of a config has a table here, and `kWhat`, its name in errors.
template <class E>
struct Words;

template <>
struct Words<Positions> {
  static constexpr const char* kWhat = "positions";
  static constexpr Word<Positions> kAll[] = {{"learned", Positions::learned},
                                             {"rotary", Positions::rotary}};
};
template <>
struct Words<NormKind> {
  static constexpr const char* kWhat = "norm";
  static constexpr Word<NormKind> kAll[] = {{"layer", NormKind::layer}, {"rms", NormKind::rms}};
};
template <>
struct Words<Discretisation> {
  static constexpr const char* kWhat = "discretisation";
  static constexpr Word<Discretisation> kAll[] = {{"euler", Discretisation::euler},
                                                  {"zoh", Discretisation::zoh}};
};
template <>
struct Words<LrSchedule> {
  static constexpr const char* kWhat = "lr schedule";
  static constexpr Word<LrSchedule> kAll[] = {{"cosine", LrSchedule::cosine},
                                              {"linear", LrSchedule::linear},
                                              {"constant", LrSchedule::constant}};
};

template <class E>
std::vector<std::string> words() {
  std::vector<std::string> all;
  for (const auto& each : Words<E>::kAll) all.emplace_back(each.text);
  return all;
}

// Errors do not say where the word or the number came from; the caller adds that.
template <class E>
const char* word_of(E value) {
  for (const auto& each : Words<E>::kAll)
    if (each.value == value) return each.text;
  user_error("{} number {} does not exist", Words<E>::kWhat, static_cast<int>(value));
}

template <class E>
E from_word(std::string_view word) {
  for (const auto& each : Words<E>::kAll)
    if (word == each.text) return each.value;
  user_error("unknown {} '{}'\n  hint: {}", Words<E>::kWhat, word, join(words<E>(), ", "));
}

}  // namespace tensorgrad::text
