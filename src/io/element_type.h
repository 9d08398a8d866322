// The element types of safetensors files and what they become here.
#pragma once

#include <cstdint>
#include <string_view>

#include "tensorgrad/array.h"

namespace tensorgrad::io {

// How one element is read; at most one of the functions is set, none when the type is known but
// not supported. A number that does not fit is a UserError.
struct ElementType {
  std::string_view name;
  std::uint64_t bytes = 0;
  float (*to_float)(const char*) = nullptr;
  std::int32_t (*to_int)(const char*) = nullptr;
  DType dtype = i32;  // of what to_int makes

  bool supported() const { return to_float || to_int; }
};

// By the name in the file; null when the format knows no such type.
const ElementType* find_element_type(std::string_view name);

// The elements in `bytes`, which are as many as the shape needs.
Array read_elements(const ElementType& type, const Shape& shape, std::string_view bytes);

}  // namespace tensorgrad::io
