// The public ops: every function of ops.h as data. `tg ops`, docs/ops.md, `tg verify`, the fuzzer
// and the C interface are made from these records, so that a new op appears in all of them. Each
// file of the folder registers its own functions; nn/registry.h has the list of all.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "ops/words.h"
#include "tensorgrad/ops.h"

namespace tensorgrad::ops {

// The type of a parameter.
enum class Kind : std::uint8_t {
  tensor,    // a tensor, a parameter of the model or a scalar
  tensors,   // a list of them
  number,    // f32
  integer,   //
  boolean,   //
  text,      //
  word,      // one of a few words
  shape,     // sizes of a shape
  integers,  // any list of integers
  axes,      // one axis or several
  pair,      // one size for height and width, or both
};

// The value of an argument. The kind of its parameter determines the alternative: `integers` for
// shapes, axes and pairs too, and text for words. monostate: nothing was given.
using Integers = std::vector<std::int64_t>;
using Argument = std::variant<std::monostate, Operand, std::vector<Operand>, double, std::int64_t,
                              bool, std::string, Integers>;

struct Parameter {
  std::string_view name;
  Kind kind = Kind::tensor;
  bool optional = false;
  Argument otherwise;  // the default; monostate: the sentence of the op says what happens
  std::vector<std::string> words;  // of Kind::word
};

// ---- The records are constants: they take memory and no code.

// A parameter's name and its default.
struct Named {
  enum class Default : std::uint8_t { none, nothing, number, word };
  const char* name = nullptr;
  Default has = Default::none;
  double number = 0;  // also of an integer, of true, of a scalar and of equal sizes
  const char* word = nullptr;

  constexpr Named() = default;
  constexpr Named(const char* required) : name(required) {}
  constexpr Named(const char* parameter, std::monostate) : name(parameter), has(Default::nothing) {}
  constexpr Named(const char* parameter, const char* text)
      : name(parameter), has(Default::word), word(text) {}
  template <class T>
  requires std::is_arithmetic_v<T>
  constexpr Named(const char* parameter, T value)
      : name(parameter), has(Default::number), number(static_cast<double>(value)) {}
};
inline constexpr std::monostate kNothing;

// The kind of a C++ type, and its words.
struct Type {
  Kind kind = Kind::tensor;
  const WordTable* words = nullptr;
};

// The parameters of an op or of a layer's constructor.
struct Parameters {
  static constexpr std::size_t kMost = 13;
  std::array<Named, kMost> named = {};
  std::array<Type, kMost> types = {};
  std::size_t count = 0;

  std::vector<Parameter> list() const;
};

// Where a call gets the values of its parameters.
struct Given {
  const Argument* arguments;  // one per parameter
  Site site;                  // the user's line
};

struct PublicOp {
  std::string_view name;
  std::string_view sentence;
  Parameters own;
  bool several = false;  // returns a list of tensors
  std::vector<Tensor> (*function)(const Given& given) = nullptr;

  std::vector<Parameter> parameters() const { return own.list(); }
  // `arguments` has one entry per parameter, in that order, with defaults filled in. `site` is the
  // user's line.
  std::vector<Tensor> call(std::span<const Argument> arguments, Site site) const;
};

struct PublicFamily {
  std::string_view name;
  std::string_view title;  // of its section on the reference page
  std::span<const PublicOp> ops;
};

// "tensor", "integers"
std::string_view name(Kind kind);
// "axis: integer = -1", "kernel: size or [height, width]", for people.
std::string text(const Parameter& parameter);
// "softmax(x, axis = -1)".
std::string signature(std::string_view name, std::span<const Parameter> parameters);

// ---- how a file registers its functions

// An integer that counts axes, heads or layers. Breaks a rule if it does not fit.
int small(std::int64_t value);
std::vector<int> all_small(const Integers& values);

// As<T>: the kind of a C++ parameter, and its value from an argument.
template <class T>
struct As;

template <Kind kOwn, class T>
struct AsItIs {
  static constexpr Type kType{kOwn};
  static const T& from(const Argument& a, Site) { return std::get<T>(a); }
};
template <>
struct As<Operand> : AsItIs<Kind::tensor, Operand> {};
template <>
struct As<bool> : AsItIs<Kind::boolean, bool> {};
template <>
struct As<std::int64_t> : AsItIs<Kind::integer, std::int64_t> {};
template <>
struct As<std::string> : AsItIs<Kind::text, std::string> {};
template <>
struct As<Integers> : AsItIs<Kind::integers, Integers> {};
template <>
struct As<Operands> {
  static constexpr Type kType{Kind::tensors};
  static Operands from(const Argument& a, Site site) {
    return Operands(std::get<std::vector<Operand>>(a), site);
  }
};
template <std::floating_point T>
struct As<T> {
  static constexpr Type kType{Kind::number};
  static T from(const Argument& a, Site) { return static_cast<T>(std::get<double>(a)); }
};
template <>
struct As<int> {
  static constexpr Type kType{Kind::integer};
  static int from(const Argument& a, Site) { return small(std::get<std::int64_t>(a)); }
};
template <class E>
requires std::is_enum_v<E>
struct As<E> {
  static constexpr Type kType{Kind::word, &kWordTable<E>};
  static E from(const Argument& a, Site) { return from_word<E>(std::get<std::string>(a)); }
};
template <>
struct As<Shape> {
  static constexpr Type kType{Kind::shape};
  static Shape from(const Argument& a, Site site) { return Shape(std::get<Integers>(a), site); }
};
template <>
struct As<std::vector<int>> {
  static constexpr Type kType{Kind::integers};
  static std::vector<int> from(const Argument& a, Site) { return all_small(std::get<Integers>(a)); }
};
template <>
struct As<Axes> {
  static constexpr Type kType{Kind::axes};
  static Axes from(const Argument& a, Site) {
    return std::holds_alternative<std::monostate>(a) ? Axes() : all_small(std::get<Integers>(a));
  }
};
template <>
struct As<Pair> {
  static constexpr Type kType{Kind::pair};
  static Pair from(const Argument& a, Site) {
    const Integers& both = std::get<Integers>(a);
    return {both.front(), both.back()};
  }
};
template <class T>
struct As<std::optional<T>> {
  static constexpr Type kType = As<T>::kType;
  static std::optional<T> from(const Argument& a, Site site) {
    if (std::holds_alternative<std::monostate>(a)) return {};
    return As<T>::from(a, site);
  }
};

// The parameters of a function with these types, without const and reference. A Site is none of
// them: it gets the user's line.
template <class... T>
constexpr Parameters parameters_of(std::initializer_list<Named> names) {
  Parameters out;
  const auto add = [&]<class One>(std::type_identity<One>) {
    if constexpr (!std::same_as<One, Site>) out.types[out.count++] = As<One>::kType;
  };
  (add(std::type_identity<T>()), ...);
  if (names.size() != out.count) throw "a name for each parameter but a Site";
  std::copy(names.begin(), names.end(), out.named.begin());
  return out;
}

// How many of the first `count` types are no Site.
template <class... T>
constexpr std::size_t arguments_before(std::size_t count) {
  const bool is_argument[] = {!std::same_as<T, Site>..., false};
  std::size_t arguments = 0;
  for (std::size_t i = 0; i < count; ++i) arguments += is_argument[i];
  return arguments;
}

template <class T, std::size_t kIndex>
decltype(auto) value_of(const Given& given) {
  if constexpr (std::same_as<T, Site>)
    return (given.site);
  else
    return As<T>::from(given.arguments[kIndex], given.site);
}

// Calls a function with the given values. Functions with the same types share this.
template <class R, class... T>
[[gnu::noinline]] R invoke(R (*function)(T...), const Given& given) {
  return [&]<std::size_t... I>(std::index_sequence<I...>)->R {
    return function(
        value_of<std::remove_cvref_t<T>, arguments_before<std::remove_cvref_t<T>...>(I)>(given)...);
  }
  (std::index_sequence_for<T...>());
}

inline std::vector<Tensor> as_list(Tensor one) { return {std::move(one)}; }
inline std::vector<Tensor> as_list(std::vector<Tensor> several) { return several; }

template <auto kFunction>
std::vector<Tensor> call_function(const Given& given) {
  return as_list(invoke(kFunction, given));
}
template <class Lambda>
std::vector<Tensor> call_lambda(const Given& given) {
  return as_list(invoke(+Lambda{}, given));
}

template <class R, class... T>
constexpr PublicOp record(R (*)(T...), std::string_view name, std::initializer_list<Named> names,
                          std::string_view sentence,
                          std::vector<Tensor> (*function)(const Given&)) {
  return {name, sentence, parameters_of<std::remove_cvref_t<T>...>(names),
          std::same_as<R, std::vector<Tensor>>, function};
}

// Registers a function of ops.h. `names` has an entry per parameter but a Site.
template <auto kFunction>
constexpr PublicOp op(std::string_view name, std::initializer_list<Named> names,
                      std::string_view sentence) {
  return record(kFunction, name, names, sentence, call_function<kFunction>);
}
// The same for a function with an options struct, or with overloads: by a lambda with one parameter
// per argument.
template <class Lambda>
constexpr PublicOp op(std::string_view name, Lambda lambda, std::initializer_list<Named> names,
                      std::string_view sentence) {
  return record(+lambda, name, names, sentence, call_lambda<Lambda>);
}

// One function per file of the folder that defines functions of ops.h.
std::span<const PublicOp> elementwise_ops();
std::span<const PublicOp> compare_ops();
std::span<const PublicOp> reduce_ops();
std::span<const PublicOp> movement_ops();
std::span<const PublicOp> window_ops();
std::span<const PublicOp> matmul_ops();
std::span<const PublicOp> gather_ops();
std::span<const PublicOp> leaf_ops();
std::span<const PublicOp> composite_ops();
std::span<const PublicOp> attention_ops();
std::span<const PublicOp> conv1d_ops();
std::span<const PublicOp> state_space_ops();
std::span<const PublicOp> ssd_ops();
std::span<const PublicOp> random_ops();

}  // namespace tensorgrad::ops
