// Rows of the op table for a program that cannot wait: op_table.test.mjs calls these functions in a
// browser. One row runs at a time. Texts are valid until the next call.
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <emscripten/emscripten.h>

#include "checks/check_row.h"
#include "runtime/device.h"
#include "support/poll.h"

namespace tensorgrad::checks {
namespace {

struct Table {
  std::vector<const Sample*> rows = rows_by_turns();
  std::optional<runtime::Opening> opening;
  std::shared_ptr<runtime::Device> device;
  std::optional<Completion<RowOutcome>> running;
  std::string text;
};

Table& table() {
  static Table table;
  return table;
}

// What failed, or "" if nothing did.
template <class F>
const char* failure_of(F work) {
  std::string& text = table().text;
  text.clear();
  try {
    work();
  } catch (const std::exception& error) {
    text = error.what();
    if (text.empty()) text = "an error without text";
  }
  return text.c_str();
}

}  // namespace
}  // namespace tensorgrad::checks

using tensorgrad::checks::failure_of;
using tensorgrad::checks::table;

extern "C" {

EMSCRIPTEN_KEEPALIVE int op_table_size() { return static_cast<int>(table().rows.size()); }

EMSCRIPTEN_KEEPALIVE const char* op_table_name(int row) {
  table().text = table().rows.at(static_cast<std::size_t>(row))->name();
  return table().text.c_str();
}

// Opens a device; op_table_poll() says when it is there. Returns what failed.
EMSCRIPTEN_KEEPALIVE const char* op_table_open(const char* device) {
  return failure_of([&] { table().opening = tensorgrad::runtime::open_device(device, 1); });
}

// Starts a row on the open device. Returns what failed.
EMSCRIPTEN_KEEPALIVE const char* op_table_start(int row) {
  return failure_of([&] {
    table().running =
        check_row_later(*table().device, *table().rows.at(static_cast<std::size_t>(row)));
  });
}

// Makes progress. Returns 0 while a device is being opened or a row runs.
EMSCRIPTEN_KEEPALIVE int op_table_poll() {
  tensorgrad::run_callbacks();
  if (table().opening) {
    if (table().opening->source) table().opening->source->poll(std::chrono::nanoseconds(0));
    return table().opening->device.ready();
  }
  table().device->poll(std::chrono::nanoseconds(0));
  return table().running->ready();
}

// What was wrong with what ended: the device, or the row. "" if nothing was.
EMSCRIPTEN_KEEPALIVE const char* op_table_failure() {
  std::string wrong;
  const char* error = failure_of([&] {
    if (table().opening) {
      const auto opened = table().opening->device;
      table().opening.reset();
      table().device = opened.get();
    } else {
      wrong = table().running->get().text();
    }
  });
  if (*error == '\0') table().text = wrong;
  return table().text.c_str();
}

}  // extern "C"
