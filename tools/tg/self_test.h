// `tg devices --self-test`: runs the op table on a device and compares with the double-precision
// interpreter, so that users can tell a broken driver from a broken model.
#pragma once

#include <string>

namespace tensorgrad::tool {

struct SelfTestOptions {
  std::string device = "auto";
  std::string rows = "*";  // pattern over row names
  bool all = false;        // no time limit
  bool json = false;
};

// Returns the exit code: 0 if every row that ran passed, 1 otherwise.
int self_test(const SelfTestOptions& options);

}  // namespace tensorgrad::tool
