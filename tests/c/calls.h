// What the tests of the C interface share: handles that free themselves, waiting, and arrays.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "tensorgrad/c.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::c_tests {

using Json = nlohmann::ordered_json;

template <auto kFree>
struct Freed {
  template <class T>
  void operator()(T* handle) const {
    kFree(handle);
  }
};
using Arrays = std::unique_ptr<tg_arrays, Freed<tg_arrays_free>>;
using Bytes = std::unique_ptr<tg_bytes, Freed<tg_bytes_free>>;
using Point = std::unique_ptr<tg_checkpoint, Freed<tg_checkpoint_free>>;
using Model = std::unique_ptr<tg_model, Freed<tg_model_free>>;
using Graph = std::unique_ptr<tg_graph, Freed<tg_graph_free>>;
using Program = std::unique_ptr<tg_program, Freed<tg_program_free>>;
using Waiting = std::unique_ptr<tg_future, Freed<tg_future_free>>;

inline std::string type_of(const Array& array) {
  return name(array.dtype()) + array.shape().text();
}

inline Arrays arrays(const NamedArrays& values) {
  Arrays made(tg_arrays_new());
  for (const auto& [name, array] : values) {
    void* const data = tg_arrays_add(made.get(), name.c_str(), type_of(array).c_str());
    EXPECT_NE(data, nullptr) << tg_error();
    if (!data) continue;
    if (array.dtype() == f32)
      std::copy_n(array.floats().begin(), array.count(), static_cast<float*>(data));
    else
      std::copy_n(array.ints().begin(), array.count(), static_cast<std::int32_t*>(data));
  }
  return made;
}

// "f32[2,3]": for the types that programs return.
inline Array array_of(const std::string& type, const void* data) {
  const auto open = type.find('[');
  const Json sizes = Json::parse(type.substr(open));
  const Shape shape(sizes.get<std::vector<std::int64_t>>());
  const auto count = static_cast<std::size_t>(shape.count());
  if (type.starts_with("f32"))
    return {shape, std::vector<float>(static_cast<const float*>(data),
                                      static_cast<const float*>(data) + count)};
  return {shape,
          std::vector<std::int32_t>(static_cast<const std::int32_t*>(data),
                                    static_cast<const std::int32_t*>(data) + count),
          type.starts_with("bool") ? boolean : i32};
}

inline NamedArrays values(tg_arrays* from) {
  NamedArrays all;
  EXPECT_NE(from, nullptr) << tg_error();
  for (int i = 0; from && i < tg_arrays_count(from); ++i) {
    const std::string name = tg_arrays_name(from, i), type = tg_arrays_type(from, i);
    all.emplace(name, array_of(type, tg_arrays_data(from, i)));
  }
  return all;
}

// Polls until the future is ready, which must not be an error.
inline Waiting done(tg_future* future) {
  EXPECT_NE(future, nullptr) << tg_error();
  while (future && tg_ready(future) == 0) EXPECT_GE(tg_poll(), 0) << tg_error();
  EXPECT_TRUE(!future || tg_ready(future) == 1) << tg_error();
  return Waiting(future);
}

inline Program compiled(Graph graph) {
  const Waiting future = done(tg_compile(graph.release()));
  return Program(tg_future_program(future.get()));
}

inline NamedArrays run(const Program& program, const NamedArrays& feed) {
  const Waiting future = done(tg_run(program.get(), arrays(feed).get(), 0));
  return values(tg_future_arrays(future.get()));
}

inline NamedArrays download(const Program& program, const char* what = "parameters") {
  const Waiting future = done(tg_download(program.get(), what));
  return values(tg_future_arrays(future.get()));
}

inline Array floats(const Shape& shape, std::vector<float> values) {
  return {shape, std::move(values)};
}
inline Array ints(const Shape& shape, std::vector<std::int32_t> values, DType dtype = i32) {
  return {shape, std::move(values), dtype};
}

// The same types and the same bits, NaN included.
inline void expect_same(const Array& got, const Array& want, const std::string& what) {
  ASSERT_EQ(type_of(got), type_of(want)) << what;
  const auto bytes = [](const Array& array) {
    return array.dtype() == f32 ? std::as_bytes(array.floats()) : std::as_bytes(array.ints());
  };
  const auto a = bytes(got), b = bytes(want);
  EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin())) << what;
}

inline void expect_same(const NamedArrays& got, const NamedArrays& want) {
  ASSERT_EQ(got.size(), want.size());
  for (const auto& [name, array] : want) {
    ASSERT_EQ(got.count(name), 1u) << name;
    expect_same(got.at(name), array, name);
  }
}

}  // namespace tensorgrad::c_tests
