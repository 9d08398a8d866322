// The text of the UserError that a call throws.
#pragma once

#include <string>
#include <utility>

#include "tensorgrad/error.h"

namespace tensorgrad {

// "no error" if there is none.
template <class F>
std::string error_of(F&& call) {
  try {
    std::forward<F>(call)();
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace tensorgrad
