// Enums and their words in JSON, on the command line and in other languages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "support/fail.h"
#include "support/text.h"

namespace tensorgrad {

template <class E>
struct Word {
  const char* text;
  E value;
};

// Every enum with words has a table `kAll`, and `kWhat`, its name in errors.
template <class E>
struct Words;

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

}  // namespace tensorgrad
