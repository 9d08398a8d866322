// The interface of tokenizer kinds. A kind is immutable, so any number of threads may use it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tensorgrad/tokenizer.h"

namespace tensorgrad {

class Json;
class JsonText;
namespace io {
struct BpeModel;
}

class Tokenizer::Kind {
 public:
  virtual ~Kind() = default;
  virtual std::string_view name() const = 0;
  virtual std::int64_t vocab_size() const = 0;
  virtual std::size_t encode_some(std::string_view text, bool last,
                                  std::vector<std::int32_t>& ids) const = 0;
  // `id` must be in range.
  virtual std::string_view token(std::int32_t id) const = 0;
  virtual std::int32_t find(std::string_view token) const = 0;
  // Writes the fields that from_json() needs beside "kind".
  virtual void describe(JsonText& json) const = 0;
  // Those of byte-pair encoding; null for other kinds.
  virtual const io::BpeModel* byte_pairs() const { return nullptr; }
};

namespace io {

using TokenizerKind = std::shared_ptr<const Tokenizer::Kind>;

TokenizerKind characters_of(std::string_view text);

// Read what describe() wrote; other fields are errors.
TokenizerKind characters_from_json(const Json& json);
TokenizerKind bpe_from_json(const Json& json);

// Returns a field of a JSON object.
const Json& field(const Json& json, const char* name);
// Throws if there is a field other than these and "kind".
void check_fields(const Json& json, std::initializer_list<std::string_view> names);

}  // namespace io
}  // namespace tensorgrad
