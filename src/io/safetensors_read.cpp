// Reads safetensors files: the frame, the header, each tensor alone, all tensors together, and
// finally the elements.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "io/element_type.h"
#include "io/in_quotes.h"
#include "io/named.h"
#include "io/safetensors_layout.h"
#include "io/safetensors_source.h"
#include "support/fail.h"
#include "support/file.h"
#include "support/json.h"
#include "tensorgrad/safetensors.h"

namespace tensorgrad {

namespace {

using io::in_quotes;
using io::kMetadata;
using io::named;

struct Entry {
  std::string name;
  const io::ElementType* type = nullptr;
  Shape shape;
  std::uint64_t begin = 0, end = 0;
};

std::string tensor_label(std::string_view name) { return "tensor " + in_quotes(name); }

// Tensors are objects that hold lists: three levels. The limit bounds the cost of a hostile header.
JsonDocument parse_header(std::string_view text) {
  return named("the header", [&] { return parse_json(text, 3); });
}

std::uint64_t unsigned_integer(const Json& value, const char* what) {
  const std::optional<std::uint64_t> number = value.natural();
  if (!number) user_error("{} must contain non-negative integers: {}", what, shown(value));
  return *number;
}

const Json& field(const Json& entry, const char* name) {
  const Json* found = entry.find(name);
  if (!found) user_error("{} is missing", name);
  return *found;
}

constexpr std::uint64_t kMostElements = std::uint64_t{1}
                                        << 60;  // as in a Shape; zeros count as ones

// Checks a tensor without looking at the others.
Entry parse_entry(std::string_view name, const Json& json, std::uint64_t data_bytes) {
  if (!json.is_object()) user_error("not an object: {}", shown(json));
  for (const auto& [key, value] : json.members())
    if (key != "dtype" && key != "shape" && key != "data_offsets")
      user_error("unknown field {}", in_quotes(key));
  const Json &dtype = field(json, "dtype"), &shape = field(json, "shape"),
             &offsets = field(json, "data_offsets");

  Entry entry{.name = std::string(name)};
  if (!dtype.is_text()) user_error("dtype must be a string: {}", shown(dtype));
  entry.type = io::find_element_type(dtype.text());
  if (!entry.type) user_error("unknown dtype {}", in_quotes(dtype.text()));
  if (!entry.type->supported())
    user_error("dtype {} is not supported: use F16, BF16, F32, F64, BOOL or integers",
               entry.type->name);
  if (!shape.is_list()) user_error("shape must be a list: {}", shown(shape));
  if (shape.size() > kMaxRank)
    user_error("{} dimensions, at most {} are supported", shape.size(), kMaxRank);
  std::uint64_t bytes = entry.type->bytes, limit = kMostElements;
  for (const Json& size : shape.items()) {
    const std::uint64_t value = unsigned_integer(size, "shape");
    if (value > limit) user_error("the shape is too large");
    limit /= std::max<std::uint64_t>(value, 1);
    bytes *= value;  // at most 8 * 2^60
    entry.shape.push_back(static_cast<std::int64_t>(value));
  }

  if (!offsets.is_list() || offsets.size() != 2)
    user_error("data_offsets must be [begin, end]: {}", shown(offsets));
  entry.begin = unsigned_integer(offsets[0], "data_offsets");
  entry.end = unsigned_integer(offsets[1], "data_offsets");
  if (entry.begin > entry.end)
    user_error("it ends before it begins: {} to {}", entry.begin, entry.end);
  if (entry.end > data_bytes)
    user_error("it ends at byte {}, past the {} bytes of data", entry.end, data_bytes);
  if (entry.end - entry.begin != bytes)
    user_error("{}{} needs {} bytes, data_offsets have {}", entry.type->name, entry.shape.text(),
               bytes, entry.end - entry.begin);
  return entry;
}

// Checks that the tensors are contiguous and fill the data.
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

std::map<std::string, std::string> parse_metadata(const Json& json) {
  if (!json.is_object()) user_error("{} must be an object of strings", kMetadata);
  std::map<std::string, std::string> metadata;
  for (const auto& [key, value] : json.members()) {
    if (!value.is_text())
      user_error("{}: {} must be a string: {}", kMetadata, in_quotes(key), shown(value));
    metadata.emplace(key, value.text());
  }
  return metadata;
}

// Users often pass weights from torch.save. Their first bytes differ from any safetensors file.
void refuse_pytorch(std::string_view front) {
  const bool zip = front.starts_with("PK\x03\x04");
  const bool pickle = front[0] == '\x80' && front[1] >= 2 && front[1] <= 5;
  if (zip || pickle)
    user_error(
        "not a safetensors file but {}, as torch.save writes it (.pt, .pth, .bin)\n"
        "  hint: convert it in Python:\n"
        "    import torch, safetensors.torch as st; w = torch.load('model.pt', "
        "map_location='cpu')\n"
        "    st.save_file({{k: v.contiguous().clone() for k, v in w.items()}}, "
        "'model.safetensors')",
        zip ? "a zip archive" : "a Python pickle");
}

// Returns the size of the header, which must fit into the source.
std::uint64_t header_bytes_of(const io::ByteSource& source) {
  if (source.size < io::kLengthBytes)
    user_error("too short: {} bytes cannot hold the header length", source.size);
  char length[io::kLengthBytes];
  source.read(0, length);
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < io::kLengthBytes; ++i)
    bytes |= static_cast<std::uint64_t>(static_cast<unsigned char>(length[i])) << (8 * i);
  if (bytes > io::kMaxHeaderBytes) refuse_pytorch({length, sizeof length});
  if (bytes > io::kMaxHeaderBytes)
    user_error(
        "the header has {} bytes, at most {} are allowed\n  hint: is this a safetensors file?",
        bytes, io::kMaxHeaderBytes);
  if (bytes > source.size - io::kLengthBytes)
    user_error("truncated: the header has {} bytes, {} are left in the file", bytes,
               source.size - io::kLengthBytes);
  return bytes;
}

// Reads length and header, unparsed.
std::string read_front(const io::ByteSource& source) {
  std::string front(io::kLengthBytes + header_bytes_of(source), '\0');
  source.read(0, front);
  if (front.size() == io::kLengthBytes || front[io::kLengthBytes] != '{')
    user_error("the header does not start with '{{'");
  return front;
}

struct Header {
  std::map<std::string, std::string> metadata;
  std::vector<Entry> entries;  // in file order
};

Header checked_header(std::string_view text, std::uint64_t data_bytes) {
  Header header;
  const JsonDocument document = parse_header(text);
  for (const auto& [name, value] : document.root().members()) {
    if (name == kMetadata)
      header.metadata = parse_metadata(value);
    else
      header.entries.push_back(named(tensor_label(name), [&, &own = name, &entry = value] {
        return parse_entry(own, entry, data_bytes);
      }));
  }
  check_cover(header.entries, data_bytes);
  return header;
}

// Reads the bytes of a source in order and passes them to `seen`.
class Walk {
 public:
  Walk(const io::ByteSource& source, std::uint64_t at, const io::TensorReading& how)
      : source_(source), at_(at), how_(how) {}

  void next(std::span<char> to) {
    source_.read(at_, to);
    at_ += to.size();
    if (how_.seen) how_.seen(to);
  }

  void pass_over(std::uint64_t bytes) {
    constexpr std::uint64_t kPiece = 1 << 18;
    if (!how_.seen) at_ += bytes, bytes = 0;  // skip them
    for (std::vector<char> piece; bytes > 0; bytes -= piece.size()) {
      piece.resize(std::min(bytes, kPiece));
      next(piece);
    }
  }

 private:
  const io::ByteSource& source_;
  std::uint64_t at_;
  const io::TensorReading& how_;
};

}  // namespace

TensorFile io::read_tensors(const ByteSource& source, const TensorReading& how) {
  std::string front = read_front(source);
  if (how.seen) how.seen(front);
  Header header =
      checked_header(std::string_view(front).substr(kLengthBytes), source.size - front.size());
  Walk walk(source, front.size(), how);
  std::string().swap(front);
  TensorFile file{.metadata = std::move(header.metadata)};
  for (const Entry& entry : header.entries) {
    if (how.wanted && !how.wanted(entry.name)) {
      walk.pass_over(entry.end - entry.begin);
      continue;
    }
    file.tensors.emplace(entry.name, named(tensor_label(entry.name), [&] {
                           return read_elements(*entry.type, entry.shape,
                                                [&](std::span<char> to) { walk.next(to); });
                         }));
    file.stored.emplace(entry.name, entry.type->name);
  }
  return file;
}

TensorFile parse_safetensors(std::string_view bytes, std::string_view name) {
  return named(name, [&] { return io::read_tensors(io::source_of(bytes)); });
}

TensorFile read_safetensors(const std::filesystem::path& path) {
  return io::named_file(path, [&] {
    const InputFile file(path);
    return io::read_tensors(io::source_of(file));
  });
}

}  // namespace tensorgrad
