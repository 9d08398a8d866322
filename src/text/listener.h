// Listener: the state of a Generator. Reads tokens one after the other, without waiting: each is a
// run of the program, whose callback starts the next.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "tensorgrad/compile.h"
#include "tensorgrad/state.h"
#include "tensorgrad/tokenizer.h"
#include "text/program.h"

namespace tensorgrad::detail {

class Listener : public std::enable_shared_from_this<Listener> {
 public:
  // `next` is that of the program.
  Listener(std::shared_ptr<TextProgram> program, ForwardHandle& next, Tokenizer tokenizer);
  ~Listener();  // calls that are not finished fail

  const Tokenizer& tokenizer() const { return tokenizer_; }
  const TextModelConfig& config() const { return program_->config(); }
  ForwardHandle& next() const { return next_; }
  std::span<const std::int32_t> heard() const { return heard_; }
  const NamedArrays& memory() const { return memory_; }

  // The logits after the last token. Calls take their turn.
  Future<std::vector<float>> listen(std::span<const std::int32_t> ids);
  // The same, whose functions run in the poll() that reads the last token.
  Completion<std::vector<float>> read(std::span<const std::int32_t> ids);
  void forget();
  void remember(const NamedArrays& memory, std::span<const std::int32_t> heard);

  // What completes the futures of listen().
  std::shared_ptr<Pollable> source() const { return next_.source(); }
  [[noreturn]] static void gone();  // throws the error for a generator that was destroyed

 private:
  struct Call {
    std::deque<std::int32_t> ids;  // to read
    std::size_t again = 0;         // how many of them were heard before
    std::vector<float> logits;     // of the last one
    Completion<std::vector<float>> done;
  };

  void start();
  void read_next();
  void take(const Result& result);
  void end_first(const std::exception_ptr& error);
  void check_idle(const char* call) const;

  std::shared_ptr<TextProgram> program_;
  ForwardHandle& next_;
  Tokenizer tokenizer_;
  StateSpec state_;
  NamedArrays memory_;
  std::int64_t in_cache_ = 0;  // positions in the state; used only if its capacity is limited
  std::vector<std::int32_t> heard_;
  std::deque<Call> calls_;  // the first is under way
};

}  // namespace tensorgrad::detail
