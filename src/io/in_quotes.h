// Texts from files, as part of errors: whatever they hold, an error stays a line that one can
// print.
#pragma once

#include <string>

namespace tensorgrad::io {

// At most 60 bytes, cut between two characters, and "..." for the rest.
std::string cut(std::string text);

// 'text', cut; control characters, quotes and what is not UTF-8 are escaped as in JSON.
std::string in_quotes(const std::string& text);

}  // namespace tensorgrad::io
