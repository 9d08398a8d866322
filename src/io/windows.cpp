// Batches of windows: which part of the text comes when. Nothing is stored between batches: the
// place of a window follows from the seed and its number.
#include <algorithm>
#include <bit>

#include "support/fail.h"
#include "support/integers.h"
#include "support/threefry.h"
#include "tensorgrad/dataset.h"

namespace tensorgrad {

namespace {

enum class DrawFor : std::uint32_t { offset = 11, order };

// A permutation of 0 .. n-1 for a seed and a round: a Feistel network over the next power of four,
// applied repeatedly until the result is below n (cycle walking).
class Order {
 public:
  Order(std::int64_t n, std::uint32_t seed, std::int64_t round)
      : n_(n),
        seed_(seed),
        round_(round),
        half_((std::bit_width(static_cast<std::uint64_t>(n - 1)) + 1) / 2) {}

  std::int64_t at(std::int64_t i) const {
    auto x = static_cast<std::uint64_t>(i);
    do x = permuted(x);
    while (x >= static_cast<std::uint64_t>(n_));
    return static_cast<std::int64_t>(x);
  }

 private:
  std::uint64_t permuted(std::uint64_t x) const {
    const std::uint64_t mask = (std::uint64_t{1} << half_) - 1;
    std::uint64_t left = x >> half_, right = x & mask;
    for (std::uint32_t i = 0; i < 4; ++i) {
      // Counter: the number of the round and one half. Key: the seed, the purpose and the network's
      // round.
      const auto word = threefry(seed_, static_cast<std::uint32_t>(DrawFor::order) << 8 | i,
                                 static_cast<std::uint32_t>(round_),
                                 static_cast<std::uint32_t>(right ^ right >> 32))[0];
      const std::uint64_t next = left ^ (word & mask);
      left = right, right = next;
    }
    return left << half_ | right;
  }

  std::int64_t n_;
  std::uint32_t seed_;
  std::int64_t round_;
  int half_;
};

}  // namespace

std::int64_t windows_per_round(const Tokens& tokens, std::int64_t length) {
  if (length < 1) user_error("windows: the length must be at least 1: {}", length);
  if (tokens.size() < length + 1)
    user_error(
        "windows: the text has {} tokens, a window of {} and the token after it need {}\n  hint: a "
        "shorter context",
        tokens.size(), length, length + 1);
  // One window fewer than fit, so that each round can start at another offset.
  return std::max<std::int64_t>(1, (tokens.size() - length) / length);
}

WindowBatch windows(const Tokens& tokens, const WindowOptions& options, std::int64_t position) {
  const std::int64_t T = options.length, n = windows_per_round(tokens, T);
  if (options.batch < 1) user_error("windows: the batch must be at least 1: {}", options.batch);
  if (position < 0) user_error("windows: the position must not be negative: {}", position);
  const std::int64_t slack = std::min(T - 1, tokens.size() - 1 - n * T);
  WindowBatch batch;
  const auto size = usize(options.batch * T);
  batch.tokens.reserve(size), batch.targets.reserve(size);
  std::vector<std::int32_t> window(usize(T) + 1);
  for (std::int64_t b = 0; b < options.batch; ++b) {
    const std::int64_t round = (position + b) / n;
    const std::uint64_t word =
        threefry(options.seed, static_cast<std::uint32_t>(DrawFor::offset) << 8,
                 static_cast<std::uint32_t>(round), 0)[0];
    const auto offset =
        static_cast<std::int64_t>(word * static_cast<std::uint64_t>(slack + 1) >> 32);
    tokens.read(offset + Order(n, options.seed, round).at((position + b) % n) * T, window);
    batch.tokens.insert(batch.tokens.end(), window.begin(), window.end() - 1);
    batch.targets.insert(batch.targets.end(), window.begin() + 1, window.end());
  }
  return batch;
}

}  // namespace tensorgrad
