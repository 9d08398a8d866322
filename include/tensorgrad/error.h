// The three kinds of error that the library throws. It never prints and never aborts.
#pragma once

#include <stdexcept>
#include <string>

namespace tensorgrad {

// Base class of all errors: `catch (const tg::Error& e)` catches every one of them.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A bad call. The text says how to fix it. The call changed nothing.
class UserError : public Error {
 public:
  using Error::Error;
};

// A device failed: it was lost, ran out of memory or refused a program.
class DeviceError : public Error {
 public:
  using Error::Error;
};

// A device does not have enough memory for the program. The text names the largest tensors, the
// bytes needed and the limit. All memory is released again, and a smaller batch may fit.
class OutOfMemoryError : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

// A bug in tensorgrad itself.
class InternalError : public Error {
 public:
  using Error::Error;
};

// Training met NaN or infinity with NonFinite::fail. The text names the op and the line.
class NonFiniteError : public UserError {
 public:
  using UserError::UserError;
};

}  // namespace tensorgrad
