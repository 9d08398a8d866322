#include "c/objects.h"

#include <new>
#include <stdexcept>
#include <unordered_map>

namespace tensorgrad::c {

namespace {

constexpr const char* kNoMemory =
    "memory is exhausted\n  hint: free programs and arrays, or use smaller ones";

struct LastError {
  std::string text;
  const char* fixed = "";  // instead of the text, if there is no memory for it
  const char* kind = "user";
};
LastError& last_error() {
  static LastError last;
  return last;
}

void set_error(const char* kind, const char* text) {
  LastError& last = last_error();
  last.kind = kind;
  last.fixed = "an error, and no memory for its text";
  try {
    last.text = text;
    last.fixed = nullptr;
  } catch (const std::bad_alloc&) {
  }
}

void set_no_memory() {
  last_error().kind = "out_of_memory";
  last_error().fixed = kNoMemory;
}

std::unordered_map<const void*, const char*>& handles() {
  static auto& all = *new std::unordered_map<const void*, const char*>;  // outlives every handle
  return all;
}

}  // namespace

void keep_error(const std::exception_ptr& error) noexcept {
  try {
    std::rethrow_exception(error);
  } catch (const NonFiniteError& known) {
    set_error("non_finite", known.what());
  } catch (const UserError& known) {
    set_error("user", known.what());
  } catch (const OutOfMemoryError& known) {
    set_error("out_of_memory", known.what());
  } catch (const DeviceError& known) {
    set_error("device", known.what());
  } catch (const std::bad_alloc&) {
    set_no_memory();
  } catch (const std::length_error&) {  // larger than any memory
    set_no_memory();
  } catch (const std::exception& unknown) {
    set_error("internal", unknown.what());
  } catch (...) {
    set_error("internal", "unknown error");
  }
}

void add_handle(const void* handle, const char* kind) { handles()[handle] = kind; }
void remove_handle(const void* handle) noexcept { handles().erase(handle); }
bool is_handle(const void* handle, const char* kind) {
  const auto found = handles().find(handle);
  return found != handles().end() && std::string_view(found->second) == kind;
}

Site site_of(const char* file, int line) {
  static std::set<std::string, std::less<>> files;
  const std::string_view name = text_or(file);
  auto kept = files.find(name);
  if (kept == files.end()) kept = files.emplace(name).first;
  return {kept->c_str(), line};
}

std::string type_text(DType dtype, const Shape& shape) { return name(dtype) + shape.text(); }

CompileCallback progress_of(const std::shared_ptr<tg_future::State>& state) {
  return [state](const CompileProgress& progress) {
    const char* work = "kernels";
    switch (progress.work) {
      case CompileWork::kernels:
        break;
      case CompileWork::tuning:
        work = "tuning";
        break;
      case CompileWork::shaders:
        work = "shaders";
        break;
      case CompileWork::first_run:
        work = "first_run";
        break;
    }
    state->progress = JsonText()
                          .begin('{')
                          .field("work", work)
                          .field("done", progress.done)
                          .field("total", progress.total)
                          .end('}')
                          .take();
  };
}

Feed feed_of(const tg_arrays* arrays) {
  Feed feed;
  if (arrays)
    for (const auto& [name, array] : given(arrays, "feed").values) feed.set(name, FeedValue(array));
  return feed;
}

}  // namespace tensorgrad::c

using namespace tensorgrad;
using namespace tensorgrad::c;

const char* tg_error(void) {
  const LastError& last = last_error();
  return last.fixed ? last.fixed : last.text.c_str();
}
const char* tg_error_kind(void) { return last_error().kind; }

int tg_poll(void) {
  return guarded(-1, [] { return tensorgrad::poll() ? 1 : 0; });
}

// ---- what arrives later

tg_value& tg_future::value() const {
  if (!state->ready) user_error("future: the value is not there yet\n  hint: tg_ready()");
  if (state->error) std::rethrow_exception(state->error);
  return state->value;
}

int tg_ready(tg_future* future) {
  return guarded(-1, [&] {
    if (!given(future, "future").state->ready) return 0;
    static_cast<void>(future->value());
    return 1;
  });
}

const char* tg_future_progress(tg_future* future) {
  return guarded(nullptr,
                 [&]() -> const char* { return given(future, "future").state->progress.c_str(); });
}

tg_arrays* tg_future_arrays(tg_future* future) {
  return guarded(nullptr, [&]() -> tg_arrays* {
    tg_value& value = given(future, "future").value();
    if (!value.has_arrays) user_error("future: its value has no arrays");
    return &value.arrays;
  });
}

tg_arrays* tg_future_captures(tg_future* future) {
  return guarded(nullptr, [&]() -> tg_arrays* {
    tg_value& value = given(future, "future").value();
    if (!value.has_captures) user_error("future: its value has no captures");
    return &value.captures;
  });
}

const char* tg_future_text(tg_future* future) {
  return guarded(nullptr,
                 [&]() -> const char* { return given(future, "future").value().text.c_str(); });
}

tg_program* tg_future_program(tg_future* future) {
  return guarded(nullptr, [&]() -> tg_program* {
    tg_value& value = given(future, "future").value();
    if (!value.program) user_error("future: its value is no program, or was taken");
    return value.program.release();
  });
}

tg_checkpoint* tg_future_checkpoint(tg_future* future) {
  return guarded(nullptr, [&]() -> tg_checkpoint* {
    tg_value& value = given(future, "future").value();
    if (!value.checkpoint) user_error("future: its value is no checkpoint, or was taken");
    return value.checkpoint.release();
  });
}

void tg_future_free(tg_future* future) { free_handle(future); }
