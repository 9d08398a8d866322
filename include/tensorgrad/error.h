// The three kinds of error the library raises. It never prints and never aborts.
#pragma once

#include <stdexcept>
#include <string>

namespace tensorgrad {

// Base of all errors: `catch (const tg::Error& e)` gets every one of them.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A bad call; the text says how to repair it. Nothing was changed by the call.
class UserError : public Error {
 public:
  using Error::Error;
};

// A device failed: lost, out of memory, program refused.
class DeviceError : public Error {
 public:
  using Error::Error;
};

// A device has no room for the program: the text names the largest tensors, the need and the limit.
// A smaller batch may fit; nothing is left behind.
class OutOfMemoryError : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

// A bug in tensorgrad itself.
class InternalError : public Error {
 public:
  using Error::Error;
};

// Training met NaN or infinity under NonFinite::fail; the text names the op and the line.
class NonFiniteError : public UserError {
 public:
  using UserError::UserError;
};

}  // namespace tensorgrad
