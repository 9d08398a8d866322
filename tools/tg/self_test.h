// `tg devices --self-test`: runs the op table on a device and compares with the double-precision
// interpreter, so that a user can tell a broken driver from a broken model.
#pragma once

#include <string>

namespace tensorgrad::tool {

struct SelfTestOptions {
  std::string device = "auto";
  std::string rows = "*";  // a pattern over their names
  bool all = false;        // however long it takes
  bool json = false;
};

// Returns the exit code: 0 when every row that ran passed, 1 otherwise.
int self_test(const SelfTestOptions& options);

}  // namespace tensorgrad::tool
