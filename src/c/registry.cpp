// What the library has: ops, layers, stages and devices, as JSON.
#include <fmt/format.h>

#include <cmath>

#include "c/objects.h"
#include "tensorgrad/device.h"

using namespace tensorgrad;
using namespace tensorgrad::c;

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

std::string registry_json() {
  Json all{{"ops", Json::array()},
           {"layers", Json::array()},
           {"stages", Json::array()},
           {"passes", Json::array()}};
  for (const ops::PublicFamily& family : nn::families())
    for (const ops::PublicOp& op : family.ops)
      all["ops"].push_back({{"name", op.name},
                            {"family", family.name},
                            {"sentence", op.sentence},
                            {"parameters", json_of(op.parameters)},
                            {"several", op.several}});
  for (const nn::PublicLayer& layer : nn::layers())
    all["layers"].push_back({{"name", layer.name},
                             {"sentence", layer.sentence},
                             {"parameters", json_of(layer.parameters)},
                             {"inputs", json_of(layer.inputs)}});
  for (const StageInfo& stage : compiler_stages())
    all["stages"].push_back(
        {{"name", stage.name}, {"what", stage.what}, {"from", stage.from}, {"to", stage.to}});
  for (const PassInfo& pass : compiler_passes())
    all["passes"].push_back({{"name", pass.name}, {"what", pass.what}, {"stage", pass.stage}});
  return all.dump();
}

Json devices_json() {
  Json all = Json::array();
  for (const DeviceInfo& info : devices())
    all.push_back({{"name", info.name},
                   {"description", info.description},
                   {"available", info.available},
                   {"auto", info.chosen_by_auto},
                   {"problem", info.problem},
                   {"software", info.software},
                   {"backend", info.backend},
                   {"simd", info.simd},
                   {"max_buffer_bytes", info.max_buffer_bytes},
                   {"max_binding_bytes", info.max_binding_bytes}});
  return all;
}

}  // namespace

const char* tg_version(void) { return TENSORGRAD_VERSION; }

const char* tg_registry(void) {
  static std::string text;
  return guarded(nullptr, []() -> const char* {
    if (text.empty()) text = registry_json();
    return text.c_str();
  });
}

const char* tg_devices(void) {
  static std::string text;
  return guarded(nullptr, []() -> const char* {
    text = dump(devices_json());
    return text.c_str();
  });
}
