// Records of the registry as JSON: for tg_registry() and `tg ops --json`.
#pragma once

#include "c/arguments.h"
#include "nn/registry.h"

namespace tensorgrad::c {

// {"name", "family", "sentence", "parameters", "several"}
Json json_of(const ops::PublicFamily& family, const ops::PublicOp& op);
// {"name", "sentence", "parameters", "inputs"}
Json json_of(const nn::PublicLayer& layer);

}  // namespace tensorgrad::c
