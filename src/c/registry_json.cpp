#include "c/registry_json.h"

#include <fmt/format.h>

#include <cmath>

#include "ops/builder.h"

namespace tensorgrad::c {

namespace {

Json json_of(const ops::Argument& value) {
  struct Visitor {
    Json operator()(std::monostate) const { return nullptr; }
    Json operator()(const Operand& x) const { return TensorAccess::scalar(x); }
    Json operator()(const std::vector<Operand>&) const { return Json::array(); }
    Json operator()(double x) const {
      if (std::isinf(x)) return x > 0 ? "Infinity" : "-Infinity";
      // 1e-05, not all digits of the double that is nearest to a float
      return std::stod(fmt::format("{}", x));
    }
    Json operator()(std::int64_t x) const { return x; }
    Json operator()(bool x) const { return x; }
    Json operator()(const std::string& x) const { return x; }
    Json operator()(const ops::Integers& x) const { return x.size() == 1 ? Json(x[0]) : Json(x); }
  };
  return std::visit(Visitor(), value);
}

Json json_of(std::span<const ops::Parameter> parameters) {
  Json list = Json::array();
  for (const ops::Parameter& parameter : parameters) {
    Json one{{"name", parameter.name}, {"kind", ops::name(parameter.kind)}};
    if (!parameter.words.empty()) one["words"] = parameter.words;
    if (parameter.optional) one["default"] = json_of(parameter.otherwise);
    list.push_back(std::move(one));
  }
  return list;
}

}  // namespace

Json json_of(const ops::PublicFamily& family, const ops::PublicOp& op) {
  return {{"name", op.name},
          {"family", family.name},
          {"sentence", op.sentence},
          {"parameters", json_of(op.parameters())},
          {"several", op.several}};
}

Json json_of(const nn::PublicLayer& layer) {
  return {{"name", layer.name},
          {"sentence", layer.sentence},
          {"parameters", json_of(layer.parameters())},
          {"inputs", json_of(layer.inputs())}};
}

}  // namespace tensorgrad::c
