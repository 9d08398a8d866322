// Quotes text from files in error messages. Whatever the text holds, the error stays one printable
// line.
#pragma once

#include <string>

namespace tensorgrad::io {

// Keeps at most 60 bytes, cut between two characters, and appends "..." if it cuts.
std::string cut(std::string text);

// 'text', cut. Escapes control characters, quotes and invalid UTF-8 as in JSON.
std::string in_quotes(const std::string& text);

}  // namespace tensorgrad::io
