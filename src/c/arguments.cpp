#include "c/arguments.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "support/fail.h"
#include "support/text.h"

namespace tensorgrad::c {

using ops::Argument;
using ops::Kind;
using ops::Parameter;

JsonDocument read_json(std::string_view text, std::string_view what, Site site) {
  try {
    return parse_json(text, kDeepestJson);
  } catch (const UserError& error) {
    throw UserError(user_message(what, error.what(), "", "", site.file, site.line));
  }
}

JsonDocument read_object(const char* text, std::string_view what, Site site) {
  JsonDocument document = read_json(text && *text ? text : "{}", what, site);
  if (const Json& json = document.root(); !json.is_object())
    throw UserError(user_message(what, fmt::format("not a JSON object: {}", shown(json)), "", "",
                                 site.file, site.line));
  return document;
}

std::optional<std::int64_t> integer_of(const Json& value) {
  if (value.is_integer() || !value.is_number()) return value.integer();
  const double number = value.number();
  if (number != std::floor(number) || std::fabs(number) > 1e15) return {};
  return static_cast<std::int64_t>(number);
}

namespace {

// JSON has no infinities and no NaN: they are words.
std::optional<double> number_of(const Json& value) {
  if (value.is_number()) return value.number();
  if (value.text() == "Infinity") return std::numeric_limits<double>::infinity();
  if (value.text() == "-Infinity") return -std::numeric_limits<double>::infinity();
  if (value.text() == "NaN") return std::numeric_limits<double>::quiet_NaN();
  return {};
}

// Reads the arguments of one call.
class Reader {
 public:
  Reader(std::string_view what, Site site, const ReadOperand& read)
      : what_(what), site_(site), read_(read) {}

  [[noreturn]] void fail(const std::string& rule, const std::string& hint = "") const {
    throw UserError(user_message(what_, rule, hint, "", site_.file, site_.line));
  }

  Argument argument(const Parameter& parameter, const Json& value) const {
    switch (parameter.kind) {
      case Kind::tensor:
        return operand(parameter, value);
      case Kind::tensors: {
        if (!value.is_list()) refuse(parameter, value, "a list of tensors");
        std::vector<Operand> list;
        for (const Json& item : value.items()) list.push_back(operand(parameter, item));
        if (list.empty()) refuse(parameter, value, "at least one tensor");
        return list;
      }
      case Kind::number:
        if (const auto number = number_of(value)) return *number;
        refuse(parameter, value, "a number");
      case Kind::integer:
        return integer(parameter, value);
      case Kind::boolean:
        if (value.is_boolean()) return value.boolean();
        refuse(parameter, value, "true or false");
      case Kind::text:
        if (value.is_text()) return std::string(value.text());
        refuse(parameter, value, "a text");
      case Kind::word:
        for (const std::string& word : parameter.words)
          if (value.is_text() && value.text() == word) return word;
        refuse(parameter, value, join(parameter.words, ", "));
      case Kind::shape:
      case Kind::integers:
        return integers(parameter, value);
      case Kind::axes:
        if (!value.is_list()) return ops::Integers{integer(parameter, value)};
        return integers(parameter, value);
      case Kind::pair: {
        if (!value.is_list()) return ops::Integers{integer(parameter, value)};
        ops::Integers both = integers(parameter, value);
        if (both.size() != 2) refuse(parameter, value, "a size or [height, width]");
        return both;
      }
    }
    internal_error("a kind of parameter without a reader");
  }

 private:
  [[noreturn]] void refuse(const Parameter& parameter, const Json& value,
                           const std::string& wanted) const {
    fail(fmt::format("'{}' must be {}: {}", parameter.name, wanted, shown(value)));
  }

  Operand operand(const Parameter& parameter, const Json& value) const {
    if (value.is_boolean()) return {value.boolean(), site_};
    if (value.is_object()) return read_(value);
    if (const auto integer = integer_of(value);
        integer && value.is_integer() && *integer == static_cast<std::int32_t>(*integer))
      return {static_cast<std::int32_t>(*integer), site_};
    if (const auto number = number_of(value)) return {*number, site_};
    refuse(parameter, value, "a tensor, a parameter or a number");
  }

  std::int64_t integer(const Parameter& parameter, const Json& value) const {
    if (const auto integer = integer_of(value)) return *integer;
    refuse(parameter, value, "an integer");
  }

  ops::Integers integers(const Parameter& parameter, const Json& value) const {
    if (!value.is_list()) refuse(parameter, value, "a list of integers");
    ops::Integers list;
    for (const Json& item : value.items()) list.push_back(integer(parameter, item));
    return list;
  }

  std::string_view what_;
  Site site_;
  const ReadOperand& read_;
};

}  // namespace

std::vector<Argument> read_arguments(std::string_view what, std::span<const Parameter> parameters,
                                     const Json& given, Site site, const ReadOperand& read) {
  const Reader reader(what, site, read);
  std::vector<std::string> names;
  std::vector<Argument> arguments;
  for (const Parameter& parameter : parameters) {
    names.emplace_back(parameter.name);
    const Json* found = given.find(parameter.name);
    if (found && !found->is_null())
      arguments.push_back(reader.argument(parameter, *found));
    else if (parameter.optional)
      arguments.push_back(parameter.otherwise);
    else
      reader.fail(fmt::format("'{}' is missing", parameter.name), ops::signature(what, parameters));
  }
  for (const auto& [name, value] : given.members())
    if (std::find(names.begin(), names.end(), name) == names.end())
      reader.fail(fmt::format("there is no parameter '{}'", name),
                  ops::signature(what, parameters));
  return arguments;
}

}  // namespace tensorgrad::c
