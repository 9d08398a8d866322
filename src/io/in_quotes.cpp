#include "io/in_quotes.h"

#include "support/json_text.h"
#include "support/utf8.h"

namespace tensorgrad::io {

std::string in_quotes(std::string_view text) {
  const std::string json = JsonText().value(text).take();
  return "'" + cut(json.substr(1, json.size() - 2)) + "'";
}

}  // namespace tensorgrad::io
