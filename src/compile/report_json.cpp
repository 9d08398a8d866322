#include "compile/report_json.h"

namespace tensorgrad::detail {

void write_json(JsonText& json, const Counts& counts) {
  json.begin('{')
      .field("kernels", counts.kernels)
      .field("dispatches", counts.dispatches)
      .field("passes", counts.passes)
      .field("submits", counts.submits)
      .field("arena_bytes", counts.arena_bytes)
      .field("param_bytes", counts.param_bytes)
      .field("gradient_bytes", counts.gradient_bytes)
      .field("state_bytes", counts.state_bytes)
      .field("input_bytes", counts.input_bytes)
      .field("operations", counts.operations)
      .field("bytes_moved", counts.bytes_moved)
      .end('}');
}

void write_json(JsonText& json, const std::vector<PlannedKernel>& plan) {
  json.begin('[');
  for (const PlannedKernel& kernel : plan) {
    json.begin('{')
        .field("kind", kernel.kind)
        .field("phase", kernel.phase)
        .field("stage", kernel.stage)
        .key("ops")
        .list(kernel.ops)
        .field("where", kernel.where)
        .field("operations", kernel.operations)
        .field("bytes_read", kernel.bytes_read)
        .field("bytes_written", kernel.bytes_written)
        .key("writes")
        .begin('[');
    for (const PlannedTensor& tensor : kernel.writes)
      json.begin('{')
          .field("type", tensor.type)
          .field("space", tensor.space)
          .field("offset", tensor.offset)
          .field("bytes", tensor.bytes)
          .field("last_use", tensor.last_use)
          .field("in_place", tensor.in_place)
          .end('}');
    json.end(']').end('}');
  }
  json.end(']');
}

void write_json(JsonText& json, const std::vector<DispatchTime>& times) {
  json.begin('[');
  for (const DispatchTime& time : times)
    json.begin('{')
        .field("kernel", time.kernel)
        .field("name", time.name)
        .field("microseconds", time.microseconds)
        .field("mean_microseconds", time.mean_microseconds)
        .end('}');
  json.end(']');
}

}  // namespace tensorgrad::detail
