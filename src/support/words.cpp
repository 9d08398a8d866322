#include "support/words.h"

#include "support/fail.h"
#include "support/text.h"

namespace tensorgrad {

std::vector<std::string> words(const WordTable& table) {
  std::vector<std::string> all;
  for (const auto& each : table.all) all.emplace_back(each.text);
  return all;
}

const char* word_of(const WordTable& table, int value) {
  for (const auto& each : table.all)
    if (each.value == value) return each.text;
  user_error("{} number {} does not exist", table.what, value);
}

int from_word(const WordTable& table, std::string_view word) {
  for (const auto& each : table.all)
    if (word == each.text) return each.value;
  user_error("unknown {} '{}'\n  hint: {}", table.what, word, join(words(table), ", "));
}

}  // namespace tensorgrad
