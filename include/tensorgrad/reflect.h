// Finds the names of a struct's fields at compile time, and walks over a model to turn them into
// parameter paths (`layers.0.attn.q.W`). Aggregates work as they are, local ones too. A class with
// constructors or private members opts in with one line: TENSORGRAD_FIELDS(W, b). Not supported:
// base classes, C arrays, bit-fields, anonymous unions, aggregates of more than 32 fields.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

// Goes into a class body and names the members that the walk visits, private ones included.
//   class Norm { Param scale_; int size_; TENSORGRAD_FIELDS(scale_)
//    public: explicit Norm(int size); };
// It is not inherited: a derived class needs its own line, which may name inherited members.
#define TENSORGRAD_FIELDS(...)                                                              \
  friend struct ::tensorgrad::detail::FieldAccess;                                          \
  constexpr auto tensorgrad_fields() {                                                      \
    return ::tensorgrad::detail::own_fields(this, #__VA_ARGS__ __VA_OPT__(, ) __VA_ARGS__); \
  }                                                                                         \
  constexpr auto tensorgrad_fields() const {                                                \
    return ::tensorgrad::detail::own_fields(this, #__VA_ARGS__ __VA_OPT__(, ) __VA_ARGS__); \
  }

namespace tensorgrad {

// Specialise this for a type that holds no parameters and cannot be reflected. walk_model skips it.
//   template <> struct tensorgrad::ignore_in_models<Tokenizer> : std::true_type {};
template <class T>
struct ignore_in_models : std::false_type {};

#ifdef __clang__
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wmissing-field-initializers"  // FieldProbe
#pragma clang diagnostic ignored "-Wundefined-internal"          // specimen, of a local type
#pragma clang diagnostic ignored "-Wundefined-var-template"      // specimen
#endif

namespace detail {

inline constexpr int kMaxFields = 32;

// The result of TENSORGRAD_FIELDS. Owner tells a class's own line from an inherited one.
template <class Class, class... Field>
struct OwnFields {
  using Owner = Class;
  std::string_view names;  // "W, b"
  std::tuple<Field&...> fields;
};

template <class Class, class... Field>
constexpr OwnFields<std::remove_const_t<Class>, Field...> own_fields(Class*, std::string_view names,
                                                                     Field&... field) {
  return {names, {field...}};
}

struct FieldAccess {
  template <class T>
  static constexpr auto of(T& object) -> decltype(object.tensorgrad_fields()) {
    return object.tensorgrad_fields();
  }
};

template <class T>
concept OptedIn = requires(T& t) {
  requires std::is_same_v<typename decltype(FieldAccess::of(t))::Owner, T>;
};

// Counts the fields of an aggregate: the most initialisers it accepts, if each converts to
// anything.
template <class Owner>
struct FieldProbe {
  // The conversion is private, so that only the initialisations below see it. If it were public,
  // optional<T>(U&&) and similar constructors would also accept an Any, and the field would be
  // ambiguous.
  class Any {
   public:
    Any() = default;
    Any(const Any&) = delete;  // otherwise std::any would store it

   private:
    friend FieldProbe;
    template <class F>
    requires(!std::is_same_v<F, Owner>) operator F() const;
  };

  struct Nothing {  // converts to nothing: a field that accepts it accepts anything, and is no base
    Nothing() = default;
    Nothing(const Nothing&) = delete;
  };
  class AnyBase : Nothing {
    friend FieldProbe;
    template <class F>
    requires(std::is_base_of_v<F, Owner> && !std::is_same_v<F, Owner>) operator F() const;
  };

  static Any any(std::size_t);

  template <std::size_t... I>
  static constexpr bool fits(std::index_sequence<I...>) {
    return requires { Owner{any(I)...}; };
  }

  // The counts of initialisers that fit form one unbroken range. Its lower end is the last field
  // without a default. Returns its upper end, or -1 if there is none up to kMaxFields.
  template <std::size_t N = 0, bool kFitsBefore = false>
  static constexpr int count() {
    constexpr bool kFits = fits(std::make_index_sequence<N>{});
    if constexpr (kFitsBefore && !kFits) {
      return static_cast<int>(N) - 1;
    } else if constexpr (N > kMaxFields) {
      return -1;
    } else {
      return count<N + 1, kFits>();
    }
  }

  template <std::size_t... I>
  static constexpr bool has_base(std::index_sequence<0, I...>) {
    return requires { Owner{AnyBase{}, any(I)...}; }
    &&!requires { Owner{Nothing{}, any(I)...}; };
  }
  static constexpr bool has_base(std::index_sequence<>) { return false; }

  // Returns true if one more field follows whose type no Any converts to.
  template <std::size_t... I>
  static constexpr bool stopped_early(std::index_sequence<I...>) {
    return requires { Owner{any(I)..., {}}; };
  }

  // Braces initialise one whole field, but an Any may initialise one element of a C array.
  template <std::size_t... I, std::size_t... J, std::size_t... K>
  static constexpr bool fits_braces(std::index_sequence<I...>, std::index_sequence<J...>,
                                    std::index_sequence<K...>) {
    return requires { Owner{any(I)..., {any(J)...}, any(K)...}; };
  }

  // Finds a field whose braces replace Length initialisers out of Count, instead of one.
  template <std::size_t Count, std::size_t At = 0, std::size_t Length = 0>
  static constexpr bool has_array() {
    using Before = std::make_index_sequence<At>;
    using Inside = std::make_index_sequence<Length>;
    if constexpr (At + 2 > Count) {
      return false;
    } else if constexpr (At + Length > Count ||
                         fits_braces(Before{}, Inside{},
                                     std::make_index_sequence<Count - At - 1>{})) {
      return has_array<Count, At + 1>();
    } else if constexpr (fits_braces(Before{}, Inside{},
                                     std::make_index_sequence<Count - At - Length>{})) {
      return true;
    } else {
      return has_array<Count, At, Length + 1>();
    }
  }
};

enum class Obstacle { kNone, kNotAggregate, kBaseClass, kArrayField, kUncountable };

template <class T>
inline constexpr int field_count = FieldProbe<T>::count();

// Types such as std::array, where structured bindings follow std::tuple_size, not the fields.
template <class T>
concept TupleLike = requires {
  std::tuple_size<T>::value;
};

template <class T>
constexpr Obstacle find_obstacle() {
  if constexpr (OptedIn<T>) {
    return Obstacle::kNone;
  } else if constexpr (!std::is_class_v<T> || !std::is_aggregate_v<T> || TupleLike<T>) {
    return Obstacle::kNotAggregate;
  } else if constexpr (field_count<T> < 0) {
    return Obstacle::kUncountable;
  } else {
    using All = std::make_index_sequence<field_count<T>>;
    if constexpr (FieldProbe<T>::has_base(All{})) {
      return Obstacle::kBaseClass;
    } else if constexpr (FieldProbe<T>::stopped_early(All{})) {
      return Obstacle::kUncountable;
    } else {
      return FieldProbe<T>::template has_array<field_count<T>>() ? Obstacle::kArrayField
                                                                 : Obstacle::kNone;
    }
  }
}

template <class T>
inline constexpr Obstacle obstacle = find_obstacle<T>();

}  // namespace detail

// True for the types that for_each_field accepts: plain aggregates and classes that opted in.
template <class T>
inline constexpr bool is_reflectable = detail::obstacle<T> == detail::Obstacle::kNone;

// Instantiated if a type cannot be reflected, so that the compiler prints the name of the type.
template <class T>
struct cannot_reflect {
  using Obstacle = detail::Obstacle;
  static constexpr Obstacle why = detail::obstacle<T>;
  static_assert(
      why != Obstacle::kNotAggregate,
      "tensorgrad: this type (T in cannot_reflect<T>) cannot be reflected: it is no aggregate. "
      "Make it an aggregate (no constructors, no private members; std::array for a C array), or "
      "add the line TENSORGRAD_FIELDS(member, ...) to the class, or, if it holds no parameters, "
      "specialise tensorgrad::ignore_in_models<T>.");
  static_assert(
      why != Obstacle::kBaseClass,
      "tensorgrad: this type (T in cannot_reflect<T>) cannot be reflected: it has a base class. "
      "Make the base a member, or add the line TENSORGRAD_FIELDS(member, ...) to the class and "
      "name the inherited members in it too.");
  static_assert(
      why != Obstacle::kArrayField,
      "tensorgrad: this type (T in cannot_reflect<T>) cannot be reflected: a field is a C array. "
      "Use std::array.");
  static_assert(
      why != Obstacle::kUncountable,
      "tensorgrad: this type (T in cannot_reflect<T>) cannot be reflected: its fields cannot be "
      "counted. There are more than 32, or one is a reference, or one has a constructor that takes "
      "anything. Add the line TENSORGRAD_FIELDS(member, ...) to the class.");
};

namespace detail {

#define TENSORGRAD_F8 f1, f2, f3, f4, f5, f6, f7, f8
#define TENSORGRAD_F16 TENSORGRAD_F8, f9, f10, f11, f12, f13, f14, f15, f16
#define TENSORGRAD_F24 TENSORGRAD_F16, f17, f18, f19, f20, f21, f22, f23, f24
#define TENSORGRAD_BIND(count, ...) \
  else if constexpr (N == count) {  \
    auto& [__VA_ARGS__] = object;   \
    return use(__VA_ARGS__);        \
  }

// Calls use(field...) with references to the N fields of an aggregate.
template <int N, class T, class Use>
constexpr auto with_fields([[maybe_unused]] T& object, Use&& use) {
  if constexpr (N == 0) {
    return use();
  }
  TENSORGRAD_BIND(1, f1)
  TENSORGRAD_BIND(2, f1, f2)
  TENSORGRAD_BIND(3, f1, f2, f3)
  TENSORGRAD_BIND(4, f1, f2, f3, f4)
  TENSORGRAD_BIND(5, f1, f2, f3, f4, f5)
  TENSORGRAD_BIND(6, f1, f2, f3, f4, f5, f6)
  TENSORGRAD_BIND(7, f1, f2, f3, f4, f5, f6, f7)
  TENSORGRAD_BIND(8, f1, f2, f3, f4, f5, f6, f7, f8)
  TENSORGRAD_BIND(9, TENSORGRAD_F8, f9)
  TENSORGRAD_BIND(10, TENSORGRAD_F8, f9, f10)
  TENSORGRAD_BIND(11, TENSORGRAD_F8, f9, f10, f11)
  TENSORGRAD_BIND(12, TENSORGRAD_F8, f9, f10, f11, f12)
  TENSORGRAD_BIND(13, TENSORGRAD_F8, f9, f10, f11, f12, f13)
  TENSORGRAD_BIND(14, TENSORGRAD_F8, f9, f10, f11, f12, f13, f14)
  TENSORGRAD_BIND(15, TENSORGRAD_F8, f9, f10, f11, f12, f13, f14, f15)
  TENSORGRAD_BIND(16, TENSORGRAD_F8, f9, f10, f11, f12, f13, f14, f15, f16)
  TENSORGRAD_BIND(17, TENSORGRAD_F16, f17)
  TENSORGRAD_BIND(18, TENSORGRAD_F16, f17, f18)
  TENSORGRAD_BIND(19, TENSORGRAD_F16, f17, f18, f19)
  TENSORGRAD_BIND(20, TENSORGRAD_F16, f17, f18, f19, f20)
  TENSORGRAD_BIND(21, TENSORGRAD_F16, f17, f18, f19, f20, f21)
  TENSORGRAD_BIND(22, TENSORGRAD_F16, f17, f18, f19, f20, f21, f22)
  TENSORGRAD_BIND(23, TENSORGRAD_F16, f17, f18, f19, f20, f21, f22, f23)
  TENSORGRAD_BIND(24, TENSORGRAD_F16, f17, f18, f19, f20, f21, f22, f23, f24)
  TENSORGRAD_BIND(25, TENSORGRAD_F24, f25)
  TENSORGRAD_BIND(26, TENSORGRAD_F24, f25, f26)
  TENSORGRAD_BIND(27, TENSORGRAD_F24, f25, f26, f27)
  TENSORGRAD_BIND(28, TENSORGRAD_F24, f25, f26, f27, f28)
  TENSORGRAD_BIND(29, TENSORGRAD_F24, f25, f26, f27, f28, f29)
  TENSORGRAD_BIND(30, TENSORGRAD_F24, f25, f26, f27, f28, f29, f30)
  TENSORGRAD_BIND(31, TENSORGRAD_F24, f25, f26, f27, f28, f29, f30, f31)
  TENSORGRAD_BIND(32, TENSORGRAD_F24, f25, f26, f27, f28, f29, f30, f31, f32)
}

#undef TENSORGRAD_BIND
#undef TENSORGRAD_F24
#undef TENSORGRAD_F16
#undef TENSORGRAD_F8

// An object that is never defined. Constant expressions take only the addresses of its fields.
template <class T>
struct Specimen {
  T value;
};
template <class T>
extern const Specimen<T> specimen;

// clang 14 accepts the address of a field as a template argument only inside a struct.
template <class Field>
struct FieldAddress {
  const Field* address;
};

constexpr bool is_identifier_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '$' || static_cast<unsigned char>(c) >= 0x80;
}

constexpr std::string_view last_identifier(std::string_view text) {
  while (!text.empty() && !is_identifier_char(text.back())) text.remove_suffix(1);
  std::size_t start = text.size();
  while (start > 0 && is_identifier_char(text[start - 1])) --start;
  return text.substr(start);
}

// The name of this function ends in `specimen<Mlp>.Specimen<Mlp>::value.Mlp::l1))}]` with g++ and
// in `specimen.value.l1}]` with clang++.
// The return type is auto, because g++ would append what std::string_view stands for.
template <auto kAddress>
constexpr auto spelled_name() {
  return last_identifier(__PRETTY_FUNCTION__);
}

// A copy, so that the binary stores only the name and not the whole function signature.
template <auto kAddress>
inline constexpr auto name_letters = [] {
  constexpr std::string_view kName = spelled_name<kAddress>();
  std::array<char, kName.size()> letters{};
  for (std::size_t i = 0; i < kName.size(); ++i) letters[i] = kName[i];
  return letters;
}();

template <auto kAddress>
constexpr std::string_view field_name() {
  return {name_letters<kAddress>.data(), name_letters<kAddress>.size()};
}

template <class T>
constexpr auto field_addresses() {  // not a variable: g++ would emit it and need the specimen
  return with_fields<field_count<T>>(specimen<T>.value, [](const auto&... field) {
    return std::tuple<FieldAddress<std::remove_cvref_t<decltype(field)>>...>{
        {std::addressof(field)}...};
  });
}

template <class T>
inline constexpr auto field_names = []<std::size_t... I>(std::index_sequence<I...>) {
  return std::array<std::string_view, sizeof...(I)>{
      field_name<std::get<I>(field_addresses<T>())>()...};
}
(std::make_index_sequence<field_count<T>>{});

struct SpellingCheck {
  std::string first, second;
};
static_assert(field_names<SpellingCheck>[0] == "first" && field_names<SpellingCheck>[1] == "second",
              "tensorgrad: this compiler spells the address of a field in an unknown way");

}  // namespace detail

// Calls f(name, field) for each field of `object`, in the order of declaration.
//   struct Mlp { Linear l1, l2; } mlp;
//   for_each_field(mlp, [](std::string_view name, Linear& layer) { ... });  // "l1", then "l2"
template <class T, class F>
constexpr void for_each_field(T& object, F&& f) {
  using Plain = std::remove_const_t<T>;
  if constexpr (!is_reflectable<Plain>) {
    cannot_reflect<Plain>{};
  } else if constexpr (detail::OptedIn<Plain>) {
    auto own = detail::FieldAccess::of(object);
    auto next_name = [&own] {
      const std::size_t comma = own.names.find(',');
      const std::string_view name = detail::last_identifier(own.names.substr(0, comma));
      own.names.remove_prefix(comma == own.names.npos ? own.names.size() : comma + 1);
      return name;
    };
    std::apply([&](auto&... field) { (f(next_name(), field), ...); }, own.fields);
  } else {
    detail::with_fields<detail::field_count<Plain>>(object, [&f](auto&... field) {
      [[maybe_unused]] std::size_t i = 0;
      (f(detail::field_names<Plain>[i++], field), ...);
    });
  }
}

namespace detail {

template <class T, template <class...> class Template>
inline constexpr bool is_a = false;
template <template <class...> class Template, class... Args>
inline constexpr bool is_a<Template<Args...>, Template> = true;

template <class T>
concept Duration = requires {
  typename T::rep;
  typename T::period;
};

// Settings: types that hold no parameters and need no reflection.
template <class T>
inline constexpr bool is_setting = std::is_arithmetic_v<T> || std::is_enum_v<T> || Duration<T> ||
                                   is_a<T, std::basic_string> || is_a<T, std::basic_string_view>;
template <template <class> class Function, class Signature>  // std::function and similar
requires std::is_function_v<Signature>
inline constexpr bool is_setting<Function<Signature>> = true;

template <class Leaf, class T>
constexpr bool is_skipped();

template <class Leaf, class T>
inline constexpr bool is_all_settings = is_setting<T>;
template <class Leaf, class T, class Allocator>
inline constexpr bool is_all_settings<Leaf, std::vector<T, Allocator>> = is_skipped<Leaf, T>();
template <class Leaf, class T, std::size_t N>
inline constexpr bool is_all_settings<Leaf, std::array<T, N>> = is_skipped<Leaf, T>();
template <class Leaf, class... T>
inline constexpr bool is_all_settings<Leaf, std::tuple<T...>> = (is_skipped<Leaf, T>() && ...);
template <class Leaf, class A, class B>
inline constexpr bool is_all_settings<Leaf, std::pair<A, B>> =
    is_all_settings<Leaf, std::tuple<A, B>>;

template <class Leaf, class T>
constexpr bool is_skipped() {
  return !std::is_same_v<T, Leaf> && (ignore_in_models<T>::value || is_all_settings<Leaf, T>);
}

template <class T>
inline constexpr bool is_sequence = is_a<T, std::vector>;
template <class T, std::size_t N>
inline constexpr bool is_sequence<std::array<T, N>> = true;

template <class T>
inline constexpr bool is_owner_of_one = false;
template <class T, class Deleter>
inline constexpr bool is_owner_of_one<std::unique_ptr<T, Deleter>> = !std::is_array_v<T>;

template <class Leaf, class F>
struct ModelWalk {
  F& f;
  std::string path;

  template <class T>
  void visit(T& value) {
    using Plain = std::remove_const_t<T>;
    if constexpr (std::is_same_v<Plain, Leaf>) {
      f(std::as_const(path), value);
    } else if constexpr (is_skipped<Leaf, Plain>()) {
    } else if constexpr (is_sequence<Plain>) {
      for (std::size_t i = 0; i < value.size(); ++i) visit_part(std::to_string(i), value[i]);
    } else if constexpr (is_a<Plain, std::optional>) {
      if (value) visit(*value);
    } else if constexpr (is_a<Plain, std::variant>) {
      if (value.valueless_by_exception()) return;
      std::visit([this](auto& held) { this->visit(held); }, value);
    } else if constexpr (is_owner_of_one<Plain>) {
      using Held = typename Plain::element_type;
      using Seen = std::conditional_t<std::is_const_v<T>, const Held, Held>;
      if (value) visit<Seen>(*value);
    } else if constexpr (is_reflectable<Plain>) {
      for_each_field(value,
                     [this](std::string_view name, auto& field) { this->visit_part(name, field); });
    } else {
      cannot_reflect<Plain>{};
    }
  }

  template <class T>
  void visit_part(std::string_view name, T& part) {
    const std::size_t length = path.size();
    if (length > 0) path += '.';
    path += name;
    visit(part);
    path.resize(length);
  }
};

}  // namespace detail

// Calls f(path, leaf) for each Leaf in `model`, in field order. The path joins field names and the
// indices of vectors and arrays with dots. Settings (numbers, enums, strings, callbacks, durations)
// are skipped. Optionals, variants and unique_ptrs add nothing to the path.
//   struct Mlp { std::vector<Linear> layers; float dropout; } mlp;
//   walk_model<Param>(mlp, [](std::string path, Param& p) { ... });  // "layers.0.W", ...
template <class Leaf, class Model, class F>
void walk_model(Model& model, F&& f) {
  detail::ModelWalk<Leaf, std::remove_reference_t<F>>{f, {}}.visit(model);
}

#ifdef __clang__
#pragma clang diagnostic pop
#endif

}  // namespace tensorgrad
