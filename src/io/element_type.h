// The element types of safetensors files and their conversion.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "tensorgrad/array.h"

namespace tensorgrad::io {

// How to read one element. At most one of the functions is set; none if the format has the type but
// we do not support it. Throws a UserError for a value that does not fit.
struct ElementType {
  std::string_view name;
  std::uint64_t bytes = 0;
  float (*to_float)(const char*) = nullptr;
  std::int32_t (*to_int)(const char*) = nullptr;
  DType dtype = i32;  // result type of to_int

  bool supported() const { return to_float || to_int; }
};

// Finds a type by its name in the file; null if the format has no such type.
const ElementType* find_element_type(std::string_view name);

// Reads the elements of a tensor. `next` fills its argument with the bytes that follow. All calls
// together request exactly the bytes of the shape.
using NextBytes = std::function<void(std::span<char>)>;
Array read_elements(const ElementType& type, const Shape& shape, const NextBytes& next);

}  // namespace tensorgrad::io
