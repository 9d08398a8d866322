#include "compile/outcome.h"

#include <cstring>

#include "compile/session.h"
#include "runtime/blocking.h"
#include "support/fail.h"
#include "support/integers.h"
#include "support/text.h"

namespace tensorgrad::detail {

using ir::Result;

Snapshot::Snapshot(runtime::Device& device, const runtime::Buffer& buffer, std::int64_t elements)
    : device_(device), bytes_(std::make_shared<std::vector<std::byte>>()) {
  try {
    bytes_->resize(usize(4 * elements));
  } catch (const std::bad_alloc&) {
    throw OutOfMemoryError(fmt::format("host: out of memory: {} for the results of an earlier run",
                                       in_mib(4 * elements)));
  }
  read_ = device.read(buffer, 0, *bytes_, bytes_);
}

std::span<const std::byte> Snapshot::wait() const {
  wait_for(device_, read_, "a run");
  return *bytes_;
}

// Starts a copy of the outputs as they are now. Devices that need not wait read them at once.
void Outcome::snapshot() {
  if (done || bytes) return;
  const std::int64_t elements = executable->made.plan.outputs.elements();
  if (!settled) faults.emplace(*session->device_, *program->faults, runtime::kFaultElements);
  if (elements > 0) bytes.emplace(*session->device_, *executable->outputs, elements);
}

// Reads the guard of the step and the faults that kernels reported.
void Outcome::settle() {
  std::lock_guard lock(*mutex);
  if (settled) return;
  if (!faults) runtime::blocking::finish(*session->device_);
  const auto failure =
      faults ? runtime::Device::failure_in(faults->wait()) : session->failure_of(*program);
  if (failure) session->raise_failure(*program, *failure, step);
  const schedule::Plan& plan = executable->made.plan;
  for (std::size_t i = 0; i < plan.graph.results.size(); ++i) {
    const Result& result = plan.graph.results[i];
    if (result.kind != Result::Kind::output || result.name != optim::kFailedOutput) continue;
    behind = read(plan.results[i].offset, plan.graph[result.node].type, "the guard").ints()[0];
  }
  settled = true;
  finite = behind == 0;
  if (!finite && step >= 0) error = session->note_failure(*program, step - (behind - 1));
}

void Outcome::resolve() {
  std::lock_guard lock(*mutex);
  if (done) return;
  const std::shared_ptr<Session> owner = session;  // released below
  if (!owner->device_->immediate()) snapshot();    // everything in one read
  settle();
  const schedule::Plan& plan = executable->made.plan;
  for (std::size_t i = 0; i < plan.graph.results.size(); ++i) {
    const Result& result = plan.graph.results[i];
    if (result.kind != Result::Kind::output && result.kind != Result::Kind::capture) continue;
    if (result.name == optim::kFailedOutput) continue;
    const bool is_output = result.kind == Result::Kind::output;
    const std::string what = fmt::format("{} '{}'", is_output ? "output" : "capture", result.name);
    Array array = read(plan.results[i].offset, plan.graph[result.node].type, what);
    (is_output ? outputs : captures).emplace(result.name, std::move(array));
  }
  done = true;
  bytes.reset();
  faults.reset();
  watched = owner;
  session.reset();
  program.reset();
}

Array Outcome::read(std::int64_t offset, const ir::Type& type, std::string_view what) {
  if (!bytes) return session->read_array(*executable->outputs, offset, type, what);
  return host_array(type, what, [&](std::span<std::byte> to) {
    const auto all = bytes->wait();
    if (!to.empty()) std::memcpy(to.data(), all.data() + 4 * offset, to.size());
  });
}

void Outcome::check() {
  std::lock_guard lock(*mutex);
  if (error.empty()) return;
  if (const auto owner = session ? session : watched.lock())
    owner->acknowledge(step - (behind - 1));
  throw NonFiniteError(error);
}

}  // namespace tensorgrad::detail
