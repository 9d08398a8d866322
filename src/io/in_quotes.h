// Quotes text from files in error messages. Whatever the text holds, the error stays one printable
// line.
#pragma once

#include <string>
#include <string_view>

namespace tensorgrad::io {

// 'text', cut to 60 bytes. Escapes control characters, quotes and invalid UTF-8 as in JSON.
std::string in_quotes(std::string_view text);

}  // namespace tensorgrad::io
