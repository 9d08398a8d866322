// Recognises the text of tools/grammar_text, to measure how much of a model's output is right. An
// independent parser: it shares only the grammar with the script.
#pragma once

#include <string_view>

namespace tensorgrad {

// Whether a line, without its newline, could have come from the script.
bool is_sentence(std::string_view line);

// The fraction of lines of a text that are sentences. The first and the last line may be incomplete
// and do not count; 0 if none are left.
double share_of_sentences(std::string_view text);

}  // namespace tensorgrad
