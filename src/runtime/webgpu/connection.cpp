#include "runtime/webgpu/connection.h"

#include <algorithm>
#include <thread>

#include "support/fail.h"
#include "support/text.h"

namespace tensorgrad::webgpu {

namespace {

// The message of the library without its source locations and empty lines.
std::string tidy(std::string_view message) {
  std::string out;
  for (const std::string& line : split(message, '\n')) {
    if (line.empty() || line.starts_with("    at ")) continue;
    out += (out.empty() ? "" : "\n") + line;
  }
  return out.empty() ? "no reason given" : out;
}

void on_lost(const api::Device*, api::LostReason, api::StringView message, void* reports, void*) {
  taken_back<Reports>(reports)->lost(tidy(message.view()));
}

void on_error(const api::Device*, api::ErrorType type, api::StringView message, void* reports,
              void*) {
  static_cast<Reports*>(reports)->error(type, tidy(message.view()));
}

std::vector<const char*> c_strings(const std::vector<std::string>& strings) {
  std::vector<const char*> pointers;
  for (const std::string& text : strings) pointers.push_back(text.c_str());
  return pointers;
}

}  // namespace

void Reports::error(api::ErrorType type, std::string_view message) {
  std::lock_guard lock(mutex_);
  if (!error_.empty()) return;  // later errors are mostly consequences of the first
  const char* kind = type == api::ErrorType::out_of_memory ? "out of memory"
                     : type == api::ErrorType::validation  ? "a command was refused"
                                                           : "the driver failed";
  error_ = fmt::format("{}: {}", kind, message);
  any_ = true;
}

void Reports::lost(std::string_view message) {
  std::lock_guard lock(mutex_);
  if (lost_.empty()) lost_ = message;
  any_ = true;
}

void Reports::raise() {
  if (!any_) return;
  std::lock_guard lock(mutex_);
  if (!lost_.empty())
    throw DeviceError(
        fmt::format("webgpu: the device was lost: {}\n  hint: open it again and continue from the "
                    "last checkpoint",
                    lost_));
  any_ = false;
  throw DeviceError("webgpu: " + std::exchange(error_, {}));
}

Connection::Connection(const Library& library, Handle<api::AdapterImpl> adapter,
                       const GpuOptions& wanted)
    : call(library.call),
      options(wanted),
      info(describe(library, adapter.get())),
      instance_(instance(library), call.InstanceRelease),
      device_(nullptr, call.DeviceRelease),
      queue_(nullptr, call.QueueRelease),
      reports_(std::make_shared<Reports>()) {
  call.InstanceAddRef(instance_.get());
  std::vector<api::FeatureName> features;
  if (info.timestamps) features.push_back(api::FeatureName::timestamp_query);
  if (info.subgroups) features.push_back(api::FeatureName::subgroups);
  if (info.shader_f16) features.push_back(api::FeatureName::shader_f16);
  if (!info.matrix_shapes.empty()) features.push_back(api::FeatureName::subgroup_matrix);
  api::Limits limits{};
  call.AdapterGetLimits(adapter.get(), &limits);
  limits.next = nullptr;

  std::vector<std::string> disable = options.disable;
  disable.emplace_back("timestamp_quantization");  // it rounds to 0.1 ms, for browsers
  const auto enabled = c_strings(options.enable), disabled = c_strings(disable);
  api::DawnToggles toggles;
  toggles.enabled_count = enabled.size();
  toggles.enabled = enabled.data();
  toggles.disabled_count = disabled.size();
  toggles.disabled = disabled.data();

  api::DeviceDescriptor descriptor;
  descriptor.next = &toggles.chain;
  descriptor.required_feature_count = features.size();
  descriptor.required_features = features.data();
  descriptor.required_limits = &limits;
  descriptor.device_lost.mode = api::CallbackMode::allow_spontaneous;
  descriptor.device_lost.callback = on_lost;
  descriptor.device_lost.userdata1 = lent(reports_);  // called exactly once
  descriptor.uncaptured_error.callback = on_error;
  descriptor.uncaptured_error.userdata1 = reports_.get();

  struct Answer {
    api::Device device = nullptr;
    std::string message = "no answer";
  } answer;
  api::CallbackInfo<api::RequestDeviceCallback> done;
  done.callback = [](api::Status, api::Device device, api::StringView message, void* result,
                     void*) {
    *static_cast<Answer*>(result) = {device, std::string(message.view())};
  };
  done.userdata1 = &answer;
  api::FutureWaitInfo wait_info{call.AdapterRequestDevice(adapter.get(), &descriptor, done)};
  call.InstanceWaitAny(instance_.get(), 1, &wait_info, 0);  // completes at once
  if (!answer.device)
    throw DeviceError(fmt::format("webgpu: cannot open {}: {}", info.name, answer.message));
  device_.reset(answer.device);
  queue_.reset(call.DeviceGetQueue(device()));
  describe_device();
}

Connection::Connection(const Library& library, api::Device adopted, const GpuOptions& wanted)
    : call(library.call),
      options(wanted),
      instance_(nullptr, call.InstanceRelease),
      device_(adopted, call.DeviceRelease),
      queue_(nullptr, call.QueueRelease),
      reports_(std::make_shared<Reports>()),
      adopted_(true) {
  call.DeviceAddRef(adopted);
  const Handle<api::AdapterImpl> adapter(call.DeviceGetAdapter(adopted), call.AdapterRelease);
  info = describe(library, adapter.get());
  instance_.reset(call.AdapterGetInstance(adapter.get()));
  queue_.reset(call.DeviceGetQueue(adopted));
  lost_ = call.DeviceGetLostFuture(adopted);
  describe_device();
  watch();
}

Connection::~Connection() {
  if (adopted_ || !device_) return;
  call.DeviceDestroy(device());
  for (const api::Future future : aborted_) done(future);
}

void Connection::describe_device() {
  api::Limits limits{};
  call.DeviceGetLimits(device(), &limits);
  info.limits = limits_from(limits);
  const auto has = [&](api::FeatureName name) {
    return call.DeviceHasFeature(device(), name) != 0;
  };
  info.timestamps = has(api::FeatureName::timestamp_query);
  info.shader_f16 = has(api::FeatureName::shader_f16);
  info.subgroups = has(api::FeatureName::subgroups);
  if (!info.subgroups) info.subgroup_min = info.subgroup_max = 0;
  if (!has(api::FeatureName::subgroup_matrix)) info.matrix_shapes.clear();
}

void Connection::check() { reports_->raise(); }

void Connection::watch() {
  // The owner of an adopted device keeps its callbacks, so ask for its state.
  if (adopted_ && done(lost_)) reports_->lost("its owner knows why");
  check();
}

bool Connection::done(api::Future future) {
  api::FutureWaitInfo info_of{future};
  return call.InstanceWaitAny(instance_.get(), 1, &info_of, 0) == api::WaitStatus::success &&
         info_of.completed;
}

bool Connection::end_if_failed() {
  // If nothing is under way, the next call throws what was reported.
  if (!queued_.empty() || !objects_.empty()) try {
      watch();
    } catch (const DeviceError&) {
      abort(std::current_exception());
      return true;
    }
  return false;
}

bool Connection::run_arrived() {
  bool any = false;
  // The functions may add more, which come at the end.
  for (std::size_t i = 0, left = objects_.size(); left > 0 && i < objects_.size(); --left) {
    if (!done(objects_[i].future)) {
      ++i;
      continue;
    }
    const Then then = std::move(objects_[i].then);
    objects_.erase(objects_.begin() + static_cast<std::ptrdiff_t>(i));
    then(nullptr);
    any = true;
  }
  // What was refused must not deliver the results of its submission.
  any = end_if_failed() || any;
  while (!queued_.empty() && done(queued_.front().future)) {
    const Then then = std::move(queued_.front().then);
    queued_.pop_front();
    then(nullptr);
    any = true;
  }
  return end_if_failed() || any;
}

bool Connection::poll(std::chrono::nanoseconds longest) {
  bool any = run_arrived();
  if (!any && longest.count() > 0 && !(queued_.empty() && objects_.empty())) {
    if (adopted_) {
      // The instance of an adopted device may have been created without timed waits. It would then
      // print a line to stderr for each timed wait.
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    } else {
      // Dawn does not wait for futures of both kinds at once.
      const bool both = !queued_.empty() && !objects_.empty();
      api::FutureWaitInfo oldest{(queued_.empty() ? objects_ : queued_).front().future};
      const auto slice =
          both ? std::min<std::chrono::nanoseconds>(longest, std::chrono::milliseconds(1))
               : longest;
      call.InstanceWaitAny(instance_.get(), 1, &oldest, static_cast<std::uint64_t>(slice.count()));
    }
    any = run_arrived();
  }
  return any;
}

void Connection::abort(const std::exception_ptr& error) {
  const auto queued = std::exchange(queued_, {}), objects = std::exchange(objects_, {});
  for (const auto* list : {&queued, &objects})
    for (const UnderWay& each : *list) {
      aborted_.push_back(each.future);
      each.then(error);
    }
}

void Connection::begin_scope(api::ErrorFilter filter) {
  call.DevicePushErrorScope(device(), filter);
}

Completion<std::string> Connection::end_scope() {
  const auto message = std::make_shared<std::string>();
  api::CallbackInfo<api::PopErrorScopeCallback> popped;
  popped.callback = [](api::Status status, api::ErrorType type, api::StringView text,
                       void* lent_message, void*) {
    const auto result = taken_back<std::string>(lent_message);
    if (status == api::Status::success && type != api::ErrorType::none) *result = tidy(text.view());
  };
  popped.userdata1 = lent(message);
  const api::Future future = call.DevicePopErrorScope(device(), popped);
  if (done(future)) return *message;
  Completion<std::string> out;
  when_object(future, [out, message](const std::exception_ptr& error) {
    error ? out.set_error(error) : out.set(*message);
  });
  return out;
}

void Connection::report_end_of_scope() {
  end_scope().then([reports = reports_](const Completion<std::string>& scope) {
    if (!scope.error() && !scope.get().empty())
      reports->error(api::ErrorType::validation, scope.get());
  });
}

Connection::NewBuffer Connection::make_buffer(std::uint64_t bytes, std::uint64_t usage,
                                              std::string_view what) {
  api::DawnFakeBufferOom fault;
  fault.at_device = 1;
  api::BufferDescriptor descriptor;
  if (std::exchange(buffer_fault_, false)) descriptor.next = &fault.chain;
  descriptor.label = what;
  descriptor.usage = usage;
  descriptor.size = std::max<std::uint64_t>(16, (bytes + 3) / 4 * 4);
  begin_scope(api::ErrorFilter::out_of_memory);
  Handle<api::BufferImpl> buffer(call.DeviceCreateBuffer(device(), &descriptor),
                                 call.BufferRelease);
  const auto checked = end_scope().map([bytes, name = std::string(what),
                                        adapter = info.name](const std::string& message) {
    if (message.empty()) return Done{};
    throw OutOfMemoryError(fmt::format("webgpu: out of memory: {} for {} on {}\n  the driver: {}",
                                       in_mib(static_cast<std::int64_t>(bytes)), name, adapter,
                                       message));
  });
  if (!checked.ready()) {
    ++*unchecked_;
    checked.then([count = unchecked_](const Completion<Done>&) { --*count; });
  }
  return {std::move(buffer), checked};
}

void Connection::inject(Fault fault) {
  using api::ErrorType;
  const auto error = [&](ErrorType type) {
    call.DeviceInjectError(device(), type, std::string_view("injected"));
  };
  switch (fault) {
    case Fault::lost:
      call.DeviceForceLoss(device(), api::LostReason::unknown, std::string_view("injected"));
      break;
    case Fault::validation:
      error(ErrorType::validation);
      break;
    case Fault::out_of_memory:
      error(ErrorType::out_of_memory);
      break;
    case Fault::buffer_memory:
      buffer_fault_ = true;
      break;
  }
}

}  // namespace tensorgrad::webgpu
