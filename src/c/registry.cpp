// What the library has: ops, layers, stages and devices, as JSON.
#include "c/objects.h"
#include "c/registry_json.h"
#include "tensorgrad/device.h"

using namespace tensorgrad;
using namespace tensorgrad::c;

namespace {

std::string registry_json() {
  JsonText json;
  json.begin('{').key("ops").begin('[');
  for (const ops::PublicFamily& family : nn::families())
    for (const ops::PublicOp& op : family.ops) write(json, family, op);
  json.end(']').key("layers").begin('[');
  for (const nn::PublicLayer& layer : nn::layers()) write(json, layer);
  json.end(']').key("stages").begin('[');
  for (const StageInfo& stage : compiler_stages())
    json.begin('{')
        .field("name", stage.name)
        .field("what", stage.what)
        .field("from", stage.from)
        .field("to", stage.to)
        .end('}');
  json.end(']').key("passes").begin('[');
  for (const PassInfo& pass : compiler_passes())
    json.begin('{')
        .field("name", pass.name)
        .field("what", pass.what)
        .field("stage", pass.stage)
        .end('}');
  return json.end(']').end('}').take();
}

std::string devices_json() {
  JsonText json;
  json.begin('[');
  for (const DeviceInfo& info : devices())
    json.begin('{')
        .field("name", info.name)
        .field("description", info.description)
        .field("available", info.available)
        .field("auto", info.chosen_by_auto)
        .field("problem", info.problem)
        .field("software", info.software)
        .field("backend", info.backend)
        .field("simd", info.simd)
        .field("max_buffer_bytes", info.max_buffer_bytes)
        .field("max_binding_bytes", info.max_binding_bytes)
        .end('}');
  return json.end(']').take();
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
    text = devices_json();
    return text.c_str();
  });
}
