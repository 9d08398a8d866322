#include "ops/registry.h"

#include <fmt/format.h>

#include "ops/builder.h"
#include "support/text.h"

namespace tensorgrad::ops {

int small(std::int64_t value) {
  if (value != static_cast<int>(value)) break_rule("", "{} is out of range", value);
  return static_cast<int>(value);
}

std::vector<int> all_small(const Integers& values) {
  std::vector<int> all;
  for (const std::int64_t value : values) all.push_back(small(value));
  return all;
}

namespace {

Argument otherwise(const Named& named, Kind kind) {
  if (named.has == Named::Default::word) return std::string(named.word);
  if (named.has != Named::Default::number) return {};
  const auto whole = [&] { return static_cast<std::int64_t>(named.number); };
  switch (kind) {
    case Kind::tensor:
      return Operand(static_cast<int>(whole()), Site{});
    case Kind::integer:
      return whole();
    case Kind::boolean:
      return whole() != 0;
    case Kind::pair:
      return Integers{whole()};
    default:
      return named.number;
  }
}

}  // namespace

std::vector<Parameter> Parameters::list() const {
  std::vector<Parameter> out;
  for (std::size_t i = 0; i < count; ++i) {
    out.push_back({named[i].name,
                   types[i].kind,
                   named[i].has != Named::Default::none,
                   otherwise(named[i], types[i].kind),
                   {}});
    if (types[i].words) out.back().words = words(*types[i].words);
  }
  return out;
}

std::vector<Tensor> PublicOp::call(std::span<const Argument> arguments, Site site) const {
  try {
    return function({arguments.data(), site});
  } catch (const BrokenRule& broken) {  // an argument does not fit
    throw UserError(user_message(name, broken.rule, broken.hint, "", site.file, site.line));
  }
}

std::string_view name(Kind kind) {
  switch (kind) {
    case Kind::tensor:
      return "tensor";
    case Kind::tensors:
      return "tensors";
    case Kind::number:
      return "number";
    case Kind::integer:
      return "integer";
    case Kind::boolean:
      return "bool";
    case Kind::text:
      return "text";
    case Kind::word:
      return "word";
    case Kind::shape:
      return "shape";
    case Kind::integers:
      return "integers";
    case Kind::axes:
      return "axes";
    case Kind::pair:
      return "pair";
  }
  return "?";
}

namespace {

struct ArgumentText {
  std::string operator()(std::monostate) const { return "none"; }
  std::string operator()(const Operand& x) const {
    return TensorAccess::is_scalar(x) ? fmt::format("{}", TensorAccess::scalar(x)) : "tensor";
  }
  std::string operator()(const std::vector<Operand>&) const { return "tensors"; }
  std::string operator()(double x) const { return fmt::format("{}", x); }
  std::string operator()(std::int64_t x) const { return fmt::format("{}", x); }
  std::string operator()(bool x) const { return x ? "true" : "false"; }
  std::string operator()(const std::string& x) const { return x; }
  std::string operator()(const Integers& x) const {
    if (x.size() == 1) return fmt::format("{}", x[0]);
    return fmt::format("[{}]", fmt::join(x, ", "));
  }
};

}  // namespace

std::string text(const Parameter& parameter) {
  std::string kind(name(parameter.kind));
  if (parameter.kind == Kind::word) kind = join(parameter.words, " | ");
  if (parameter.kind == Kind::pair) kind = "size or [height, width]";
  std::string out = fmt::format("{}: {}", parameter.name, kind);
  if (parameter.optional) out += " = " + std::visit(ArgumentText(), parameter.otherwise);
  return out;
}

std::string signature(std::string_view name, std::span<const Parameter> parameters) {
  std::vector<std::string> parts;
  for (const Parameter& parameter : parameters) {
    parts.emplace_back(parameter.name);
    if (parameter.optional) parts.back() += " = " + std::visit(ArgumentText(), parameter.otherwise);
  }
  return fmt::format("{}({})", name, join(parts, ", "));
}

}  // namespace tensorgrad::ops
