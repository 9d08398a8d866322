// What the library has: ops, layers, stages and devices, as JSON.
#include "c/objects.h"
#include "c/registry_json.h"
#include "tensorgrad/device.h"

using namespace tensorgrad;
using namespace tensorgrad::c;

namespace {

std::string registry_json() {
  Json all{{"ops", Json::array()},
           {"layers", Json::array()},
           {"stages", Json::array()},
           {"passes", Json::array()}};
  for (const ops::PublicFamily& family : nn::families())
    for (const ops::PublicOp& op : family.ops) all["ops"].push_back(json_of(family, op));
  for (const nn::PublicLayer& layer : nn::layers()) all["layers"].push_back(json_of(layer));
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
