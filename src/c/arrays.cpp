// Arrays by name, safetensors and checkpoints.
#include <fmt/format.h>

#include <charconv>
#include <iterator>
#include <new>
#include <utility>

#include "c/object.h"
#include "c/objects.h"
#include "io/checkpoint_bytes.h"
#include "support/fail.h"
#include "support/words.h"
#include "tensorgrad/safetensors.h"

using namespace tensorgrad;
using namespace tensorgrad::c;

std::map<std::string, Array>::iterator tg_arrays::at(int index) {
  if (index < 0 || index >= static_cast<int>(values.size()))
    user_error("arrays: there is no number {}: there are {}", index, values.size());
  return std::next(values.begin(), index);
}

namespace {

// "f32[2,3]"
std::pair<DType, Shape> parse_type(std::string_view text) {
  const auto refuse = [&]() { user_error("'{}' is not a type\n  hint: f32[2,3], i32[]", text); };
  const std::size_t open = text.find('[');
  if (open == text.npos || text.back() != ']') refuse();
  std::pair<DType, Shape> type{from_word<DType>(text.substr(0, open)), {}};
  const char* at = text.data() + open + 1;
  const char* const end = text.data() + text.size() - 1;
  while (at != end) {
    std::int64_t size = 0;
    const auto [behind, error] = std::from_chars(at, end, size);
    if (error != std::errc() || size < 0 || (behind != end && *behind != ',')) refuse();
    type.second.push_back(size, kNowhere);
    if (behind + 1 == end) refuse();
    at = behind == end ? end : behind + 1;
  }
  return type;
}

Array zeros_of(const std::pair<DType, Shape>& type) {
  if (!std::in_range<std::size_t>(4 * type.second.count())) throw std::bad_alloc();
  const auto count = static_cast<std::size_t>(type.second.count());
  if (type.first == f32) return {type.second, std::vector<float>(count)};
  return {type.second, std::vector<std::int32_t>(count), type.first};
}

void* elements_of(Array& array) {
  if (array.dtype() == f32) return array.floats().data();
  return const_cast<std::int32_t*>(std::as_const(array).ints().data());
}

std::map<std::string, std::string> read_texts(const Json& object, const char* what) {
  std::map<std::string, std::string> texts;
  if (!object.is_object()) user_error("{}: not a JSON object: {}", what, shown(object));
  for (const auto& [name, value] : object.members()) {
    if (!value.is_text()) user_error("{}: '{}' must be a text", what, name);
    texts.emplace(name, value.text());
  }
  return texts;
}

std::string texts_json(const std::map<std::string, std::string>& texts) {
  JsonText json;
  json.begin('{');
  for (const auto& [name, text] : texts) json.field(name, text);
  return json.end('}').take();
}

std::string_view bytes_of(const void* bytes, std::size_t size, const char* what) {
  if (!bytes) user_error("{}: there are no bytes", what);
  return {static_cast<const char*>(bytes), size};
}

}  // namespace

tg_arrays* tg_arrays_new(void) {
  return guarded(nullptr, []() -> tg_arrays* { return new tg_arrays; });
}
void tg_arrays_free(tg_arrays* arrays) {
  if (is_handle(arrays, tg_arrays::kKind) && !arrays->borrowed) delete arrays;
}

void* tg_arrays_add(tg_arrays* arrays, const char* name, const char* type) {
  return guarded(nullptr, [&]() -> void* {
    auto& values = given(arrays, "arrays").values;
    const std::string own(text_or(name));
    if (values.count(own)) user_error("arrays: the name '{}' is taken", own);
    return elements_of(values.emplace(own, zeros_of(parse_type(text_or(type)))).first->second);
  });
}

int tg_arrays_count(const tg_arrays* arrays) {
  return guarded(-1, [&] { return static_cast<int>(given(arrays, "arrays").values.size()); });
}

int tg_arrays_find(const tg_arrays* arrays, const char* name) {
  return guarded(-1, [&] {
    const NamedArrays& values = given(arrays, "arrays").values;
    const auto found = values.find(std::string(text_or(name)));
    if (found == values.end()) {
      std::vector<std::string> names;
      for (const auto& [own, array] : values) names.push_back(own);
      throw UserError(user_message("arrays", fmt::format("there is no '{}'", text_or(name)),
                                   name_hint(text_or(name), names), "", "", 0));
    }
    return static_cast<int>(std::distance(values.begin(), found));
  });
}

const char* tg_arrays_name(const tg_arrays* arrays, int index) {
  return guarded(nullptr, [&]() -> const char* {
    return const_cast<tg_arrays&>(given(arrays, "arrays")).at(index)->first.c_str();
  });
}

const char* tg_arrays_type(tg_arrays* arrays, int index) {
  return guarded(nullptr, [&]() -> const char* {
    const Array& array = given(arrays, "arrays").at(index)->second;
    arrays->text = type_text(array.dtype(), array.shape());
    return arrays->text.c_str();
  });
}

void* tg_arrays_data(tg_arrays* arrays, int index) {
  return guarded(nullptr,
                 [&]() -> void* { return elements_of(given(arrays, "arrays").at(index)->second); });
}

tg_arrays* tg_arrays_load(const void* bytes, size_t size, const char* name) {
  return guarded(nullptr, [&]() -> tg_arrays* {
    auto made = std::make_unique<tg_arrays>();
    TensorFile file =
        parse_safetensors(bytes_of(bytes, size, "safetensors"), text_or(name, "safetensors"));
    made->values = std::move(file.tensors);
    made->metadata = std::move(file.metadata);
    return made.release();
  });
}

const char* tg_arrays_metadata(tg_arrays* arrays) {
  return guarded(nullptr, [&]() -> const char* {
    arrays->text = texts_json(given(arrays, "arrays").metadata);
    return arrays->text.c_str();
  });
}

tg_bytes* tg_arrays_save(const tg_arrays* arrays, const char* metadata) {
  return guarded(nullptr, [&]() -> tg_bytes* {
    const TensorFile file{given(arrays, "arrays").values,
                          read_texts(read_object(metadata, "metadata").root(), "metadata"),
                          {}};
    return new tg_bytes{{}, format_safetensors(file, "safetensors")};
  });
}

const void* tg_bytes_data(const tg_bytes* bytes) {
  return guarded(nullptr, [&]() -> const void* { return given(bytes, "bytes").bytes.data(); });
}
size_t tg_bytes_size(const tg_bytes* bytes) {
  return guarded(0, [&] { return given(bytes, "bytes").bytes.size(); });
}
void tg_bytes_free(tg_bytes* bytes) { free_handle(bytes); }

// ---- checkpoints

tg_checkpoint* tg_checkpoint_new(const tg_arrays* parameters, const tg_arrays* optimizer,
                                 const char* info) {
  return guarded(nullptr, [&]() -> tg_checkpoint* {
    Checkpoint made{.parameters = given(parameters, "parameters").values};
    if (optimizer) made.optimizer = given(optimizer, "optimizer").values;
    const JsonDocument document = read_object(info, "checkpoint");
    Object from(document.root(), "checkpoint");
    from.read("step", made.step);
    from.read("seed", made.seed);
    from.read("position", made.position);
    from.read("config", made.config);
    from.read("tokenizer", made.tokenizer);
    if (const Json* more = from.find("more")) made.more = read_texts(*more, "checkpoint: more");
    from.finish();
    return new tg_checkpoint(std::move(made));
  });
}

tg_checkpoint* tg_checkpoint_load(const void* bytes, size_t size, const char* name) {
  return guarded(nullptr, [&]() -> tg_checkpoint* {
    return new tg_checkpoint(
        io::parse_checkpoint(bytes_of(bytes, size, "checkpoint"), text_or(name, "checkpoint")));
  });
}

tg_bytes* tg_checkpoint_save(const tg_checkpoint* checkpoint) {
  return guarded(nullptr, [&]() -> tg_bytes* {
    return new tg_bytes{{},
                        io::format_checkpoint(given(checkpoint, "checkpoint").value, "checkpoint")};
  });
}

tg_arrays* tg_checkpoint_parameters(tg_checkpoint* checkpoint) {
  return guarded(nullptr, [&]() -> tg_arrays* {
    tg_checkpoint& of = given(checkpoint, "checkpoint");
    of.parameters.values = of.value.parameters;
    return &of.parameters;
  });
}

tg_arrays* tg_checkpoint_optimizer(tg_checkpoint* checkpoint) {
  return guarded(nullptr, [&]() -> tg_arrays* {
    tg_checkpoint& of = given(checkpoint, "checkpoint");
    of.optimizer.values = of.value.optimizer;
    return &of.optimizer;
  });
}

const char* tg_checkpoint_info(tg_checkpoint* checkpoint) {
  return guarded(nullptr, [&]() -> const char* {
    const Checkpoint& value = given(checkpoint, "checkpoint").value;
    checkpoint->text = JsonText()
                           .begin('{')
                           .field("step", value.step)
                           .field("seed", value.seed)
                           .field("position", value.position)
                           .field("config", value.config)
                           .field("tokenizer", value.tokenizer)
                           .key("more")
                           .raw(texts_json(value.more))
                           .end('}')
                           .take();
    return checkpoint->text.c_str();
  });
}

void tg_checkpoint_free(tg_checkpoint* checkpoint) { free_handle(checkpoint); }
