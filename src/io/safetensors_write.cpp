// Writing safetensors files: the layout, and the public functions over it.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "io/named.h"
#include "io/safetensors_layout.h"
#include "support/file.h"
#include "support/integers.h"
#include "support/json_text.h"
#include "support/text.h"
#include "support/utf8.h"
#include "tensorgrad/safetensors.h"

namespace tensorgrad::io {

namespace {

std::string quoted(const std::string& text) {
  if (!is_utf8(text)) user_error("names and metadata must be UTF-8");
  return JsonText().value(text).take();
}

std::size_t bytes_of(const Array& array) {
  return usize(array.count()) * (array.dtype() == boolean ? 1 : 4);
}

// Writes one byte per value, 4096 at a time.
void narrow_pieces(std::span<const std::int32_t> values, const Sink& sink) {
  std::array<std::byte, 4096> buffer;
  while (!values.empty()) {
    const std::size_t count = std::min(values.size(), buffer.size());
    for (std::size_t i = 0; i < count; ++i) buffer[i] = static_cast<std::byte>(values[i] != 0);
    sink(std::span(buffer).first(count));
    values = values.subspan(count);
  }
}

}  // namespace

void SafetensorsLayout::pieces(const Sink& sink) const {
  sink(std::as_bytes(std::span(front)));
  for (const Array* array : arrays) {
    if (array->dtype() == boolean)
      narrow_pieces(array->ints(), sink);
    else
      sink(array->dtype() == f32 ? std::as_bytes(array->floats()) : std::as_bytes(array->ints()));
  }
}

std::string SafetensorsLayout::bytes() const {
  std::string all;
  all.reserve(front.size() + data_bytes);
  pieces([&](std::span<const std::byte> piece) {
    all.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  });
  return all;
}

void SafetensorsLayout::write(const std::filesystem::path& path) const {
  AtomicFile file(path);
  pieces([&](std::span<const std::byte> piece) { file.write(piece); });
  file.commit();
}

SafetensorsLayout lay_out(const Strings& metadata, const TensorList& tensors) {
  std::vector<std::string> items;
  if (!metadata.empty()) {
    std::vector<std::string> pairs;
    for (const auto& [key, value] : metadata) pairs.push_back(quoted(key) + ":" + quoted(value));
    items.push_back(fmt::format("{}:{{{}}}", quoted(kMetadata), join(pairs, ",")));
  }
  SafetensorsLayout layout;
  for (const bool narrow : {false, true}) {
    for (const auto& [name, array] : tensors) {
      if (narrow != (array->dtype() == boolean)) continue;
      if (name == kMetadata) user_error("a tensor must not be called {}", kMetadata);
      const std::size_t begin = layout.data_bytes;
      layout.data_bytes += bytes_of(*array);
      layout.arrays.push_back(array);
      const char* dtype = array->dtype() == f32 ? "F32" : array->dtype() == i32 ? "I32" : "BOOL";
      items.push_back(fmt::format(R"({}:{{"dtype":"{}","shape":{},"data_offsets":[{},{}]}})",
                                  quoted(name), dtype, array->shape().text(), begin,
                                  layout.data_bytes));
    }
  }

  std::string header = fmt::format("{{{}}}", join(items, ","));
  header.resize((header.size() + 7) / 8 * 8, ' ');
  if (header.size() > kMaxHeaderBytes)
    user_error("the header has {} bytes, at most {} are allowed", header.size(), kMaxHeaderBytes);
  const std::uint64_t length = header.size();
  for (std::size_t i = 0; i < kLengthBytes; ++i)
    layout.front += static_cast<char>(length >> (8 * i) & 0xff);
  layout.front += header;
  return layout;
}

}  // namespace tensorgrad::io

namespace tensorgrad {

namespace {

io::SafetensorsLayout layout_of(const TensorFile& file, std::string_view name) {
  io::TensorList tensors;
  for (const auto& [own, array] : file.tensors) tensors.emplace_back(own, &array);
  return io::named(name, [&] {
    return io::lay_out({file.metadata.begin(), file.metadata.end()}, tensors);
  });
}

}  // namespace

std::string format_safetensors(const TensorFile& file, std::string_view name) {
  return layout_of(file, name).bytes();
}

void write_safetensors(const std::filesystem::path& path, const TensorFile& file) {
  layout_of(file, path.string()).write(path);
}

}  // namespace tensorgrad
