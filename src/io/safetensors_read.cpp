// Reading safetensors files: the frame, the header, each tensor by itself, all tensors together,
// and only then the numbers.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <vector>

#include "io/element_type.h"
#include "io/in_quotes.h"
#include "io/json_error.h"
#include "io/named.h"
#include "io/safetensors_layout.h"
#include "support/fail.h"
#include "support/file.h"
#include "tensorgrad/safetensors.h"

namespace tensorgrad {

namespace {

using Json = nlohmann::json;
using io::in_quotes;
using io::kMetadata;
using io::named;

struct Entry {
  std::string name;
  const io::ElementType* type = nullptr;
  Shape shape;
  std::uint64_t begin = 0, end = 0;
};

std::string shown(const Json& value) { return io::cut(value.dump()); }

std::string tensor_label(const std::string& name) { return "tensor " + in_quotes(name); }

// JSON's own parser keeps the last of two equal keys; here they are an error, as is a header
// deeper than the format's (which also bounds what a hostile one can make the parser hold).
Json parse_header(std::string_view text) {
  std::vector<std::set<std::string>> keys;
  const auto check = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > 3) user_error("the header is nested too deeply");
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second)
      user_error("{} is twice in the header", in_quotes(parsed.get<std::string>()));
    return true;
  };
  // To the parser a zero byte is the end, whatever follows.
  if (text.find('\0') != text.npos) user_error("the header is not JSON: it holds a zero byte");
  try {
    return Json::parse(text, check);
  } catch (const Json::exception& error) {
    user_error("the header is not JSON: {}", io::reason(error));
  }
}

std::uint64_t unsigned_integer(const Json& value, const char* what) {
  if (!value.is_number_unsigned())
    user_error("{} must hold integers, not negative: {}", what, shown(value));
  return value.get<std::uint64_t>();
}

const Json& field(const Json& entry, const char* name) {
  const auto found = entry.find(name);
  if (found == entry.end()) user_error("{} is missing", name);
  return *found;
}

constexpr std::uint64_t kMostElements = std::uint64_t{1}
                                        << 60;  // as in a Shape; zeros count as ones

// Everything that can be said about a tensor without looking at the others.
Entry parse_entry(const std::string& name, const Json& json, std::uint64_t data_bytes) {
  if (!json.is_object()) user_error("not an object: {}", shown(json));
  for (const auto& [key, value] : json.items())
    if (key != "dtype" && key != "shape" && key != "data_offsets")
      user_error("unknown field {}", in_quotes(key));
  const Json &dtype = field(json, "dtype"), &shape = field(json, "shape"),
             &offsets = field(json, "data_offsets");

  Entry entry{.name = name};
  if (!dtype.is_string()) user_error("dtype must be a string: {}", shown(dtype));
  entry.type = io::find_element_type(dtype.get<std::string>());
  if (!entry.type) user_error("unknown dtype {}", in_quotes(dtype.get<std::string>()));
  if (!entry.type->supported())
    user_error("dtype {} is not supported: F16, BF16, F32, F64, BOOL and integers are",
               entry.type->name);
  if (!shape.is_array()) user_error("shape must be a list: {}", shown(shape));
  if (shape.size() > kMaxRank)
    user_error("{} dimensions, at most {} are supported", shape.size(), kMaxRank);
  std::uint64_t bytes = entry.type->bytes, limit = kMostElements;
  for (const Json& size : shape) {
    const std::uint64_t value = unsigned_integer(size, "shape");
    if (value > limit) user_error("the shape is too large");
    limit /= std::max<std::uint64_t>(value, 1);
    bytes *= value;  // at most 8 * 2^60
    entry.shape.push_back(static_cast<std::int64_t>(value));
  }

  if (!offsets.is_array() || offsets.size() != 2)
    user_error("data_offsets must be [begin, end]: {}", shown(offsets));
  entry.begin = unsigned_integer(offsets[0], "data_offsets");
  entry.end = unsigned_integer(offsets[1], "data_offsets");
  if (entry.begin > entry.end)
    user_error("it ends before it begins: {} to {}", entry.begin, entry.end);
  if (entry.end > data_bytes)
    user_error("it ends at byte {}, behind the {} bytes of data", entry.end, data_bytes);
  if (entry.end - entry.begin != bytes)
    user_error("{}{} needs {} bytes, data_offsets have {}", entry.type->name, entry.shape.text(),
               bytes, entry.end - entry.begin);
  return entry;
}

// The tensors lie one behind the other and fill the data.
void check_cover(std::vector<Entry>& entries, std::uint64_t data_bytes) {
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  std::uint64_t at = 0;
  for (const Entry& entry : entries) {
    if (entry.begin < at)
      user_error("{}: it begins at byte {}, inside the tensor before it, which ends at {}",
                 tensor_label(entry.name), entry.begin, at);
    if (entry.begin > at)
      user_error("{}: bytes {} to {} before it belong to no tensor", tensor_label(entry.name), at,
                 entry.begin);
    at = entry.end;
  }
  if (at != data_bytes) user_error("the last {} bytes belong to no tensor", data_bytes - at);
}

Array numbers(const Entry& entry, std::string_view data) {
  return io::read_elements(*entry.type, entry.shape,
                           data.substr(entry.begin, entry.end - entry.begin));
}

std::map<std::string, std::string> parse_metadata(const Json& json) {
  if (!json.is_object()) user_error("{} must be an object of strings", kMetadata);
  std::map<std::string, std::string> metadata;
  for (const auto& [key, value] : json.items()) {
    if (!value.is_string())
      user_error("{}: {} must be a string: {}", kMetadata, in_quotes(key), shown(value));
    metadata.emplace(key, value.get<std::string>());
  }
  return metadata;
}

TensorFile parse(std::string_view bytes) {
  if (bytes.size() < io::kLengthBytes)
    user_error("too short: {} bytes hold no header length", bytes.size());
  std::uint64_t header_bytes = 0;
  for (std::size_t i = 0; i < io::kLengthBytes; ++i)
    header_bytes |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  if (header_bytes > io::kMaxHeaderBytes)
    user_error(
        "the header has {} bytes, at most {} are allowed\n  hint: is this a safetensors file?",
        header_bytes, io::kMaxHeaderBytes);
  if (header_bytes > bytes.size() - io::kLengthBytes)
    user_error("cut off: the header has {} bytes, {} are left in the file", header_bytes,
               bytes.size() - io::kLengthBytes);
  const std::string_view header = bytes.substr(io::kLengthBytes, header_bytes);
  const std::string_view data = bytes.substr(io::kLengthBytes + header_bytes);
  if (header.empty() || header[0] != '{') user_error("the header does not start with '{{'");

  TensorFile file;
  std::vector<Entry> entries;
  const Json json = parse_header(header);
  for (const auto& [name, value] : json.items()) {
    if (name == kMetadata)
      file.metadata = parse_metadata(value);
    else
      entries.push_back(named(tensor_label(name), [&, &own = name, &entry = value] {
        return parse_entry(own, entry, data.size());
      }));
  }
  check_cover(entries, data.size());
  for (const Entry& entry : entries) {
    file.tensors.emplace(entry.name,
                         named(tensor_label(entry.name), [&] { return numbers(entry, data); }));
    file.stored.emplace(entry.name, entry.type->name);
  }
  return file;
}

}  // namespace

TensorFile parse_safetensors(std::string_view bytes, std::string_view name) {
  return named(name, [&] { return parse(bytes); });
}

TensorFile read_safetensors(const std::filesystem::path& path) {
  return parse_safetensors(read_file(path), path.string());
}

}  // namespace tensorgrad
