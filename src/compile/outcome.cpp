#include "compile/outcome.h"

#include <cstring>

#include "compile/session.h"

namespace tensorgrad::detail {

using ir::Result;

// The bytes of the outputs as they are now; read at once where that costs no waiting.
void Outcome::snapshot() {
  if (done || bytes) return;
  const std::int64_t elements = variant->plan.outputs.elements();
  if (!settled) faults = session->device_->read_later(*program->faults, 0, 4 * runtime::kFaultElements);
  if (elements > 0) bytes = session->device_->read_later(*variant->outputs, 0, 4 * elements);
}

// Looks at the flags of the step, and at what kernels reported.
void Outcome::settle() {
  std::lock_guard lock(*mutex);
  if (settled) return;
  if (!faults) session->device_->wait();
  const auto failure = faults ? runtime::Device::failure_in(faults->wait()) : session->failure_of(*program);
  if (failure) session->raise_failure(*program, *failure, step);
  const schedule::Plan& plan = variant->plan;
  for (std::size_t i = 0; i < plan.graph.results.size(); ++i) {
    const Result& result = plan.graph.results[i];
    if (result.kind != Result::Kind::output || result.name != optim::kFailedOutput) continue;
    behind = read(plan.results[i].offset, plan.graph[result.node].type).ints()[0];
  }
  settled = true;
  finite = behind == 0;
  if (!finite && step >= 0) error = session->note_failure(*program, step - (behind - 1));
}

void Outcome::resolve() {
  std::lock_guard lock(*mutex);
  if (done) return;
  const std::shared_ptr<Session> owner = session;  // released below
  if (!owner->device_->immediate()) snapshot();  // all of it in one read
  settle();
  const schedule::Plan& plan = variant->plan;
  for (std::size_t i = 0; i < plan.graph.results.size(); ++i) {
    const Result& result = plan.graph.results[i];
    if (result.kind != Result::Kind::output && result.kind != Result::Kind::capture) continue;
    if (result.name == optim::kFailedOutput) continue;
    Array array = read(plan.results[i].offset, plan.graph[result.node].type);
    (result.kind == Result::Kind::output ? outputs : captures).emplace(result.name, std::move(array));
  }
  done = true;
  bytes.reset();
  faults.reset();
  watched = owner;
  session.reset();
  program.reset();
}

Array Outcome::read(std::int64_t offset, const ir::Type& type) {
  if (!bytes) return session->read_array(*variant->outputs, offset, type);
  const auto all = bytes->wait();
  const auto count = static_cast<std::size_t>(type.shape.count());
  const std::byte* from = all.data() + 4 * offset;
  if (type.dtype == DType::f32) {
    std::vector<float> values(count);
    if (count) std::memcpy(values.data(), from, 4 * count);
    return {type.shape, std::move(values)};
  }
  std::vector<std::int32_t> values(count);
  if (count) std::memcpy(values.data(), from, 4 * count);
  return {type.shape, std::move(values), type.dtype};
}

void Outcome::check() {
  std::lock_guard lock(*mutex);
  if (error.empty()) return;
  if (const auto owner = session ? session : watched.lock()) owner->acknowledge(step - (behind - 1));
  throw NonFiniteError(error);
}

}  // namespace tensorgrad::detail
