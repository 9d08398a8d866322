#include "compile/read_arrays.h"

#include <utility>

#include "compile/memory.h"
#include "support/integers.h"

namespace tensorgrad::detail {

namespace {

class Reading : public std::enable_shared_from_this<Reading> {
 public:
  Reading(runtime::Device& device, std::vector<ArrayPlace> places)
      : device_(device), places_(std::move(places)) {}

  void advance() {
    for (; next_ < places_.size(); add(places_[next_++])) {
      const Completion<Done> read = start(places_[next_]);
      if (read.ready()) {
        read.get();
        continue;
      }
      read.then([self = shared_from_this()](const Completion<Done>& one) { self->arrived(one); });
      return;
    }
    done.set(std::move(arrays_));
  }

  Completion<NamedArrays> done;

 private:
  Completion<Done> start(const ArrayPlace& place) {
    const auto count = usize(place.type.shape.count());
    try {
      if (place.type.dtype == DType::f32)
        floats_ = std::vector<float>(count);
      else
        ints_ = std::vector<std::int32_t>(count);
    } catch (const std::bad_alloc&) {
      throw no_host_memory(place.type, place.what);
    }
    const auto to = place.type.dtype == DType::f32 ? std::as_writable_bytes(std::span(floats_))
                                                   : std::as_writable_bytes(std::span(ints_));
    return device_.read(*place.buffer, place.offset, to, shared_from_this());
  }
  void add(const ArrayPlace& place) {
    if (place.type.dtype == DType::f32)
      arrays_.emplace(place.name, Array(place.type.shape, std::move(floats_)));
    else
      arrays_.emplace(place.name, Array(place.type.shape, std::move(ints_), place.type.dtype));
  }
  void arrived(const Completion<Done>& one) {
    try {
      one.get();
      add(places_[next_++]);
      advance();
    } catch (...) {
      done.set_error(std::current_exception());
    }
  }

  runtime::Device& device_;
  std::vector<ArrayPlace> places_;
  std::size_t next_ = 0;
  // The array that is being read.
  std::vector<float> floats_;
  std::vector<std::int32_t> ints_;
  NamedArrays arrays_;
};

}  // namespace

Completion<NamedArrays> read_arrays(runtime::Device& device, std::vector<ArrayPlace> places) {
  const auto reading = std::make_shared<Reading>(device, std::move(places));
  reading->advance();
  return reading->done;
}

}  // namespace tensorgrad::detail
