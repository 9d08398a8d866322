// Records of the registry as JSON: for tg_registry() and `tg ops --json`.
#pragma once

#include "nn/registry.h"
#include "support/json_text.h"

namespace tensorgrad::c {

// {"name", "family", "sentence", "parameters", "several"}
void write(JsonText& json, const ops::PublicFamily& family, const ops::PublicOp& op);
// {"name", "sentence", "parameters", "inputs"}
void write(JsonText& json, const nn::PublicLayer& layer);

}  // namespace tensorgrad::c
