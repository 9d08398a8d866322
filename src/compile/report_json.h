// The reports of a program as JSON: for `tg show --json` and for the C interface.
#pragma once

#include <vector>

#include "support/json_text.h"
#include "tensorgrad/compile.h"

namespace tensorgrad::detail {

// {"kernels", "dispatches", ...}
void write_json(JsonText& json, const Counts& counts);
// [{"kind", "phase", "stage", "ops", "where", "operations", "bytes_read", "bytes_written",
// "writes": [{"type", "space", "offset", "bytes", "last_use", "in_place"}]}]
void write_json(JsonText& json, const std::vector<PlannedKernel>& plan);
// [{"kernel", "name", "microseconds", "mean_microseconds"}]
void write_json(JsonText& json, const std::vector<DispatchTime>& times);

template <class Report>
std::string json_of(const Report& report) {
  JsonText json;
  write_json(json, report);
  return json.take();
}

}  // namespace tensorgrad::detail
