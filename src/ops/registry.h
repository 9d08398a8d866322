// The public ops: every function of ops.h as data. `tg ops`, docs/ops.md, `tg verify`, the fuzzer
// and the C interface are made from these records, so that a new op appears in all of them. Each
// file of the folder registers its own functions; nn/registry.h has the list of all.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
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

struct PublicOp {
  std::string_view name;
  std::string_view sentence;
  std::vector<Parameter> parameters;
  bool several = false;  // returns a list of tensors
  // `arguments` has one entry per parameter, in that order, with defaults filled in. `site` is the
  // user's line.
  std::function<std::vector<Tensor>(std::span<const Argument> arguments, Site site)> call;
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

// A parameter's name and its default.
struct Named {
  std::string_view name;
  bool optional = false;
  Argument otherwise;

  Named(const char* required) : name(required) {}
  Named(const char* parameter, std::monostate) : name(parameter), optional(true) {}
  Named(const char* parameter, const char* word)
      : name(parameter), optional(true), otherwise(std::string(word)) {}
  Named(const char* parameter, Integers sizes)
      : name(parameter), optional(true), otherwise(std::move(sizes)) {}
  Named(const char* parameter, const Operand& scalar)
      : name(parameter), optional(true), otherwise(scalar) {}
  template <class T>
  requires std::is_arithmetic_v<T> Named(const char* parameter, T value)
      : name(parameter), optional(true), otherwise(argument_of(value)) {}

 private:
  template <class T>
  static Argument argument_of(T value) {
    if constexpr (std::same_as<T, bool>)
      return value;
    else if constexpr (std::integral<T>)
      return static_cast<std::int64_t>(value);
    else
      return static_cast<double>(value);
  }
};
inline constexpr std::monostate kNothing;

// An integer that counts axes, heads or layers. Throws a UserError if it does not fit.
int small(std::int64_t value);

// As<T>: the kind of a C++ parameter, and its value from an argument.
template <class T>
struct As;

template <>
struct As<Operand> {
  static constexpr Kind kKind = Kind::tensor;
  static Operand from(const Argument& a) { return std::get<Operand>(a); }
};
template <>
struct As<Operands> {
  static constexpr Kind kKind = Kind::tensors;
  static Operands from(const Argument& a) { return Operands(std::get<std::vector<Operand>>(a)); }
};
template <std::floating_point T>
struct As<T> {
  static constexpr Kind kKind = Kind::number;
  static T from(const Argument& a) { return static_cast<T>(std::get<double>(a)); }
};
template <>
struct As<bool> {
  static constexpr Kind kKind = Kind::boolean;
  static bool from(const Argument& a) { return std::get<bool>(a); }
};
template <>
struct As<std::int64_t> {
  static constexpr Kind kKind = Kind::integer;
  static std::int64_t from(const Argument& a) { return std::get<std::int64_t>(a); }
};
template <>
struct As<int> {
  static constexpr Kind kKind = Kind::integer;
  static int from(const Argument& a) { return small(std::get<std::int64_t>(a)); }
};
template <>
struct As<std::string> {
  static constexpr Kind kKind = Kind::text;
  static std::string from(const Argument& a) { return std::get<std::string>(a); }
};
template <class E>
requires std::is_enum_v<E>
struct As<E> {
  static constexpr Kind kKind = Kind::word;
  static E from(const Argument& a) { return from_word<E>(std::get<std::string>(a)); }
};
template <>
struct As<Shape> {
  static constexpr Kind kKind = Kind::shape;  // made by Supply, which knows the line
};
template <>
struct As<Integers> {
  static constexpr Kind kKind = Kind::integers;
  static Integers from(const Argument& a) { return std::get<Integers>(a); }
};
template <>
struct As<std::vector<int>> {
  static constexpr Kind kKind = Kind::integers;
  static std::vector<int> from(const Argument& a) {
    std::vector<int> all;
    for (const std::int64_t value : std::get<Integers>(a)) all.push_back(small(value));
    return all;
  }
};
template <>
struct As<Axes> {
  static constexpr Kind kKind = Kind::axes;
  static Axes from(const Argument& a) {
    return std::holds_alternative<std::monostate>(a) ? Axes() : Axes(As<std::vector<int>>::from(a));
  }
};
template <>
struct As<Pair> {
  static constexpr Kind kKind = Kind::pair;
  static Pair from(const Argument& a) {
    const Integers& both = std::get<Integers>(a);
    return {both.front(), both.back()};
  }
};
template <class T>
struct As<std::optional<T>> {
  static constexpr Kind kKind = As<T>::kKind;
  static std::optional<T> from(const Argument& a) {
    if (std::holds_alternative<std::monostate>(a)) return {};
    return As<T>::from(a);
  }
};

// Makes the arguments of a C++ function one after the other. A parameter of type Site gets the
// user's line and has no name. `what` is the name of the op or layer in errors.
class Supply {
 public:
  Supply(std::string_view what, std::span<const Argument> arguments, Site site)
      : what_(what), arguments_(arguments), site_(site) {}
  template <class T>
  T next() {
    if constexpr (std::same_as<T, Site>) {
      return site_;
    } else if constexpr (std::same_as<T, Shape>) {
      return Shape(std::get<Integers>(arguments_[next_++]), site_);
    } else {
      try {
        return As<T>::from(arguments_[next_++]);
      } catch (const UserError& error) {
        fail_in_call(what_, error.what(), site_);
      }
    }
  }

 private:
  std::string_view what_;
  std::span<const Argument> arguments_;
  Site site_;
  std::size_t next_ = 0;
};

template <class T>
void describe(std::vector<Parameter>& parameters, const Named*& named) {
  if constexpr (!std::same_as<T, Site>) {
    Parameter parameter{named->name, As<T>::kKind, named->optional, named->otherwise, {}};
    if constexpr (std::is_enum_v<T>) parameter.words = words<T>();
    parameters.push_back(std::move(parameter));
    ++named;
  }
}

// The parameters of a function with these types. `T` are without const and reference.
template <class... T>
std::vector<Parameter> parameters_of(std::initializer_list<Named> names) {
  std::vector<Parameter> parameters;
  const Named* named = names.begin();
  (describe<T>(parameters, named), ...);
  return parameters;
}

inline std::vector<Tensor> as_list(Tensor one) { return {std::move(one)}; }
inline std::vector<Tensor> as_list(std::vector<Tensor> several) { return several; }

// Registers a function of ops.h. `names` has an entry per parameter but a Site.
template <class R, class... T>
PublicOp op(std::string_view name, R (*function)(T...), std::initializer_list<Named> names,
            std::string_view sentence) {
  return {name, sentence, parameters_of<std::remove_cvref_t<T>...>(names),
          std::same_as<R, std::vector<Tensor>>,
          [name, function](std::span<const Argument> arguments, Site site) {
            Supply supply(name, arguments, site);
            // Braces evaluate from left to right.
            std::tuple<std::remove_cvref_t<T>...> values{supply.next<std::remove_cvref_t<T>>()...};
            return as_list(std::apply(function, std::move(values)));
          }};
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
