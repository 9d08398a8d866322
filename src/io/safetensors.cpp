// Layout: 8 bytes little-endian length of the header, the header (a JSON object, padded with
// spaces), then the numbers of all tensors without gaps.
#include "io/safetensors.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <vector>

#include "io/element_type.h"
#include "io/json_error.h"
#include "support/fail.h"
#include "support/text.h"

namespace tensorgrad {

namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;
constexpr std::size_t kLengthBytes = 8;
constexpr const char* kMetadata = "__metadata__";

// ---- reading

struct Entry {
  std::string name;
  const io::ElementType* type = nullptr;
  Shape shape;
  std::uint64_t begin = 0, end = 0;
};

// JSON's own parser keeps the last of two equal keys; here they are an error, as is a header
// deeper than the format's (which also bounds what a hostile one can make the parser hold).
Json parse_header(std::string_view text) {
  std::vector<std::set<std::string>> keys;
  const auto check = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > 3) user_error("the header is nested too deeply");
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second)
      user_error("'{}' is twice in the header", parsed.get<std::string>());
    return true;
  };
  try {
    return Json::parse(text, check);
  } catch (const Json::exception& error) {
    user_error("the header is not JSON: {}", io::reason(error));
  }
}

// JSON for an error message: long values are cut.
std::string shown(const Json& value) {
  std::string text = value.dump();
  if (text.size() > 60) text.replace(60, text.npos, "...");
  return text;
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

std::uint64_t checked_product(std::uint64_t a, std::uint64_t b) {
  if (b != 0 && a > std::numeric_limits<std::int64_t>::max() / b)
    user_error("the shape is too large");
  return a * b;
}

// Everything that can be said about a tensor without looking at the others.
Entry parse_entry(const std::string& name, const Json& json, std::uint64_t data_bytes) {
  if (!json.is_object()) user_error("not an object: {}", shown(json));
  for (const auto& [key, value] : json.items())
    if (key != "dtype" && key != "shape" && key != "data_offsets")
      user_error("unknown field '{}'", key);
  const Json &dtype = field(json, "dtype"), &shape = field(json, "shape"),
             &offsets = field(json, "data_offsets");

  Entry entry{.name = name};
  if (!dtype.is_string()) user_error("dtype must be a string: {}", shown(dtype));
  entry.type = &io::element_type(dtype.get<std::string>());
  if (!shape.is_array()) user_error("shape must be a list: {}", shown(shape));
  if (shape.size() > kMaxRank)
    user_error("{} dimensions, at most {} are supported", shape.size(), kMaxRank);
  std::uint64_t bytes = entry.type->bytes;
  for (const Json& size : shape) {
    const std::uint64_t value = unsigned_integer(size, "shape");
    bytes = checked_product(bytes, value);
    if (value > std::numeric_limits<std::int64_t>::max()) user_error("the shape is too large");
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
      user_error("tensor '{}': it begins at byte {}, inside the tensor before it, which ends at {}",
                 entry.name, entry.begin, at);
    if (entry.begin > at)
      user_error("tensor '{}': bytes {} to {} before it belong to no tensor", entry.name, at,
                 entry.begin);
    at = entry.end;
  }
  if (at != data_bytes) user_error("the last {} bytes belong to no tensor", data_bytes - at);
}

Array numbers(const Entry& entry, std::string_view data) {
  return io::read_elements(*entry.type, entry.shape,
                           data.substr(entry.begin, entry.end - entry.begin));
}

// Runs `f`; an error from it gets `where` in front.
template <class F>
auto named(std::string_view where, F&& f) {
  try {
    return f();
  } catch (const UserError& error) {
    user_error("{}: {}", where, error.what());
  }
}

std::string tensor_label(const std::string& name) { return fmt::format("tensor '{}'", name); }

std::map<std::string, std::string> parse_metadata(const Json& json) {
  if (!json.is_object()) user_error("{} must be an object of strings", kMetadata);
  std::map<std::string, std::string> metadata;
  for (const auto& [key, value] : json.items()) {
    if (!value.is_string())
      user_error("{}: '{}' must be a string: {}", kMetadata, key, shown(value));
    metadata.emplace(key, value.get<std::string>());
  }
  return metadata;
}

TensorFile parse(std::string_view bytes) {
  if (bytes.size() < kLengthBytes)
    user_error("too short: {} bytes hold no header length", bytes.size());
  std::uint64_t header_bytes = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i)
    header_bytes |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  if (header_bytes > kMaxHeaderBytes)
    user_error(
        "the header has {} bytes, at most {} are allowed\n  hint: is this a safetensors file?",
        header_bytes, kMaxHeaderBytes);
  if (header_bytes > bytes.size() - kLengthBytes)
    user_error("cut off: the header has {} bytes, {} are left in the file", header_bytes,
               bytes.size() - kLengthBytes);
  const std::string_view header = bytes.substr(kLengthBytes, header_bytes);
  const std::string_view data = bytes.substr(kLengthBytes + header_bytes);
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
  for (const Entry& entry : entries)
    file.tensors.emplace(entry.name,
                         named(tensor_label(entry.name), [&] { return numbers(entry, data); }));
  return file;
}

// ---- writing

std::string quoted(const std::string& text) {
  try {
    return Json(text).dump();
  } catch (const Json::exception&) {
    user_error("names and metadata must be UTF-8");
  }
}

void append_numbers(std::string& data, const Array& array) {
  if (array.dtype() == boolean) {
    for (const std::int32_t v : array.ints()) data += static_cast<char>(v != 0);
    return;
  }
  const auto raw =
      array.dtype() == f32 ? std::as_bytes(array.floats()) : std::as_bytes(array.ints());
  data.append(reinterpret_cast<const char*>(raw.data()), raw.size());
}

std::string format(const TensorFile& file) {
  std::vector<std::string> items;
  if (!file.metadata.empty()) {
    std::vector<std::string> pairs;
    for (const auto& [key, value] : file.metadata)
      pairs.push_back(quoted(key) + ":" + quoted(value));
    items.push_back(fmt::format("{}:{{{}}}", quoted(kMetadata), join(pairs, ",")));
  }
  std::string data;
  for (const bool narrow : {false, true}) {  // types of four bytes first
    for (const auto& [name, array] : file.tensors) {
      if (narrow != (array.dtype() == boolean)) continue;
      if (name == kMetadata) user_error("a tensor must not be called {}", kMetadata);
      const std::size_t begin = data.size();
      append_numbers(data, array);
      const char* dtype = array.dtype() == f32 ? "F32" : array.dtype() == i32 ? "I32" : "BOOL";
      items.push_back(fmt::format(R"({}:{{"dtype":"{}","shape":{},"data_offsets":[{},{}]}})",
                                  quoted(name), dtype, array.shape().text(), begin, data.size()));
    }
  }

  std::string header = fmt::format("{{{}}}", join(items, ","));
  header.resize((header.size() + 7) / 8 * 8, ' ');
  if (header.size() > kMaxHeaderBytes)
    user_error("the header has {} bytes, at most {} are allowed", header.size(), kMaxHeaderBytes);
  std::string out;
  for (std::size_t i = 0; i < kLengthBytes; ++i)
    out += static_cast<char>(header.size() >> (8 * i) & 0xff);
  return out + header + data;
}

std::string system_reason() { return errno ? std::strerror(errno) : "unknown reason"; }

}  // namespace

TensorFile parse_safetensors(std::string_view bytes, std::string_view name) {
  return named(name, [&] { return parse(bytes); });
}

TensorFile read_safetensors(const std::filesystem::path& path) {
  const std::string name = path.string();
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error) user_error("{}: cannot read: {}", name, error.message());
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  std::string bytes;
  if (in) bytes.resize(size);
  if (!in || !in.read(bytes.data(), static_cast<std::streamsize>(size)))
    user_error("{}: cannot read: {}", name, system_reason());
  return parse_safetensors(bytes, name);
}

std::string format_safetensors(const TensorFile& file, std::string_view name) {
  return named(name, [&] { return format(file); });
}

void write_safetensors(const std::filesystem::path& path, const TensorFile& file) {
  const std::string bytes = format_safetensors(file, path.string());
  std::filesystem::path unfinished = path;
  unfinished += ".tmp";
  errno = 0;
  std::ofstream out(unfinished, std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  std::error_code error;
  if (!out) {
    const std::string reason = system_reason();
    std::filesystem::remove(unfinished, error);
    user_error("{}: cannot write: {}", path.string(), reason);
  }
  std::filesystem::rename(unfinished, path, error);
  if (error) {
    const std::string reason = error.message();
    std::filesystem::remove(unfinished, error);
    user_error("{}: cannot write: {}", path.string(), reason);
  }
}

}  // namespace tensorgrad
