// Reads JSON, strictly. JsonText (json_text.h) writes it. Both are small, because a page downloads
// them.
//   const JsonDocument document = parse_json(R"({"name": "x", "sizes": [2, 3]})", 2);
//   document.root().find("name")->text()  // x
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tensorgrad {

// A value of a JsonDocument, which must outlive it. The values of a document are stored in the
// order of the text: a list is followed by its items, an object by names and values in turn.
class Json {
 public:
  class Items;
  class Members;

  bool is_null() const { return kind_ == Kind::null; }
  bool is_boolean() const { return kind_ == Kind::truth; }
  bool is_integer() const { return kind_ == Kind::integer; }  // written without '.' and 'e'
  bool is_number() const { return kind_ == Kind::integer || kind_ == Kind::real; }
  bool is_text() const { return kind_ == Kind::text; }
  bool is_list() const { return kind_ == Kind::list; }
  bool is_object() const { return kind_ == Kind::object; }

  // The value. For values of another kind: false, 0, an empty text.
  bool boolean() const;
  double number() const;
  std::string_view text() const;
  // The value of an integer, if the type can hold it.
  std::optional<std::int64_t> integer() const;
  std::optional<std::uint64_t> natural() const;

  // Number of items or members; 0 for values of another kind, which have none.
  std::size_t size() const;
  Items items() const;
  Members members() const;
  // An item; the index must be below size(). Takes time linear in the index.
  const Json& operator[](std::size_t index) const;
  // The member of that name, or null. Takes time linear in the number of members.
  const Json* find(std::string_view name) const;

  // The value as JSON without white space.
  std::string to_json() const;

 protected:
  Json() = default;
  Json(const Json&) = default;  // a copy would not be followed by its items
  Json& operator=(const Json&) = default;

 private:
  friend class JsonReader;
  enum class Kind : std::uint8_t { null, truth, integer, real, text, list, object };

  const Json* behind() const { return this + values_; }

  Kind kind_ = Kind::null;
  bool negative_ = false;     // of an integer
  std::uint32_t values_ = 1;  // number of values of which this one consists, itself included
  std::size_t size_ = 0;      // of a text: bytes
  union {
    std::uint64_t bits_ = 0;  // of an integer, in two's complement; of a boolean: 0 or 1
    double real_;
    const char* text_;
  };
};

// The items of a list, in order.
class Json::Items {
 public:
  struct Iterator {
    const Json* at;
    const Json& operator*() const { return *at; }
    Iterator& operator++() { return at = at->behind(), *this; }
    bool operator==(const Iterator&) const = default;
  };
  explicit Items(const Json& list) : list_(list) {}
  Iterator begin() const { return {list_.is_list() ? &list_ + 1 : list_.behind()}; }
  Iterator end() const { return {list_.behind()}; }

 private:
  const Json& list_;
};

// The members of an object, in the order of the text.
class Json::Members {
 public:
  struct Member {
    std::string_view name;
    const Json& value;
  };
  struct Iterator {
    const Json* at;
    Member operator*() const { return {at->text(), at[1]}; }
    Iterator& operator++() { return at = at[1].behind(), *this; }
    bool operator==(const Iterator&) const = default;
  };
  explicit Members(const Json& object) : object_(object) {}
  Iterator begin() const { return {object_.is_object() ? &object_ + 1 : object_.behind()}; }
  Iterator end() const { return {object_.behind()}; }

 private:
  const Json& object_;
};

inline Json::Items Json::items() const { return Items(*this); }
inline Json::Members Json::members() const { return Members(*this); }

// The values of a JSON text, and their texts.
class JsonDocument {
 public:
  const Json& root() const { return values_.front(); }

 private:
  friend class JsonReader;
  struct Value : Json {};
  std::vector<Value> values_;
  std::unique_ptr<char[]> texts_;
};

// Parses a text that others wrote. Throws a UserError if it is not JSON in UTF-8, if an object has
// a duplicate name, if lists and objects are nested deeper than `depth` (1: a flat object), or if a
// number is too large for a double. Takes time n log n at most, and keeps no reference to the text.
JsonDocument parse_json(std::string_view text, int depth);

// A value or a text as JSON for an error message: on one line, at most 60 bytes and "...".
std::string shown(const Json& value);
std::string shown(std::string_view text);

}  // namespace tensorgrad
