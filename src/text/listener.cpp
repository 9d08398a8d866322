#include "text/listener.h"

#include <utility>

#include "support/fail.h"
#include "support/integers.h"

namespace tensorgrad::detail {

Listener::Listener(std::shared_ptr<TextProgram> program, ForwardHandle& next, Tokenizer tokenizer)
    : program_(std::move(program)),
      next_(next),
      tokenizer_(std::move(tokenizer)),
      state_(program_->state()),
      memory_(zero_state(state_)) {
  if (tokenizer_.vocab_size() > config().vocab)
    user_error("Generator: the tokenizer has {} tokens, the model {}", tokenizer_.vocab_size(),
               config().vocab);
}

Listener::~Listener() {
  try {
    gone();
  } catch (...) {
    for (const Call& call : std::exchange(calls_, {}))
      call.done.set_error(std::current_exception());
  }
}

void Listener::gone() { user_error("Generator: it was destroyed before it had finished"); }

void Listener::start() {
  memory_ = zero_state(state_);
  in_cache_ = 0;
}

void Listener::check_idle(const char* call) const {
  if (!calls_.empty())
    user_error("Generator: {} while it reads or generates\n  hint: wait for the future", call);
}

Future<std::vector<float>> Listener::listen(std::span<const std::int32_t> ids) {
  return {read(ids), source(), "reading tokens"};
}

Completion<std::vector<float>> Listener::read(std::span<const std::int32_t> ids) {
  if (ids.empty()) user_error("Generator: listen() needs at least one token");
  for (const std::int32_t id : ids)
    if (id < 0 || id >= config().vocab)
      user_error("Generator: token {} is out of range: the vocabulary has {} tokens", id,
                 config().vocab);
  Call call;
  call.ids.assign(ids.begin(), ids.end());
  const Completion<std::vector<float>> done = call.done;
  calls_.push_back(std::move(call));
  if (calls_.size() == 1) read_next();
  return done;
}

// If the key-value cache is full, empties it and reads the later half of its tokens again.
void Listener::read_next() {
  Call& call = calls_.front();
  try {
    const std::int64_t capacity = program_->capacity();
    if (capacity > 0 && in_cache_ == capacity) {
      const auto keep = static_cast<std::ptrdiff_t>(capacity / 2);
      start();
      call.ids.insert(call.ids.begin(), heard_.end() - keep, heard_.end());
      call.again = usize(keep);
    }
    const std::vector<std::int32_t> now{call.ids.front()};
    next_.run_async(feed_state(memory_, {{"tokens", now}}))
        .then([listener = weak_from_this()](const Result& result) {
          if (const auto self = listener.lock()) self->take(result);
        });
  } catch (...) {
    end_first(std::current_exception());
  }
}

void Listener::take(const Result& result) {
  Call& call = calls_.front();
  try {
    const std::span<const float> said =
        result["logits"].floats().first(usize(tokenizer_.vocab_size()));
    call.logits.assign(said.begin(), said.end());
    memory_ = state_after(result, state_);
  } catch (...) {
    return end_first(std::current_exception());
  }
  ++in_cache_;
  const std::int32_t id = call.ids.front();
  call.ids.pop_front();
  if (call.again > 0)
    --call.again;
  else
    heard_.push_back(id);
  call.ids.empty() ? end_first(nullptr) : read_next();
}

void Listener::end_first(const std::exception_ptr& error) {
  Call call = std::move(calls_.front());
  calls_.pop_front();
  if (!calls_.empty()) read_next();
  error ? call.done.set_error(error) : call.done.set(std::move(call.logits));
}

void Listener::forget() {
  check_idle("forget()");
  start();
  heard_.clear();
}

void Listener::remember(const NamedArrays& memory, std::span<const std::int32_t> heard) {
  check_idle("remember()");
  for (const InputSpec& spec : state_) {
    const auto found = memory.find(spec.name);
    if (found == memory.end()) user_error("Generator: the memory has no '{}'", spec.name);
    if (found->second.dtype() != spec.dtype || found->second.shape() != spec.shape)
      user_error("Generator: '{}' is {}{}, the memory has {}{}", spec.name, name(spec.dtype),
                 spec.shape.text(), name(found->second.dtype()), found->second.shape().text());
  }
  std::int64_t held = 0;
  if (const std::int64_t capacity = program_->capacity(); capacity > 0) {
    held = memory.at("position").ints()[0];
    if (held < 0 || held > capacity || held > static_cast<std::int64_t>(heard.size()))
      user_error("Generator: the memory holds {} positions of {}, {} tokens were heard", held,
                 capacity, heard.size());
  }
  memory_ = memory;
  in_cache_ = held;
  heard_.assign(heard.begin(), heard.end());
}

}  // namespace tensorgrad::detail
