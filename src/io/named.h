// Errors about files say where: "model.safetensors: tensor 'x': dtype is missing".
#pragma once

#include <string_view>

#include "support/fail.h"

namespace tensorgrad::io {

// Runs `f`; a UserError from it gets `where` in front.
template <class F>
auto named(std::string_view where, F&& f) {
  try {
    return f();
  } catch (const UserError& error) {
    user_error("{}: {}", where, error.what());
  }
}

}  // namespace tensorgrad::io
