// Recognises the text of tools/grammar_text, to say how much of what a model writes is right. A
// parser of its own: it shares the grammar with the script, and nothing else.
#pragma once

#include <string_view>

namespace tensorgrad {

// Whether a line, without its newline, could have come from the script.
bool is_sentence(std::string_view line);

// Which share of the lines in a stretch of text are sentences. The first and the last may be cut
// and do not count; 0 where that leaves none.
double share_of_sentences(std::string_view text);

}  // namespace tensorgrad
