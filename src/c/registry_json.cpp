#include "c/registry_json.h"

#include <cmath>

#include "ops/builder.h"

namespace tensorgrad::c {

namespace {

void write(JsonText& json, const ops::Argument& value) {
  struct Visitor {
    JsonText& json;
    void operator()(std::monostate) const { json.raw("null"); }
    void operator()(const Operand& x) const { json.value(TensorAccess::scalar(x)); }
    void operator()(const std::vector<Operand>&) const { json.raw("[]"); }
    void operator()(double x) const {
      if (std::isinf(x))
        json.value(x > 0 ? "Infinity" : "-Infinity");
      else
        json.value(x);
    }
    void operator()(std::int64_t x) const { json.value(x); }
    void operator()(bool x) const { json.value(x); }
    void operator()(const std::string& x) const { json.value(x); }
    void operator()(const ops::Integers& x) const {
      if (x.size() == 1)
        json.value(x[0]);
      else
        json.list(x);
    }
  };
  std::visit(Visitor{json}, value);
}

void write(JsonText& json, const char* key, std::span<const ops::Parameter> parameters) {
  json.key(key).begin('[');
  for (const ops::Parameter& parameter : parameters) {
    json.begin('{').field("name", parameter.name).field("kind", ops::name(parameter.kind));
    if (!parameter.words.empty()) json.key("words").list(parameter.words);
    if (parameter.optional) write(json.key("default"), parameter.otherwise);
    json.end('}');
  }
  json.end(']');
}

}  // namespace

void write(JsonText& json, const ops::PublicFamily& family, const ops::PublicOp& op) {
  json.begin('{')
      .field("name", op.name)
      .field("family", family.name)
      .field("sentence", op.sentence);
  write(json, "parameters", op.parameters());
  json.field("several", op.several).end('}');
}

void write(JsonText& json, const nn::PublicLayer& layer) {
  json.begin('{').field("name", layer.name).field("sentence", layer.sentence);
  write(json, "parameters", layer.parameters());
  write(json, "inputs", layer.inputs());
  json.end('}');
}

}  // namespace tensorgrad::c
