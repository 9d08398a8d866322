// Enums and their words in JSON, on the command line and in other languages.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tensorgrad {

template <class E>
struct Word {
  const char* text;
  E value;
};

// Every enum with words has a table `kAll`, and `kWhat`, its name in errors.
template <class E>
struct Words;

// The table of some enum.
struct WordTable {
  const char* what;
  std::span<const Word<int>> all;
};
template <class E>
struct WordsAsNumbers {
  static constexpr std::size_t kCount = std::size(Words<E>::kAll);
  struct Numbers {
    Word<int> all[kCount];
  };
  static constexpr Numbers kNumbers = [] {
    Numbers numbers{};
    for (std::size_t i = 0; i < kCount; ++i)
      numbers.all[i] = {Words<E>::kAll[i].text, static_cast<int>(Words<E>::kAll[i].value)};
    return numbers;
  }();
};
template <class E>
inline constexpr WordTable kWordTable{Words<E>::kWhat, WordsAsNumbers<E>::kNumbers.all};

std::vector<std::string> words(const WordTable& table);
// Errors do not say where the word or the number came from; the caller adds that.
const char* word_of(const WordTable& table, int value);
int from_word(const WordTable& table, std::string_view word);

template <class E>
std::vector<std::string> words() {
  return words(kWordTable<E>);
}
template <class E>
const char* word_of(E value) {
  return word_of(kWordTable<E>, static_cast<int>(value));
}
template <class E>
E from_word(std::string_view word) {
  return static_cast<E>(from_word(kWordTable<E>, word));
}

}  // namespace tensorgrad
